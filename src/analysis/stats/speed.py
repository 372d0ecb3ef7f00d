"""Decode rates, what a step costs, and whether drafting pays. Times are milliseconds, rates tokens a second."""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import statsmodels.api as sm
from numpy.typing import ArrayLike

from analysis.stats.intervals import LEVEL, MIN_CLUSTERS, POSITIVE, Interval, interval_of, mean_t, no_interval
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

    Args:
        drafted: tokens drafted, shape (evaluations,); 0 where there was no draft.
        accepted: tokens accepted, same shape.
        ms: durations, same shape.
        prompt: the prompt of each evaluation, same shape.
        level: the confidence level.
    """
    d, a, time, who = (
        np.asarray(drafted),
        np.asarray(accepted),
        np.asarray(ms, dtype=np.float64),
        np.asarray(prompt),
    )
    groups: list[tuple[int | None, np.ndarray]] = [(None, d == 0)]
    groups += [(int(count), (d > 0) & (a == count)) for count in np.unique(a[d > 0])]
    return tuple(
        StepCost(accepted=count, steps=int(inside.sum()), ms=_mean_ms(time[inside], who[inside], level))
        for count, inside in groups
        if inside.any()
    )


def step_ms(ms: ArrayLike, prompt: ArrayLike, *, level: float = LEVEL) -> Interval:
    """Return the mean duration of the given steps, in milliseconds, with its interval over prompts."""
    return _mean_ms(np.asarray(ms, dtype=np.float64), np.asarray(prompt), level)


@dataclass(frozen=True, slots=True, kw_only=True)
class StepLaw:
    """Duration of a step as a sum: `ms = fixed + per_drafted D + per_accepted A (+ per_1000_depth depth/1000)`.

    All in milliseconds. A part that the steps cannot tell from the fixed one is None and named in `note`.
    `residual_ms` is the standard deviation of what the law leaves over.
    """

    fixed: Interval
    per_drafted: Interval | None
    per_accepted: Interval | None
    per_1000_depth: Interval | None
    residual_ms: float
    steps: int
    note: str = ""


def step_law(
    drafted: ArrayLike,
    accepted: ArrayLike,
    ms: ArrayLike,
    prompt: ArrayLike,
    *,
    depth: ArrayLike | None = None,
    level: float = LEVEL,
) -> StepLaw:
    """Fit the step law by least squares with errors that allow for alike steps within a prompt.

    The errors are statsmodels' cluster-robust ones with Student's t on prompts - 1 degrees of freedom. They are
    large-sample errors: below ten prompts they are too small, and no limits are shown.

    Args:
        drafted: tokens drafted, shape (evaluations,); 0 for undrafted evaluations.
        accepted: tokens accepted, same shape.
        ms: durations, same shape.
        prompt: the prompt of each evaluation, same shape.
        depth: tokens in the cache when the sample began, same shape; None leaves depth out.
        level: the confidence level.

    Raises:
        ValueError: there are fewer steps than parts to estimate.
    """
    time = np.asarray(ms, dtype=np.float64)
    offered = {"per_drafted": np.asarray(drafted, float), "per_accepted": np.asarray(accepted, float)}
    if depth is not None:
        offered["per_1000_depth"] = np.asarray(depth, float) / 1000
    kept = _told_apart(offered)
    if len(time) <= len(kept) + 1:
        raise ValueError(f"{len(time)} steps cannot give {len(kept) + 1} parts")
    groups = np.unique(np.asarray(prompt), return_inverse=True)[1]
    design = np.column_stack([np.ones(len(time)), *kept.values()])
    clustered = int(groups.max()) >= 1
    fit = sm.OLS(time, design).fit(
        cov_type="cluster" if clustered else "nonrobust",
        cov_kwds={"groups": groups} if clustered else None,
        use_t=True,
    )
    parts = dict(zip(["fixed", *kept], _coefficients(fit, int(groups.max()) + 1, level), strict=True))
    merged = [name for name in offered if name not in kept]
    return StepLaw(
        fixed=parts["fixed"],
        per_drafted=parts.get("per_drafted"),
        per_accepted=parts.get("per_accepted"),
        per_1000_depth=parts.get("per_1000_depth"),
        residual_ms=float(np.sqrt(fit.scale)),
        steps=len(time),
        note=f"not told apart from the other parts: {', '.join(merged)}" if merged else "",
    )


def speed_ratio(
    raw: ArrayLike, drafted: ArrayLike, prompt: ArrayLike, *, level: float = LEVEL, unit: str = "prompts"
) -> Interval:
    """Return the speed ratio drafted / raw, paired by prompt: the geometric mean over prompts.

    Student's t on the mean logarithm of each prompt's ratio, so that 2 and 1/2 are equally far from 1.

    Args:
        raw: decode rates without speculation, shape (pairs,).
        drafted: decode rates with speculation in the same order, same shape.
        prompt: what pairs are resampled by: the prompt, or the block of legs; same shape.
        level: the confidence level.
        unit: what `prompt` names.

    Raises:
        ValueError: a rate is not positive, or lengths differ.
    """
    r, d = np.asarray(raw, dtype=np.float64), np.asarray(drafted, dtype=np.float64)
    if not ((r > 0).all() and (d > 0).all()):
        raise ValueError("a decode rate is not positive")
    sums = cluster_sums(prompt, np.log(d / r), np.ones(len(r)))
    logs = mean_t(sums[:, 0] / sums[:, 1], level=level, unit=unit, minimum=MIN_CLUSTERS)
    ratio = logs.map(lambda value: float(np.exp(value)))
    return Interval(
        estimate=ratio.estimate,
        low=ratio.low,
        high=ratio.high,
        level=level,
        n=logs.n,
        unit=unit,
        note=logs.note,
        method="paired t (log)",
    )


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


def _told_apart(columns: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return the columns that add something to a constant and to those before them."""
    kept: dict[str, np.ndarray] = {}
    for name, column in columns.items():
        design = np.column_stack([np.ones(len(column)), *kept.values(), column])
        if np.linalg.matrix_rank(design.T @ design) == design.shape[1]:
            kept[name] = column
    return kept


LAW_PROMPTS = 10


def _coefficients(fit: Any, prompts: int, level: float) -> list[Interval]:
    limits = fit.conf_int(alpha=1 - level)
    if prompts < LAW_PROMPTS:
        note = f"{prompts} prompts, and cluster-robust errors need {LAW_PROMPTS}"
        return [no_interval(float(value), n=prompts, note=note, level=level) for value in fit.params]
    return [
        Interval(
            estimate=float(value),
            low=float(low),
            high=float(high),
            level=level,
            n=prompts,
            method="least squares, cluster-robust t",
        )
        for value, (low, high) in zip(fit.params, limits, strict=True)
    ]
