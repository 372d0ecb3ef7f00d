"""From the samples of a study to frames of estimates: one row an estimate, with interval, number of prompts, refusal.

Only samples that no gate refuses enter. A cell that a gate refuses as a whole keeps its row, with the reason in
`refused` and no value.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import pandas as pd

from analysis.measure.plan import CONTROL, DRAFTED, RAW
from analysis.measure.study import Study
from analysis.records import Cell, Problem, Run, Sample
from analysis.stats import (
    Acceptance,
    Interval,
    acceptance,
    decode_rate,
    mean_t,
    speed_ratio,
    step_cost_by_accepted,
    step_ms,
    verdict,
)

Estimate = Callable[[Sequence[Sample], Cell], Interval]


def cells_of(study: Study, leg: str) -> list[Cell]:
    """Return the cells of one leg, by depth and in the order of regimes.

    Raises:
        Problem: they are of several machines; numbers of two machines are never pooled.
    """
    machines = sorted({cell.machine for cell in study.run.cells})
    if len(machines) > 1:
        raise Problem(
            f"the run {study.run.id} was measured on {len(machines)} machines",
            expected="one of them, by name",
            remedy=f"ask for {study.run.id}@{machines[0]}, or another of {', '.join(machines)}",
        )
    wanted = [cell for cell in study.run.cells if (cell.spec_type == "none") == (leg == RAW)]
    return sorted(wanted, key=lambda cell: cell.depth)


def steps_of(samples: Sequence[Sample]) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return the target evaluations of samples as columns: drafted, accepted, milliseconds, prompt id."""
    counts = [len(sample.drafted) for sample in samples]
    return (
        np.fromiter((d for sample in samples for d in sample.drafted), dtype=np.int64, count=sum(counts)),
        np.fromiter((a for sample in samples for a in sample.accepted), dtype=np.int64, count=sum(counts)),
        np.fromiter((ms for sample in samples for ms in sample.step_ms), dtype=np.float64, count=sum(counts)),
        np.repeat([sample.prompt_id for sample in samples], counts) if samples else np.array([], dtype=str),
    )


def acceptance_of(samples: Sequence[Sample], cell: Cell) -> Acceptance:
    """Return the acceptance of a cell's samples."""
    drafted, accepted, _, prompt = steps_of(samples)
    # a method without a setting for its longest draft may draft more than the pair says
    return acceptance(drafted, accepted, prompt, n_max=max(cell.n_max, int(drafted.max(initial=0))))


def acceptance_frame(study: Study) -> pd.DataFrame:
    """Return acceptance by regime, depth, meaning and draft position, with `successes` of `trials` steps."""
    rows: list[dict[str, Any]] = []
    for cell, samples, refused in by_cell(study, DRAFTED):
        found = acceptance_of(samples, cell)
        meanings = {"survival": found.survival, "proposal rate": found.proposal, "conditional": found.conditional}
        for meaning, rates in meanings.items():
            for position, rate in enumerate(rates, 1):
                if not (rate.trials or refused):
                    continue  # no step drafted so far: there is nothing to estimate
                key = {"regime": cell.regime, "depth": cell.depth, "meaning": meaning, "position": position}
                counts = {"successes": rate.successes, "trials": rate.trials}
                rows.append(key | counts | interval_columns(rate.interval, refused))
    return pd.DataFrame(rows)


def depth_frame(study: Study, quantity: str) -> pd.DataFrame:
    """Return one quantity by regime and depth.

    Args:
        study: what was measured.
        quantity: `mean accepted length` (tokens), `acceptance` (share of drafted tokens), `decode rate` or
            `raw decode rate` (tokens/s), `step` (ms), `fill` (tokens/s of the local text), `ttft` (ms).

    Raises:
        KeyError: no such quantity.
    """
    leg, estimate = QUANTITIES[quantity]
    return pd.DataFrame(
        {"regime": cell.regime, "depth": cell.depth} | interval_columns(estimate(samples, cell), refused)
        for cell, samples, refused in by_cell(study, leg, timed=quantity not in COUNTED)
    )


def acceptance_points(study: Study) -> pd.DataFrame:
    """Return each prompt's own acceptance: the keys of `acceptance_frame`, `prompt` and `value`."""
    rows: list[dict[str, Any]] = []
    for cell, samples, _ in by_cell(study, DRAFTED):
        for sample in samples:
            found = acceptance_of([sample], cell)
            meanings = {"survival": found.survival, "proposal rate": found.proposal, "conditional": found.conditional}
            rows += [
                {"regime": cell.regime, "depth": cell.depth, "meaning": meaning, "position": position}
                | {"prompt": sample.prompt_id, "value": rate.successes / rate.trials}
                for meaning, rates in meanings.items()
                for position, rate in enumerate(rates, 1)
                if rate.trials
            ]
    return pd.DataFrame(rows, columns=["regime", "depth", "meaning", "position", "prompt", "value"])


def depth_points(study: Study, quantity: str) -> pd.DataFrame:
    """Return each prompt's own value of a quantity: the keys of `depth_frame`, `prompt` and `value`."""
    leg, estimate = QUANTITIES[quantity]
    shown = quantity in COUNTED or not timings_refused(study)
    rows = [
        {"regime": cell.regime, "depth": cell.depth, "prompt": sample.prompt_id}
        | {"value": estimate([sample], cell).estimate}
        for cell, samples, _ in by_cell(study, leg)
        for sample in samples
        if shown
    ]
    frame = pd.DataFrame(rows, columns=["regime", "depth", "prompt", "value"])
    return frame[frame["value"].notna()]


def ratio_frame(study: Study) -> pd.DataFrame:
    """Return the speed ratio of drafted over raw by regime and depth, with verdict and equality of texts.

    Samples are paired by prompt; `equal_text` counts the pairs that emitted the same tokens.
    """
    raw_of = {(cell.regime, cell.depth): samples for cell, samples, _ in by_cell(study, RAW)}
    rows = []
    for cell, samples, refused in by_cell(study, DRAFTED, timed=True):
        raw = {sample.prompt_id: sample for sample in raw_of.get((cell.regime, cell.depth), ())}
        pairs = [(raw[sample.prompt_id], sample) for sample in samples if sample.prompt_id in raw]
        ratio = speed_ratio(
            [rate_of(before) for before, _ in pairs],
            [rate_of(after) for _, after in pairs],
            [after.prompt_id for _, after in pairs],
        )
        reason = refused or ("" if pairs else "no raw sample of the same prompts")
        equal = sum(before.tokens == after.tokens for before, after in pairs)
        key = {"regime": cell.regime, "depth": cell.depth, "equal_text": equal, "pairs": len(pairs)}
        rows.append(key | interval_columns(ratio, reason) | {"verdict": "undecided" if reason else verdict(ratio)})
    return pd.DataFrame(rows)


def step_frame(study: Study) -> pd.DataFrame:
    """Return the duration of a step (ms) by accepted tokens, one series a depth, regimes together.

    What a step costs depends on the rows it evaluates and the depth it attends over, not on the kind of text.
    """
    rows: list[dict[str, Any]] = []
    for depth in sorted({cell.depth for cell in cells_of(study, DRAFTED)}):
        samples = [s for cell, found, _ in by_cell(study, DRAFTED) if cell.depth == depth for s in found]
        drafted, accepted, ms, prompt = steps_of(samples)
        timed = ms > 0  # an evaluation that was replayed has no duration of its own
        for cost in step_cost_by_accepted(drafted[timed], accepted[timed], ms[timed], prompt[timed]):
            kind = "without a draft" if cost.accepted is None else "drafted"
            key = {"series": f"depth {depth}", "depth": depth, "kind": kind, "accepted": cost.accepted or 0}
            rows.append(key | {"steps": cost.steps} | interval_columns(cost.ms, timings_refused(study)))
    return pd.DataFrame(rows)


def labels_frame(study: Study) -> pd.DataFrame:
    """Return how many samples of each regime bear each label, and how many of them are kept.

    Of a run with both legs the drafted one is counted: greedy decoding writes the same text twice.
    """
    cells = {cell.id: cell for cell in cells_of(study, DRAFTED) or study.run.cells}
    kept = {sample.index for sample in study.publishable}
    rows = [
        {
            "regime": cells[sample.cell].regime,
            "label": sample.label.kind,
            "samples": 1,
            "kept": int(sample.index in kept),
        }
        for sample in study.samples
        if sample.cell in cells
    ]
    frame = pd.DataFrame(rows, columns=["regime", "label", "samples", "kept"])
    return frame.groupby(["regime", "label"], as_index=False, sort=False)[["samples", "kept"]].sum()


def rate_of(sample: Sample) -> float:
    """Return a sample's decode rate in tokens/s: all tokens but the first, over the time of its steps."""
    return 1e3 * (sample.emitted - 1) / sum(sample.step_ms)


def rate_interval(samples: Sequence[Sample]) -> Interval:
    """Return the pooled decode rate of samples in tokens/s: each sample's tokens, but the first, over its own time."""
    return decode_rate(
        [sample.emitted for sample in samples],
        [sum(sample.step_ms) for sample in samples],
        [sample.prompt_id for sample in samples],
    )


def throughput(rate: Interval, run: Run, cell: Cell) -> Interval:
    """Return what the server emitted a second over all requests that were decoding at once, in tokens/s.

    While all its slots decode requests of one cell, a second of the server is a second of each of them, so that it
    emits the pooled decode rate that many times. Filling the cache is not in it. Of a server that somebody else runs
    one slot is asked, however many it has.

    Args:
        rate: the pooled decode rate of the cell's requests, one by one.
        run: the run of the cell.
        cell: the cell; its slots are the requests at once.
    """
    at_once = 1 if run.engine.source == "url" else cell.parallel
    return rate.map(lambda value: at_once * value)


def _mean_length(samples: Sequence[Sample], cell: Cell) -> Interval:
    return acceptance_of(samples, cell).mean_length


def _aggregate(samples: Sequence[Sample], cell: Cell) -> Interval:
    return acceptance_of(samples, cell).aggregate


def _rate(samples: Sequence[Sample], cell: Cell) -> Interval:
    del cell
    return rate_interval(samples)


def _step(samples: Sequence[Sample], cell: Cell) -> Interval:
    del cell
    drafted, _, ms, prompt = steps_of(samples)
    verified = drafted > 0
    return step_ms(ms[verified], prompt[verified])


def _fill(samples: Sequence[Sample], cell: Cell) -> Interval:
    del cell
    return mean_t([1e3 * s.prompt_n / s.prompt_ms for s in samples if s.prompt_ms > 0])


def _ttft(samples: Sequence[Sample], cell: Cell) -> Interval:
    del cell
    return mean_t([sample.ttft_ms for sample in samples])


COUNTED = ("mean accepted length", "acceptance")
"""Quantities in which no duration enters."""

QUANTITIES: dict[str, tuple[str, Estimate]] = {
    "mean accepted length": (DRAFTED, _mean_length),
    "acceptance": (DRAFTED, _aggregate),
    "decode rate": (DRAFTED, _rate),
    "raw decode rate": (RAW, _rate),
    "step": (DRAFTED, _step),
    "fill": (DRAFTED, _fill),
    "raw fill": (RAW, _fill),
    "ttft": (DRAFTED, _ttft),
    "raw ttft": (RAW, _ttft),
}


def timings_refused(study: Study) -> str:
    """Return why no duration or rate of a run may be published; nothing where they may."""
    found = (f for f in study.findings if f.level == "refuse" and f.where.kind == "timing")
    return next((f"{one.gate}: {one.saw}" for one in found), "")


def by_cell(study: Study, leg: str, *, timed: bool = False) -> Iterable[tuple[Cell, list[Sample], str]]:
    """Yield each cell of a leg with its publishable samples and the reason, if any, why it is refused as a whole.

    With `timed`, what is to be estimated takes durations: a run whose timings are refused then refuses every cell.
    """
    untimed = timings_refused(study) if timed else ""
    by_cell: dict[str, list[Sample]] = {}
    for sample in study.publishable:
        if sample.leg != CONTROL:
            by_cell.setdefault(sample.cell, []).append(sample)
    refusals = (found for found in study.findings if found.level == "refuse" and found.where.kind == "cell")
    reasons = {found.where.id: f"{found.gate}: {found.saw}" for found in refusals}
    for cell in cells_of(study, leg):
        samples = by_cell.get(cell.id, [])
        reason = reasons.get(cell.id, "") or untimed or ("" if samples else "no sample that may be published")
        yield cell, samples, reason


def interval_columns(interval: Interval, refused: str) -> dict[str, Any]:
    """Return an interval as the columns that every frame of estimates has; nothing of it where it is refused."""
    if refused:
        return {"estimate": np.nan, "low": np.nan, "high": np.nan, "n": interval.n, "method": "", "refused": refused}
    return {
        "estimate": interval.estimate,
        "low": np.nan if interval.low is None else interval.low,
        "high": np.nan if interval.high is None else interval.high,
        "n": interval.n,
        "method": interval.method if interval.shown else "",
        "note": interval.note,
        "refused": "",
    }
