"""The measured values of the two cards: one row a value, with its quote and the factors that the card states."""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from pathlib import Path
from types import MappingProxyType

from analysis.evidence import tables
from analysis.evidence.interval import Interval
from analysis.evidence.printed import Printed, parse
from analysis.evidence.tables import Line
from analysis.records.errors import Problem

FACTORS = (
    "target",
    "drafter_file",
    "build",
    "backend",
    "machine",
    "depth",
    "regime",
    "n_max",
    "p_min",
    "context_size",
    "kv_type",
    "repeats",
    "prompt",
    "sampling",
    "tokens",
)
# Units that count things: a plain whole number in them is exact.
COUNTING_UNITS = frozenset({"tokens", "count"})


@dataclass(frozen=True, slots=True)
class Row:
    """A measured value of a card. `factors` holds what the card states and nothing else.

    `drafter_file` is `none` for raw decoding; `depth` is in tokens, or `short` where the card gives no number.
    """

    id: str
    card: str
    section: str
    quote: str
    quantity: str
    printed: Printed
    unit: str
    factors: dict[str, str]
    note: str
    line: Line


@cache
def rows(folder: Path | None = None) -> Mapping[str, Row]:
    """Return all measured values by id, in the order of the cards.

    Raises:
        Problem: a line of `values.csv` is wrong (file, line, reason).
    """
    return MappingProxyType({row.id: row for row in map(_row, tables.read("values", folder))})


@cache
def constants(folder: Path | None = None) -> Mapping[str, Printed]:
    """Return exact numbers that no card measured, by id: bits per weight of formats, bytes of units, model shapes.

    Raises:
        Problem: a line of `constants.csv` is wrong (file, line, reason).
    """
    return MappingProxyType({line.cells["id"]: _exact(line) for line in tables.read("constants", folder)})


def factors_that_differ(a: Row, b: Row) -> tuple[str, ...]:
    """Return the factors in which two rows differ, and those that only one of them states."""
    return tuple(name for name in FACTORS if a.factors.get(name, "") != b.factors.get(name, ""))


def depth_tokens(row: Row) -> float | None:
    """Return a row's depth in tokens, None where the card gives none."""
    depth = row.factors.get("depth", "")
    return float(depth) if depth.isdigit() else None


def _row(line: Line) -> Row:
    cells = line.cells
    printed = printed_of(line)
    _check_typed(line, printed)
    factors = {name: cells[name] for name in FACTORS if cells[name]}
    return Row(
        cells["id"],
        cells["card"],
        cells["section"],
        cells["quote"],
        cells["quantity"],
        printed,
        cells["unit"],
        factors,
        cells["note"],
        line,
    )


def printed_of(line: Line) -> Printed:
    """Return what the `printed` cell of a line means, in the line's unit.

    Raises:
        Problem: it is no number (file, line, reason), or the quote does not hold it.
    """
    text = line.cells["printed"]
    if text not in line.cells["quote"]:
        raise line.problem(f"{text!r} is not in the quote")
    try:
        return parse(text, whole=line.cells["unit"] in COUNTING_UNITS)
    except Problem as problem:
        raise line.problem(str(problem)) from None


def _check_typed(line: Line, printed: Printed) -> None:
    """Hold the typed value, or low and high, against the printed text: each guards the other against a slip."""
    value, low, high = (line.cells[name] for name in ("value", "low", "high"))
    if bool(value) == bool(low) or bool(low) != bool(high):
        raise line.problem("a row has either a value or both low and high")
    if low and Fraction(low) > Fraction(high):
        raise line.problem(f"the interval {low} to {high} is upside down")
    ends = (value, value) if value else (low, high)
    if (Fraction(ends[0]), Fraction(ends[1])) != (printed.first.centre, printed.last.centre):
        raise line.problem(f"{' to '.join(ends)} is not what {printed.text!r} says")


def _exact(line: Line) -> Printed:
    exact = Fraction(line.cells["value"])
    if line.cells["per"]:
        exact /= Fraction(line.cells["per"])
    end = Interval.exactly(exact)
    return Printed(line.cells["value"], end, end)
