"""Two runs set against each other: the one factor in which they differ, and what it did, cell by cell."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from analysis.gates import Contrast, contrast
from analysis.measure.estimate import QUANTITIES, acceptance_of, rate_of, timings_refused
from analysis.measure.plan import CONTROL, DRAFTED, RAW
from analysis.measure.study import Study
from analysis.records import Cell, Problem, Sample
from analysis.stats import Interval, mean_t, speed_ratio

# Fields by which a cell of one run finds its counterpart in the other, the most specific first.
_KEYS: tuple[tuple[str, ...], ...] = (
    ("leg", "regime", "depth"),
    ("regime", "depth"),
    ("leg", "regime"),
    ("leg", "depth"),
)


@dataclass(frozen=True)
class Difference:
    """One quantity of two cells. `change` is second less first, or second over first for a rate; None if unpaired."""

    regime: str
    depth: str
    leg: str
    quantity: str
    first: Interval
    second: Interval
    change: Interval | None
    is_ratio: bool


@dataclass(frozen=True)
class Comparison:
    """What two runs differ in, what that changed, and the cells that should not differ, as a control.

    `paired` says whether both runs prompted with the same texts, so that changes are taken prompt by prompt. `refused`
    names the cells that could not be compared, and what gates refused of them.
    """

    first: Study
    second: Study
    factor: str
    paired: bool
    changes: tuple[Difference, ...]
    controls: tuple[Difference, ...]
    refused: tuple[str, ...] = ()


def compare_studies(first: Study, second: Study) -> Comparison:
    """Return the one-factor contrast of two runs.

    Raises:
        Problem: no cell of one has a counterpart in the other; cells differ in several factors, or not all in the
            same one; or nothing differs.
    """
    pairs = _matched(first.run.cells, second.run.cells)
    same = [(a, b) for a, b in pairs if not set(a.factors_that_differ(b)) - {"pair"}]
    contrasts = [contrast(a, b) for a, b in pairs if (a, b) not in same]
    same_text = first.run.corpus_sha256 == second.run.corpus_sha256
    factor = _one_factor(contrasts, same_text=same_text)
    changed = [(c.first, c.second) for c in contrasts] if contrasts else same
    paired = same_text and factor != "regime"
    return Comparison(
        first,
        second,
        factor,
        paired,
        tuple(d for a, b in changed for d in _differences(first, second, a, b, paired=paired)),
        tuple(d for a, b in same for d in _differences(first, second, a, b, paired=paired)) if contrasts else (),
        tuple(said for a, b in pairs for said in (*_refused(first, a), *_refused(second, b))) + _untimed(first, second),
    )


def _refused(study: Study, cell: Cell) -> tuple[str, ...]:
    """Return that gates left nothing of a cell, and which; nothing where they left something."""
    if _of_cell(study, cell):
        return ()
    gates = study.refused_by(cell)
    why = ", ".join(f"{gate} {count}" for gate, count in gates.most_common())
    said = f"all {gates.total()} samples are refused ({why})" if gates else "no sample was measured"
    return (f"{cell.regime} at {cell.depth}, {_leg(cell)}, of {study.run.id}: {said}",)


def _untimed(*studies: Study) -> tuple[str, ...]:
    found = ((study.run.id, timings_refused(study)) for study in studies)
    return tuple(f"rates of {run}: {why}" for run, why in found if why)


def _matched(first: Sequence[Cell], second: Sequence[Cell]) -> list[tuple[Cell, Cell]]:
    for fields in _KEYS:
        mine, theirs = _by_key(first, fields), _by_key(second, fields)
        if mine and theirs and (pairs := [(mine[key], theirs[key]) for key in mine if key in theirs]):
            return pairs
    raise Problem(
        "no cell of the first run has a counterpart in the second",
        expected="two runs with a regime and a depth in common",
        remedy="`specbook card RUN` lists the cells of a run",
    )


def _by_key(cells: Sequence[Cell], fields: tuple[str, ...]) -> dict[tuple[object, ...], Cell]:
    """Return cells by some of their fields; nothing where these do not tell them apart."""
    found = {tuple(_leg(cell) if name == "leg" else getattr(cell, name) for name in fields): cell for cell in cells}
    return found if len(found) == len(cells) else {}


def _leg(cell: Cell) -> str:
    return RAW if cell.spec_type == "none" else DRAFTED


def _one_factor(contrasts: Sequence[Contrast], *, same_text: bool) -> str:
    if not contrasts and same_text:
        raise Problem(
            "the runs differ in nothing",
            expected="exactly one factor",
            remedy="compare with a run of another setting, as `specbook sweep PAIR --vary n_max=1,4` measures them; "
            "`specbook card RUN` sets one run's own legs against each other",
        )
    factors = list(dict.fromkeys(found.factor for found in contrasts))
    if not same_text:
        factors.append("text prompted with")
    if len(factors) != 1:
        raise Problem(
            f"the runs differ in {', '.join(factors)}",
            expected="exactly one factor",
            remedy="compare runs that are alike in all the rest",
        )
    return factors[0].replace("_", " ")


def _differences(first: Study, second: Study, a: Cell, b: Cell, *, paired: bool) -> list[Difference]:
    legs = {_leg(a), _leg(b)}
    quantities: list[tuple[str, str, Callable[[Sample], float] | None]] = []
    if legs == {DRAFTED}:
        quantities += [("mean accepted length", "mean accepted length", lambda s: _length(s, a))]
        quantities += [("accepted / drafted", "acceptance", _acceptance)]
    if not (timings_refused(first) or timings_refused(second)):
        quantities += [("decode rate (tokens/s)", "decode rate", None)]
    mine, theirs = _of_cell(first, a), _of_cell(second, b)
    if not mine or not theirs:
        return []
    found = []
    for title, quantity, value in quantities:
        estimate = QUANTITIES[quantity][1]
        change = _change(mine, theirs, value) if paired else None
        place = {"regime": _both(a, b, "regime"), "depth": _both(a, b, "depth"), "leg": " | ".join(sorted(legs))}
        ends = estimate(mine, a), estimate(theirs, b)
        found.append(
            Difference(**place, quantity=title, first=ends[0], second=ends[1], change=change, is_ratio=value is None)
        )
    return found


def _change(
    first: Sequence[Sample], second: Sequence[Sample], value: Callable[[Sample], float] | None
) -> Interval | None:
    """Return the change, prompt by prompt; None where no prompt is in both."""
    theirs = {sample.prompt_id: sample for sample in second}
    pairs = [(sample, theirs[sample.prompt_id]) for sample in first if sample.prompt_id in theirs]
    if value is not None:
        pairs = [(a, b) for a, b in pairs if sum(a.drafted) and sum(b.drafted)]
    if not pairs:
        return None
    if value is None:
        return speed_ratio(
            [rate_of(a) for a, _ in pairs], [rate_of(b) for _, b in pairs], [a.prompt_id for a, _ in pairs]
        )
    change = mean_t([value(b) - value(a) for a, b in pairs])
    return replace(change, method=f"paired {change.method}") if change.shown else change


def _length(sample: Sample, cell: Cell) -> float:
    return acceptance_of([sample], cell).mean_length.estimate


def _acceptance(sample: Sample) -> float:
    return sum(sample.accepted) / sum(sample.drafted)


def _of_cell(study: Study, cell: Cell) -> list[Sample]:
    return [sample for sample in study.publishable if sample.cell == cell.id and sample.leg != CONTROL]


def _both(a: Cell, b: Cell, name: str) -> str:
    mine, theirs = getattr(a, name), getattr(b, name)
    return str(mine) if mine == theirs else f"{mine} | {theirs}"


def plain_difference(found: Difference) -> dict[str, Any]:
    """Return a difference as data that JSON can hold."""
    intervals = {"first": found.first, "second": found.second, "change": found.change}
    numbers = {
        name: None if one is None else {"estimate": one.estimate, "low": one.low, "high": one.high, "n": one.n}
        for name, one in intervals.items()
    }
    keys = ("regime", "depth", "leg", "quantity", "is_ratio")
    return {name: getattr(found, name) for name in keys} | numbers
