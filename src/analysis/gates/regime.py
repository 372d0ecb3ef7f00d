"""Is the emitted text of the kind that its cell is about?"""

from collections.abc import Iterator, Mapping

from analysis.gates.base import Evidence, Finding, Subject, finding
from analysis.records import Regime
from analysis.records.model import LabelKind

ALLOWED: Mapping[Regime, frozenset[LabelKind]] = {
    "invention": frozenset({"code"}),
    "continuation": frozenset({"code"}),
    "recall": frozenset({"recall"}),
    "prose": frozenset({"prose"}),
}
"""Which labels a regime takes. Loops, refusals and empty replies belong to none."""


class TextOfItsRegime:
    """Acceptance belongs to the text that was emitted, not to the prompt that was meant to bring it forth."""

    name = "text-of-its-regime"
    why = "Acceptance differs several times over between kinds of text; a loop is the easiest text of all."
    symptom = "One server shows 49 or 110 tokens a second, depending on the set of prompts."
    expected = "text of the cell's regime"
    looks_at: Subject = "sample"

    def check(self, evidence: Evidence) -> Iterator[Finding]:
        """Refuse samples whose text is of another kind."""
        for sample, cell in evidence.placed:
            if sample.label.kind not in ALLOWED[cell.regime]:
                saw = f"{sample.label.kind} in a cell of {cell.regime}: {sample.label.why}"
                yield finding(self, "refuse", "sample", sample.index, saw)
