"""A recorded sweep taken apart: what one factor does to acceptance, to the cost of a step, and so to the speed.

Decoding emits L tokens an evaluation of the target, and an evaluation takes s milliseconds, so its rate is L / s. Raw
decoding emits one token an evaluation. With c = s over the raw evaluation's s, the speed ratio of drafted to raw is
exactly L / c: acceptance against cost. All three are geometric means over prompts, so that the quotient stays exact.

With several requests at once L stays a request's own, and s is the time of an evaluation in which the server drafts and
verifies for all of them; raw decoding beside it has as many requests at once. So L / c is still exact. That a drafted
evaluation has as many rows for each request, where the raw one has a row, is in c.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from analysis.convert.named import load_named
from analysis.measure.estimate import by_cell, interval_columns, rate_interval, throughput
from analysis.measure.plan import DRAFTED, RAW
from analysis.measure.study import Study, open_study
from analysis.records import Problem, Sample
from analysis.records.base import Name, record
from analysis.stats import Interval, speed_ratio, verdict

PARTS = ("tokens an evaluation", "cost of an evaluation", "ratio")


@record
class RecordedPoint:
    """One value of a factor: the run that measured it drafted, and the one that measured the target alone."""

    value: str
    run: str
    raw: str


@record
class RecordedFactor:
    """A factor that was varied alone. Of an ordered one the knee is looked for; else all are set against the first."""

    name: str
    title: str
    ordered: bool = False
    points: tuple[RecordedPoint, ...]


@record
class RecordedSweep:
    """Which runs make up a sweep: `data/sweeps`."""

    name: Name
    title: str
    factors: tuple[RecordedFactor, ...]
    note: str = ""


@dataclass(frozen=True)
class Point:
    """One value of a factor with what was measured of it."""

    value: str
    drafted: Study
    raw: Study


@dataclass(frozen=True)
class Factor:
    """A factor and its points, in order."""

    name: str
    title: str
    ordered: bool
    points: tuple[Point, ...]


def load_sweep(name_or_path: str | Path) -> RecordedSweep:
    """Return a recorded sweep by name, or from a TOML file.

    Raises:
        Problem: there is no such sweep, or its file is not valid.
    """
    return load_named(RecordedSweep, name_or_path, "sweeps", "sweep")


def open_factors(sweep: RecordedSweep) -> tuple[Factor, ...]:
    """Open every run of a sweep, each once.

    Raises:
        Problem: a run is missing or damaged, or two points of a factor differ in more than one factor of their cells.
    """
    names = {name for factor in sweep.factors for point in factor.points for name in (point.run, point.raw)}
    studies = {name: open_study(name) for name in sorted(names)}
    factors = tuple(
        Factor(
            factor.name,
            factor.title,
            factor.ordered,
            tuple(Point(point.value, studies[point.run], studies[point.raw]) for point in factor.points),
        )
        for factor in sweep.factors
    )
    for factor in factors:
        _require_one_factor(factor)
    return factors


def parts_frame(factor: Factor) -> pd.DataFrame:
    """Return, by value, regime and part (of `PARTS`), the columns of every frame of estimates, and `verdict`.

    The cost is in evaluations of the raw leg; the verdict is that of the ratio, the same in all three rows.
    """
    rows: list[dict[str, Any]] = []
    for point in factor.points:
        for regime, (pairs, refused) in _paired(point).items():
            reason = refused or ("" if pairs else "no raw sample of the same prompts")
            found = _parts(pairs)
            judged = "undecided" if reason else verdict(found["ratio"])
            key = {"value": point.value, "regime": regime, "verdict": judged}
            rows += [key | {"part": part} | interval_columns(found[part], reason) for part in PARTS]
    return pd.DataFrame(rows)


def rates_frame(factor: Factor) -> pd.DataFrame:
    """Return, by value, regime, leg and quantity, the columns of every frame of estimates, at the shallowest depth.

    The quantities, in tokens/s: `decode rate`, which is a request's, and `throughput`, which is that of all requests
    at once; with one request at a time they are the same.
    """
    rows: list[dict[str, Any]] = []
    for point in factor.points:
        shallowest = min(cell.depth for cell, _, _ in by_cell(point.drafted, DRAFTED))
        for leg, study in ((RAW, point.raw), (DRAFTED, point.drafted)):
            for cell, samples, refused in by_cell(study, leg):
                if cell.depth != shallowest:
                    continue
                rate = rate_interval(samples)
                found = {"decode rate": rate, "throughput": throughput(rate, study.run, cell)}
                key = {"value": point.value, "regime": cell.regime, "leg": leg}
                rows += [key | {"quantity": name} | interval_columns(of, refused) for name, of in found.items()]
    return pd.DataFrame(rows)


def change(factor: Factor, before: str, after: str, regime: str) -> dict[str, Interval]:
    """Return how many times as large each of `PARTS` is at one value as at another, paired by prompt.

    Raises:
        Problem: the factor has no such value.
    """
    first, second = (_point(factor, value) for value in (before, after))
    old, new = (_each_prompt(point, regime) for point in (first, second))
    both = [prompt for prompt in old if prompt in new]
    return {part: speed_ratio([old[p][part] for p in both], [new[p][part] for p in both], both) for part in PARTS}


def _parts(pairs: Sequence[tuple[Sample, Sample]]) -> dict[str, Interval]:
    each = {after.prompt_id: _of_prompt(before, after) for before, after in pairs}
    ones = [1.0] * len(each)
    return {part: speed_ratio(ones, [of[part] for of in each.values()], list(each)) for part in PARTS}


def _of_prompt(raw: Sample, drafted: Sample) -> dict[str, float]:
    tokens, cost = _tokens(drafted), _milliseconds(drafted) / _milliseconds(raw)
    return {"tokens an evaluation": tokens, "cost of an evaluation": cost, "ratio": tokens / (_tokens(raw) * cost)}


def _tokens(sample: Sample) -> float:
    """Return tokens an evaluation after the first token, which comes from the fill."""
    return (sample.emitted - 1) / len(sample.drafted)


def _milliseconds(sample: Sample) -> float:
    return sum(sample.step_ms) / len(sample.step_ms)


def _each_prompt(point: Point, regime: str) -> dict[str, dict[str, float]]:
    pairs, refused = _paired(point).get(regime, ([], ""))
    return {} if refused else {drafted.prompt_id: _of_prompt(raw, drafted) for raw, drafted in pairs}


def _paired(point: Point) -> dict[str, tuple[list[tuple[Sample, Sample]], str]]:
    """Return raw and drafted samples of a prompt by regime, at the shallowest depth, and why a cell is refused."""
    cells = list(by_cell(point.drafted, DRAFTED))
    shallowest = min(cell.depth for cell, _, _ in cells)
    raw = {(cell.regime, cell.depth): samples for cell, samples, _ in by_cell(point.raw, RAW)}
    found: dict[str, tuple[list[tuple[Sample, Sample]], str]] = {}
    for cell, samples, refused in cells:
        if cell.depth == shallowest:
            mates = {sample.prompt_id: sample for sample in raw.get((cell.regime, cell.depth), ())}
            found[cell.regime] = ([(mates[s.prompt_id], s) for s in samples if s.prompt_id in mates], refused)
    return found


def _point(factor: Factor, value: str) -> Point:
    for point in factor.points:
        if point.value == value:
            return point
    raise Problem(f"{factor.name} was not measured at {value!r}", expected=", ".join(p.value for p in factor.points))


# In what a drafted cell differs from the raw one beside it.
_OF_THE_DRAFT = frozenset({"pair", "spec_type", "n_max", "n_min", "p_min", "drafter_sha256"})


def _require_one_factor(factor: Factor) -> None:
    for point in factor.points:
        _require_same_target(factor, point)
    first = next(cell for cell in factor.points[0].drafted.run.cells if cell.spec_type != "none")
    for point in factor.points[1:]:
        drafted = (cell for cell in point.drafted.run.cells if cell.spec_type != "none")
        cell = next(cell for cell in drafted if (cell.regime, cell.depth) == (first.regime, first.depth))
        # A pair's name says nothing that its files and settings, which are factors themselves, do not say.
        differing = tuple(name for name in first.factors_that_differ(cell) if name != "pair")
        if len(differing) != 1:
            raise Problem(
                f"{factor.name} at {factor.points[0].value} and at {point.value} differ in {len(differing)} factors "
                f"({', '.join(differing) or 'none'})",
                expected="runs that differ in one",
            )


def _require_same_target(factor: Factor, point: Point) -> None:
    drafted = next(cell for cell in point.drafted.run.cells if cell.spec_type != "none")
    raw = next((c for c in point.raw.run.cells if (c.regime, c.depth) == (drafted.regime, drafted.depth)), None)
    differing = set(drafted.factors_that_differ(raw)) - _OF_THE_DRAFT if raw else {"regime or depth"}
    if differing:
        raise Problem(
            f"{factor.name} at {point.value}: {point.raw.run.id} differs in {', '.join(sorted(differing))}",
            expected="a raw leg that was served and prompted alike",
        )
