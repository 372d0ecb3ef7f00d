"""Decode rates, what a step costs, and whether drafting pays. Times are milliseconds, rates tokens a second."""

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from analysis.stats.intervals import LEVEL, POSITIVE, Interval, interval_of, mean_t
from analysis.stats.resampling import Floats, cluster_sums

Verdict = Literal["pays", "loses", "undecided"]


def decode_rate(emitted: ArrayLike, decode_ms: ArrayLike, prompt: ArrayLike, *, level: float = LEVEL) -> Interval:
    """Return tokens a second while decoding: the sum of (emitted - 1) over the sum of times.

    The first token of a sample comes from the fill, so it counts in neither sum.

    Args:
        emitted: tokens each sample emitted, shape (samples,).
        decode_ms: the sum of the step durations of each sample, same shape.
        prompt: the prompt of each sample, same shape.
        level: the confidence level.

    Raises:
        ValueError: lengths differ.
    """
    tokens, ms = np.asarray(emitted, dtype=np.float64) - 1, np.asarray(decode_ms, dtype=np.float64)
    timed = (tokens > 0) & (ms > 0)
    sums = cluster_sums(np.asarray(prompt)[timed], tokens[timed], ms[timed])
    return interval_of(sums, _rate, scale=POSITIVE, level=level)


@dataclass(frozen=True, slots=True, kw_only=True)
class StepCost:
    """Duration of the target evaluations that accepted `accepted` tokens; None for those without a draft."""

    accepted: int | None
    steps: int
    ms: Interval


def step_cost_by_accepted(
    drafted: ArrayLike, accepted: ArrayLike, ms: ArrayLike, prompt: ArrayLike, *, level: float = LEVEL
) -> tuple[StepCost, ...]:
    """Return the mean duration of a step by the number of tokens it accepted, undrafted evaluations first.

    Undrafted evaluations of 0 ms are left out: they repeat accepted tokens after a checkpoint was restored, and
    their time was counted with the draft that made them necessary.

    Args:
        drafted: tokens drafted, shape (evaluations,); 0 where there was no draft.
        accepted: tokens accepted, same shape.
        ms: durations, same shape.
        prompt: the prompt of each evaluation, same shape.
        level: the confidence level.

    Raises:
        ValueError: lengths differ.
    """
    d, a, time, who = (
        np.asarray(drafted),
        np.asarray(accepted),
        np.asarray(ms, dtype=np.float64),
        np.asarray(prompt),
    )
    groups: list[tuple[int | None, np.ndarray]] = [(None, (d == 0) & (time > 0))]
    groups += [(int(count), (d > 0) & (a == count)) for count in np.unique(a[d > 0])]
    return tuple(
        StepCost(accepted=count, steps=int(inside.sum()), ms=_mean_ms(time[inside], who[inside], level))
        for count, inside in groups
        if inside.any()
    )


def step_ms(ms: ArrayLike, prompt: ArrayLike, *, level: float = LEVEL) -> Interval:
    """Return the mean duration of the given steps, in milliseconds, with its interval over prompts.

    Args:
        ms: durations, shape (steps,).
        prompt: the prompt of each step, same shape.
        level: the confidence level.

    Raises:
        ValueError: lengths differ.
    """
    return _mean_ms(np.asarray(ms, dtype=np.float64), np.asarray(prompt), level)


def speed_ratio(
    raw: ArrayLike,
    drafted: ArrayLike,
    prompt: ArrayLike | None = None,
    *,
    level: float = LEVEL,
    unit: str = "prompts",
) -> Interval:
    """Return the speed ratio drafted / raw, paired by prompt: the geometric mean over prompts.

    Student's t on the mean logarithm of each prompt's ratio, so that 2 and 1/2 are equally far from 1.

    Args:
        raw: decode rates without speculation, shape (pairs,).
        drafted: decode rates with speculation in the same order, same shape.
        prompt: what pairs are grouped by: the prompt, or the block of legs; same shape. None: each pair alone.
        level: the confidence level.
        unit: what `prompt` names.

    Raises:
        ValueError: a rate is not positive, or lengths differ.
    """
    r, d = np.asarray(raw, dtype=np.float64), np.asarray(drafted, dtype=np.float64)
    if not ((r > 0).all() and (d > 0).all()):
        raise ValueError("a decode rate is not positive")
    who = np.arange(len(r)) if prompt is None else prompt
    sums = cluster_sums(who, np.log(d / r), np.ones(len(r)))
    logs = mean_t(sums[:, 0] / sums[:, 1], level=level, unit=unit)
    ratio = logs.map(lambda value: float(np.exp(value)))
    return replace(ratio, method="paired t (log)")


def verdict(ratio: Interval) -> Verdict:
    """Return what a speed ratio says: *pays* above 1, *loses* below 1, else *undecided*, which is an answer."""
    if ratio.low is not None and ratio.low > 1:
        return "pays"
    if ratio.high is not None and ratio.high < 1:
        return "loses"
    return "undecided"


def _rate(sums: Floats) -> Floats:
    return np.asarray(1000 * sums[..., 0] / sums[..., 1])


def _mean(sums: Floats) -> Floats:
    return np.asarray(sums[..., 0] / sums[..., 1])


def _mean_ms(ms: np.ndarray, prompt: np.ndarray, level: float) -> Interval:
    return interval_of(cluster_sums(prompt, ms, np.ones(len(ms))), _mean, scale=POSITIVE, level=level)
