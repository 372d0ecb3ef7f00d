"""Do enough prompts stand behind a cell?"""

from collections.abc import Iterator

from analysis.gates.base import Evidence, Finding, Subject, finding
from analysis.stats.intervals import MIN_CLUSTERS


class EnoughPrompts:
    """The prompt is the unit of replication: repeating steps or runs adds nothing."""

    name = "enough-prompts"
    why = "Prompts differ by half where reruns are identical to the bit; few of them say little, whatever they say."
    symptom = "Reruns are identical, prompts differ by half."
    expected = f"at least {MIN_CLUSTERS} prompts for an interval"
    looks_at: Subject = "cell"

    def check(self, evidence: Evidence) -> Iterator[Finding]:
        """Warn of cells with fewer prompts than an interval needs; refuse cells that have none left."""
        for cell in evidence.run.cells:
            prompts = len({sample.prompt_id for sample in evidence.by_cell.get(cell, ())})
            if not prompts and evidence.run.ended:
                yield finding(self, "refuse", "cell", cell.id, "no prompt left after the other gates")
            elif prompts < MIN_CLUSTERS:
                saw = f"{prompts} prompts: points without an interval"
                yield finding(self, "warn", "cell", cell.id, saw)
