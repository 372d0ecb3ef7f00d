"""A sweep: one pair measured at every combination of the values of some factors.

Every combination, and every raw leg that belongs to one, is a run of its own, named by a hash over its factors. So a
sweep that was cut off goes on where it stopped, two sweeps share the cells they have in common, and a finished cell is
never measured again. Its combinations follow one another in time: a sweep finds what is worth a duel.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd

from analysis.launch import read_machine, resolve_engine, server_argv
from analysis.launch.engine import engine_at
from analysis.measure.access import corpus_of
from analysis.measure.corpus import Corpus
from analysis.measure.estimate import acceptance_of, by_cell, interval_columns, rate_interval, rate_of, throughput
from analysis.measure.factors import Variant, variants
from analysis.measure.grid import Setting
from analysis.measure.legs import leg_of
from analysis.measure.plan import DRAFTED, RAW, Grid, check_context, check_together, load_grid, raw_leg
from analysis.measure.serving import serving_of
from analysis.measure.study import Plan, Study, measure_plan
from analysis.records import Cell, Sample
from analysis.stats import speed_ratio, verdict

QUANTITIES = ("mean accepted length", "acceptance", "decode rate", "throughput", "ratio")


@dataclass(frozen=True)
class Point:
    """One combination: its settings, its grid, what was measured of it, and its raw leg where there is one."""

    variant: Variant
    grid: Grid
    study: Study
    raw: Study | None = None


def measure_sweep(
    pair: str,
    factors: Sequence[str],
    *,
    profile: str = "quick",
    size: Mapping[str, object] | None = None,
    corpus: str = "",
    raw: bool = True,
    again: bool = False,
) -> list[Point]:
    """Measure what is still missing of a sweep, and return all of it, in the order of the combinations.

    Args:
        pair: a name from `data/pairs`, or the path of a TOML file.
        factors: each as `n_max=1,2,3`; see `factors.FACTORS`.
        profile: a name from `data/grids`.
        size: fields of `Grid` to change for all combinations; None as a value keeps the profile's.
        corpus: a directory with the text to prompt with; empty takes Python's standard library.
        raw: also measure the target without speculation, once for all combinations that share it.
        again: set aside what was measured before, and measure all of it anew.

    Raises:
        Problem: a factor, a value or something outside is not as it must be; said before anything is measured.
    """
    wanted = variants(serving_of(pair), factors)
    text = corpus_of(corpus)
    planned = [_plans(one, profile, dict(size or {}), text, raw=raw) for one in wanted]
    begun: set[str] = set()

    def measured(plan: Plan, files: Sequence[Path]) -> Study:
        fresh = again and plan.run_id not in begun
        begun.add(plan.run_id)
        return measure_plan(plan, files, remeasure=fresh)

    return [
        Point(
            variant=one.variant,
            grid=one.plan.grid,
            raw=measured(one.raw, one.files[:1]) if one.raw else None,
            study=measured(one.plan, one.files),
        )
        for one in planned
    ]


@dataclass(frozen=True)
class _Planned:
    variant: Variant
    plan: Plan
    raw: Plan | None
    files: Sequence[Path]


def _plans(variant: Variant, profile: str, size: dict[str, object], corpus: Corpus, *, raw: bool) -> _Planned:
    found = engine_at(variant.engine) if variant.engine else resolve_engine()
    grid = load_grid(profile, **(size | dict(variant.size)))
    check_context(grid, variant.served.pair.context)
    setting = Setting(machine=read_machine(), engine=found.engine, found=found, corpus=corpus)
    leg, files = leg_of(variant.served)
    check_together(grid, leg.at_once)
    if found.server:
        server_argv(found.server, leg.config, 0, Path(), found.options)  # a setting that cannot be served is said now
    alone = raw_leg(leg)
    drafts = leg.config.spec_type != "none"
    plan = Plan(variant.served.pair, profile, (leg if drafts else alone,), grid, setting)
    return _Planned(variant, plan, replace(plan, legs=(alone,)) if drafts and raw else None, files)


def sweep_frame(points: Sequence[Point]) -> pd.DataFrame:
    """Return a sweep's estimates: a row for each combination, regime, depth and quantity.

    Columns: a column a factor (as it was written), `regime`, `depth`, `quantity` (of `QUANTITIES`), those of every
    frame of estimates, and `verdict` and `equal_text` for the ratio, which is paired by prompt. The decode rate is a
    request's, in tokens/s; the throughput is that of all requests at once (see `together`).
    """
    return pd.DataFrame([row for point in points for row in _rows(point)])


def _rows(point: Point) -> list[dict[str, Any]]:
    leg = RAW if point.study.run.cells[0].spec_type == "none" else DRAFTED
    raw_of = {} if point.raw is None else {(c.regime, c.depth): s for c, s, _ in by_cell(point.raw, RAW)}
    rows: list[dict[str, Any]] = []
    for cell, samples, refused in by_cell(point.study, leg):
        if cell.depth not in point.grid.depths or cell.regime not in point.grid.regimes:
            continue
        key = dict(point.variant.settings) | {"regime": cell.regime, "depth": cell.depth}
        if leg == DRAFTED:
            found = acceptance_of(samples, cell)
            rows.append(key | {"quantity": "mean accepted length"} | interval_columns(found.mean_length, refused))
            rows.append(key | {"quantity": "acceptance"} | interval_columns(found.aggregate, refused))
        rate = rate_interval(samples)
        rows.append(key | {"quantity": "decode rate"} | interval_columns(rate, refused))
        rows.append(
            key | {"quantity": "throughput"} | interval_columns(throughput(rate, point.study.run, cell), refused)
        )
        if point.raw is not None:
            rows.append(
                key | {"quantity": "ratio"} | _ratio(raw_of.get((cell.regime, cell.depth), []), samples, refused)
            )
    return rows


def _ratio(raw: Sequence[Sample], drafted: Sequence[Sample], refused: str) -> dict[str, Any]:
    before = {sample.prompt_id: sample for sample in raw}
    pairs = [(before[sample.prompt_id], sample) for sample in drafted if sample.prompt_id in before]
    ratio = speed_ratio(
        [rate_of(first) for first, _ in pairs],
        [rate_of(second) for _, second in pairs],
        [second.prompt_id for _, second in pairs],
    )
    reason = refused or ("" if pairs else "no raw sample of the same prompts")
    equal = sum(first.tokens == second.tokens for first, second in pairs)
    return interval_columns(ratio, reason) | {
        "verdict": "undecided" if reason else verdict(ratio),
        "equal_text": equal,
    }


def cells_of_sweep(points: Sequence[Point]) -> list[Cell]:
    """Return every cell that a sweep spans, raw ones too, each once."""
    found = [
        cell
        for point in points
        for study in (point.raw, point.study)
        if study is not None
        for cell in study.run.cells
        if cell.depth in point.grid.depths and cell.regime in point.grid.regimes
    ]
    return list(dict.fromkeys(found))
