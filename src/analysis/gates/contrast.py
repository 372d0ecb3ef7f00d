"""Two cells set against each other: which one factor differs?"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from analysis.gates.base import Evidence, Finding, Subject, finding
from analysis.records import Cell, Problem

# Fields that change together because one decision sets them. The pair is a name for a drafter and its settings.
SPECULATION = frozenset({"pair", "spec_type", "n_max", "n_min", "p_min", "drafter_sha256"})
BUNDLES: Mapping[str, frozenset[str]] = {
    "drafter": frozenset({"pair", "drafter_sha256"}),
    "target": frozenset({"pair", "target_sha256"}),
    "kv": frozenset({"pair", "kv_k", "kv_v"}),
}


@dataclass(frozen=True, slots=True)
class Contrast:
    """Two cells that differ in one factor.

    `factor` is the name of a field of `Cell`, or of a decision that sets several: `speculation` (raw against
    drafted), `drafter` (another drafter file), `target` (another target file), `kv` (types of cached keys and values).
    """

    factor: str
    first: Cell
    second: Cell


def contrast(first: Cell, second: Cell) -> Contrast:
    """Return the contrast of two cells.

    Raises:
        Problem: they do not differ, or differ in more than one factor.
    """
    factor, complaint = _factor(first, second)
    if factor is None:
        raise Problem(
            f"cells {first.id} and {second.id} differ in {complaint}",
            expected="exactly one factor",
            remedy="compare cells that are alike in all the rest",
        )
    return Contrast(factor, first, second)


class OneFactor:
    """A contrast names the one factor that differs."""

    name = "one-factor"
    why = "If two things change at once, neither can be credited with the difference."
    symptom = "One file accepts two fifths on one backend and nine tenths on another."
    expected = "exactly one factor that differs"
    looks_at: Subject = "contrast"

    def check(self, evidence: Evidence) -> Iterator[Finding]:
        """Refuse contrasts of cells that differ in no factor or in several.

        Of servers that somebody else runs, the settings in a cell are not the server's word.
        """
        served = evidence.run.engine.source == "url"
        for first_id, second_id in evidence.contrasts:
            first, second = evidence.cell(first_id), evidence.cell(second_id)
            if first is None or second is None:
                complaint: str | None = "a cell that this run does not know"
            else:
                complaint = _factor(first, second)[1]
            if complaint:
                yield finding(self, "refuse", "contrast", f"{first_id} | {second_id}", f"differ in {complaint}")
            elif served:
                saw = "the servers do not tell their cache types, threads and batches"
                yield finding(self, "unchecked", "contrast", f"{first_id} | {second_id}", saw)


def _factor(first: Cell, second: Cell) -> tuple[str | None, str]:
    """Return the factor, or None and what differs instead."""
    differing = set(first.factors_that_differ(second))
    if (first.spec_type == "none") != (second.spec_type == "none") and differing <= SPECULATION:
        return "speculation", ""
    for name, bundle in BUNDLES.items():
        if differing <= bundle and differing - {"pair"}:
            return name, ""
    beside_name = differing - {"pair"}
    if len(beside_name) == 1:
        return beside_name.pop(), ""
    if not beside_name:
        return None, "nothing but a name" if differing else "nothing"
    return None, ", ".join(name for name in first.factors_that_differ(second))
