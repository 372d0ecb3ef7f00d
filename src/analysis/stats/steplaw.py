"""What a step's duration is made of: a fixed part, a part per drafted and per accepted token, and depth."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from statsmodels.regression.linear_model import OLS

from analysis.stats.intervals import LEVEL, Interval, no_interval
from analysis.stats.resampling import Floats

LAW_PROMPTS = 5
"""Prompts below which the law shows no limits; see `step_law`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepLaw:
    """Duration of a step as a sum: `ms = fixed + per_drafted D + per_accepted A (+ per_1000_depth depth/1000)`.

    All in milliseconds. A part that the steps cannot tell from the others is None and named in `note`.
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
    minimum: int = LAW_PROMPTS,
) -> StepLaw:
    """Fit the step law by least squares with errors that allow for alike steps within a prompt.

    The errors are statsmodels' cluster-robust ones with Student's t on prompts - 1 degrees of freedom. In simulated
    prompts that differ in both costs (`benchmarks/results/coverage.txt`) they hold the part per accepted token in 91 to
    93 % at 3 to 10 prompts and the others in 93 to 95 %. Their covariance has a rank of at most prompts - 1, so
    that four parts need five prompts; below `minimum` no limits are shown. Evaluations of 0 ms are left out, as in
    `step_cost_by_accepted`.

    Args:
        drafted: tokens drafted, shape (evaluations,); 0 for undrafted evaluations.
        accepted: tokens accepted, same shape.
        ms: durations, same shape.
        prompt: the prompt of each evaluation, same shape.
        depth: tokens in the cache when the sample began, same shape; None leaves depth out.
        level: the confidence level.
        minimum: below this many prompts no limits are shown.

    Raises:
        ValueError: there are fewer steps than parts to estimate.
    """
    time, who = np.asarray(ms, dtype=np.float64), np.asarray(prompt)
    timed = time > 0
    offered = {"per_drafted": np.asarray(drafted, float)[timed], "per_accepted": np.asarray(accepted, float)[timed]}
    if depth is not None:
        offered["per_1000_depth"] = np.asarray(depth, float)[timed] / 1000
    kept = _told_apart(offered)
    merged = [name for name in offered if name not in kept]
    parts, residual = _fit(time[timed], kept, who[timed], level, minimum)
    return StepLaw(
        fixed=parts["fixed"],
        per_drafted=parts.get("per_drafted"),
        per_accepted=parts.get("per_accepted"),
        per_1000_depth=parts.get("per_1000_depth"),
        residual_ms=residual,
        steps=int(timed.sum()),
        note=f"not told apart from the other parts: {', '.join(merged)}" if merged else "",
    )


def _told_apart(columns: dict[str, Floats]) -> dict[str, Floats]:
    """Return the columns that add something to a constant and to those before them."""
    kept: dict[str, Floats] = {}
    for name, column in columns.items():
        design = np.column_stack([np.ones(len(column)), *kept.values(), column])
        if np.linalg.matrix_rank(design.T @ design) == design.shape[1]:
            kept[name] = column
    return kept


def _fit(
    time: Floats, columns: dict[str, Floats], prompt: Any, level: float, minimum: int
) -> tuple[dict[str, Interval], float]:
    if len(time) <= len(columns) + 1:
        raise ValueError(f"{len(time)} steps cannot give {len(columns) + 1} parts")
    names, groups = np.unique(prompt, return_inverse=True)
    model = OLS(time, np.column_stack([np.ones(len(time)), *columns.values()]))
    if len(names) < minimum:
        fit = model.fit()
        note = f"{len(names)} prompts, and cluster-robust errors need {minimum}"
        parts = [no_interval(float(value), n=len(names), note=note, level=level) for value in fit.params]
    else:
        fit = model.fit(cov_type="cluster", cov_kwds={"groups": groups}, use_t=True)
        rows = zip(fit.params, fit.conf_int(alpha=1 - level), strict=True)
        parts = [_part(float(value), limits, len(names), level) for value, limits in rows]
    return dict(zip(["fixed", *columns], parts, strict=True)), float(np.sqrt(fit.scale))


def _part(estimate: float, limits: Floats, prompts: int, level: float) -> Interval:
    method = "least squares, cluster-robust t"
    low, high = (float(limit) for limit in limits)
    return Interval(estimate=estimate, low=low, high=high, level=level, method=method, n=prompts)
