"""Did replies run to their length?"""

from collections.abc import Iterator

from analysis.gates.base import Evidence, Finding, Subject, finding


class RepliesLongEnough:
    """A reply that stops early weighs less than its cell's generation length says."""

    name = "replies-long-enough"
    why = "Early stops make prompts count unequally, and the text before an end differs from the text in the middle."
    symptom = "Rates of short replies are counted past their stop."
    expected = "at least half of n_predict emitted"
    looks_at: Subject = "cell"

    def check(self, evidence: Evidence) -> Iterator[Finding]:
        """Warn of cells with short replies."""
        for cell, samples in evidence.by_cell.items():
            short = [sample.index for sample in samples if 2 * sample.emitted < cell.n_predict]
            if short:
                saw = f"{len(short)} of {len(samples)} replies below {cell.n_predict / 2:g} tokens"
                yield finding(self, "warn", "cell", cell.id, saw)
