"""The audit: every derived statement of the cards recomputed from the values that the same cards print.

Verdicts, by comparing the recomputed interval with what the printed number may mean:

- `reproduces`: calculating with the printed digits gives the printed number.
- `rounding`: it does not, but some values that round to the printed digits would.
- `fails`: no values that round to the printed digits would.
- `underdetermined`: the card does not print what the claim rests on.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Literal, get_args

from analysis.evidence import claims as ledger
from analysis.evidence import formula
from analysis.evidence.claims import Claim
from analysis.evidence.interval import Interval
from analysis.evidence.predicates import Truth
from analysis.evidence.printed import Printed
from analysis.records.errors import Problem

Verdict = Literal["reproduces", "rounding", "fails", "underdetermined"]
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)


@dataclass(frozen=True, slots=True)
class Audited:
    """A claim with its verdict.

    `low` and `high` bound the recomputed number; for a word they bound the predicate's margin, which must not be
    negative. They are None where nothing can be computed. `off` is by how much a failing claim fails, in the
    claim's unit.
    """

    claim: Claim
    verdict: Verdict
    low: Fraction | None
    high: Fraction | None
    off: Fraction | None
    note: str

    def plain(self) -> dict[str, str | float | None]:
        """Return the seven fields that `specbook audit --json` prints."""
        return {
            "card": self.claim.card,
            "quote": self.claim.quote,
            "printed": self.claim.printed,
            "low": None if self.low is None else float(self.low),
            "high": None if self.high is None else float(self.high),
            "verdict": self.verdict,
            "note": self.note,
        }


def audit(card: str | None = None, folder: Path | None = None) -> list[Audited]:
    """Return every claim with its verdict, in the order of the cards.

    Args:
        card: only this card, `A` or `B`.
        folder: where the tables lie; the checkout's `data/published` if not given.

    Raises:
        Problem: a line of a table is wrong (file, line, reason).
    """
    found = ledger.claims(folder)
    known = ledger.values(found, folder)
    return [judge(claim, known) for claim in found.values() if card in (None, claim.card)]


def judge(claim: Claim, known: Mapping[str, Printed]) -> Audited:
    """Return one claim with its verdict.

    Raises:
        Problem: a formula cannot be evaluated (file, line, reason).
    """
    try:
        results = [formula.evaluate(f, known) for f in claim.formulas]
    except Problem as problem:
        raise claim.line.problem(str(problem)) from None
    if claim.kind == "word":
        return _judge_word(claim, results)
    return _judge_number(claim, [_as_number(claim, result) for result in results])


def _judge_word(claim: Claim, results: list[formula.Value]) -> Audited:
    if not results:
        return _underdetermined(claim, None, None)
    truth = results[0]
    if not isinstance(truth, Truth):
        raise claim.line.problem("a word's formula must be a predicate")
    margin = truth.margin
    if claim.missing:
        return _underdetermined(claim, margin.low, margin.high)
    verdict: Verdict = "reproduces" if truth.holds else "rounding" if truth.possible else "fails"
    said = {
        "reproduces": f"holds with a margin of {_show(margin.centre, claim.unit)}",
        "rounding": f"at the printed digits it is missed by {_show(-margin.centre, claim.unit)}, within their rounding",
        "fails": f"missed by {_show(-margin.centre, claim.unit)}",
    }[verdict]
    off = -margin.centre if verdict == "fails" else None
    return Audited(claim, verdict, margin.low, margin.high, off, _note(claim, said))


def _judge_number(claim: Claim, ends: list[Interval]) -> Audited:
    if not ends:
        return _underdetermined(claim, None, None)
    low, high = ends[0].low, ends[-1].high
    if claim.missing:
        return _underdetermined(claim, low, high)
    assert claim.number is not None
    claimed = [claim.number.first, claim.number.last] if claim.kind == "range" else [claim.number.interval]
    verdict = max((_compare(*pair) for pair in zip(ends, claimed, strict=True)), key=VERDICTS.index)
    bounds = f"{_show(low, '')} to {_show(high, claim.unit)}"
    said = {
        "reproduces": f"the printed digits give {_show_all(ends, claim.unit)}",
        "rounding": f"the printed digits give {_show_all(ends, claim.unit)}, their rounding allows {bounds}",
        "fails": f"the printed digits give {_show_all(ends, claim.unit)}, their rounding allows no more than {bounds}",
    }[verdict]
    off = max(end.gap(c) for end, c in zip(ends, claimed, strict=True)) if verdict == "fails" else None
    if off is not None:
        said += f"; off by {_show(off, claim.unit)}"
    repeated = sorted({name for f in claim.formulas for name in f.repeated})
    if repeated:
        said += f"; the bounds may be too wide, as {', '.join(repeated)} enters more than once"
    return Audited(claim, verdict, low, high, off, _note(claim, said))


def _compare(computed: Interval, claimed: Interval) -> Verdict:
    if claimed.holds(computed.centre):
        return "reproduces"
    return "rounding" if computed.overlaps(claimed) else "fails"


def _underdetermined(claim: Claim, low: Fraction | None, high: Fraction | None) -> Audited:
    return Audited(claim, "underdetermined", low, high, None, _note(claim, f"missing: {claim.missing}"))


def _as_number(claim: Claim, result: formula.Value) -> Interval:
    if isinstance(result, Truth):
        raise claim.line.problem("a number's formula must not be a predicate")
    return result


def _note(claim: Claim, said: str) -> str:
    reading = f"read as: {claim.reading}" if claim.reading else ""
    parts = (said, reading, claim.note.rstrip("."))
    return "; ".join(part for part in parts if part)


def _show_all(ends: list[Interval], unit: str) -> str:
    *before, last = (end.centre for end in ends)
    return " to ".join([*(_show(value, "") for value in before), _show(last, unit)])


def _show(value: Fraction, unit: str) -> str:
    text = f"{float(value):.4g}"
    return f"{text} {unit}" if unit not in ("", "1") else text
