"""Is the emitted text of the kind that its cell is about?"""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from analysis.gates.base import Evidence, Finding, Subject, finding
from analysis.gates.labels import (
    MAX_CODE_LINES,
    MAX_SPOKEN,
    MIN_FUNCTION_WORDS,
    MIN_PARSED,
    MIN_PLAIN,
    MIN_RECALLED,
    percent,
)
from analysis.records import Regime
from analysis.records.model import LabelKind

ALLOWED: Mapping[Regime, frozenset[LabelKind]] = {
    "invention": frozenset({"code"}),
    "continuation": frozenset({"code"}),
    "recall": frozenset({"recall"}),
    "prose": frozenset({"prose"}),
}
"""Which labels a regime takes. Loops, refusals and empty replies belong to none."""


_CODE = (
    f"code: at least {percent(MIN_PARSED)} of it parse behind the prompt, at most {percent(MAX_SPOKEN)} are comments, "
    "and it does not go in circles"
)
EXPECTED: Mapping[Regime, str] = {
    "invention": _CODE,
    "continuation": _CODE,
    "recall": f"recall: from its first letter on, at least {percent(MIN_RECALLED)} of it repeat what stands in the "
    "context behind the same beginning, and it does not go in circles",
    "prose": f"prose: at least {percent(MIN_PLAIN)} of it are plain words, at least {percent(MIN_FUNCTION_WORDS)} of "
    f"these English function words, at most {percent(MAX_CODE_LINES)} of it lines like code, and it does not go in "
    "circles",
}
"""What the text of a regime must be, from the limits that label it."""


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
                yield replace(finding(self, "refuse", "sample", sample.index, saw), expected=EXPECTED[cell.regime])
