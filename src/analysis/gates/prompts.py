"""Do enough prompts stand behind a cell?"""

from collections.abc import Iterator

from analysis.gates.base import Evidence, Finding, Subject, finding
from analysis.stats.intervals import MIN_CLUSTERS

PUBLISHED_PROMPTS = 5
"""Prompts that a cell of a published run has at least. A gate may leave fewer of them standing, and then warns."""


class EnoughPrompts:
    """The prompt is the unit of replication: repeating steps or runs adds nothing."""

    name = "enough-prompts"
    why = "Prompts differ by half where reruns are identical to the bit; few of them say little, whatever they say."
    symptom = "Reruns are identical, prompts differ by half."
    expected = f"at least {PUBLISHED_PROMPTS} prompts, and {MIN_CLUSTERS} for an interval"
    looks_at: Subject = "cell"

    def check(self, evidence: Evidence) -> Iterator[Finding]:
        """Warn of cells with few prompts, or fewer than an interval needs; refuse cells that have none left."""
        for cell in evidence.run.cells:
            prompts = len({sample.prompt_id for sample in evidence.by_cell.get(cell, ())})
            if not prompts and evidence.run.ended:
                yield finding(self, "refuse", "cell", cell.id, "no prompt left after the other gates")
            elif prompts < PUBLISHED_PROMPTS:
                few = (
                    "points without an interval" if prompts < MIN_CLUSTERS else "few, and two kinds may hide among them"
                )
                yield finding(self, "warn", "cell", cell.id, f"{prompts} prompt{'' if prompts == 1 else 's'}: {few}")
