"""The derived statements of the two cards: what is claimed, and the formula over measured values that it rests on."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import MappingProxyType

from analysis.evidence import formula, published, tables
from analysis.evidence.formula import Formula
from analysis.evidence.printed import Printed
from analysis.evidence.tables import Line
from analysis.records.errors import Problem


@dataclass(frozen=True, slots=True)
class Claim:
    """A derived statement.

    `kind` is `number` (one formula against one printed number or range), `range` (a formula for either printed end)
    or `word` (a predicate). `reading` says how an open wording was read. `missing` names what a card would have to
    print before the claim can be judged; where it is not empty the verdict is `underdetermined`.
    """

    id: str
    card: str
    section: str
    quote: str
    printed: str
    number: Printed | None
    unit: str
    kind: str
    reading: str
    formulas: tuple[Formula, ...]
    missing: str
    note: str
    line: Line

    @property
    def names(self) -> frozenset[str]:
        """Return the ids of the rows, constants and claims that the formulas name."""
        return frozenset().union(*(f.names for f in self.formulas))


@cache
def claims(folder: Path | None = None) -> Mapping[str, Claim]:
    """Return all claims by id, in the order of the cards.

    Raises:
        Problem: a line of `claims.csv` is wrong, or a formula names an id that no table has (file, line, reason).
    """
    found = {claim.id: claim for claim in map(_claim, tables.read("claims", folder))}
    known = values(found, folder)
    for claim in found.values():
        for name in sorted(claim.names - known.keys()):
            raise claim.line.problem(f"the formula names {name!r}, which no row has")
    return MappingProxyType(found)


def values(found: Mapping[str, Claim], folder: Path | None = None) -> dict[str, Printed]:
    """Return everything that a formula may name: measured values, constants and the numbers of claims."""
    named = {claim.id: claim.number for claim in found.values() if claim.number is not None}
    measured = {row.id: row.printed for row in published.rows(folder).values()}
    return {**measured, **published.constants(folder), **named}


def _claim(line: Line) -> Claim:
    cells = line.cells
    texts = [cells[name] for name in ("formula", "formula_high") if cells[name]]
    if cells["kind"] != "range" and len(texts) > 1:
        raise line.problem(f"a {cells['kind']} has one formula")
    if cells["kind"] == "range" and len(texts) == 1:
        raise line.problem("a range has a formula for either end")
    if not texts and not cells["missing"]:
        raise line.problem("a claim needs a formula, or must say what is missing")
    return Claim(
        cells["id"],
        cells["card"],
        cells["section"],
        cells["quote"],
        cells["printed"],
        None if cells["kind"] == "word" else published.printed_of(line),
        cells["unit"],
        cells["kind"],
        cells["reading"],
        tuple(_formula(line, text) for text in texts),
        cells["missing"],
        cells["note"],
        line,
    )


def _formula(line: Line, text: str) -> Formula:
    try:
        return formula.read(text)
    except Problem as problem:
        raise line.problem(str(problem)) from None
