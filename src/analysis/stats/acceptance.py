"""Acceptance in its three meanings, each with its denominator, and intervals over prompts.

With A accepted of D drafted tokens in a verification step, at position k = 1..n:

* survival s_k: steps with A >= k, over all verification steps (llama-server's and vLLM's meaning);
* proposal rate r_k: steps with A >= k, over steps with D >= k (DeepSpec's evaluation);
* conditional acceptance c_k: steps with A >= k, over steps with A >= k - 1 and D >= k (the DSpark paper, figure 2).

If every step drafts n tokens, s_k = r_k and c_k = s_k / s_(k-1). Where drafts are cut short they part.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from analysis.stats.intervals import LEVEL, SHARE, Interval, Method, Scale, exact_share, interval_of
from analysis.stats.resampling import Floats, Statistic, cluster_sums


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """A share of steps with the counts behind it; `interval.n` counts the prompts that had such steps."""

    interval: Interval
    successes: int
    trials: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Acceptance:
    """What was accepted. The three tuples hold positions 1..n_max, in order.

    `steps` counts verification steps; `undrafted` counts target evaluations that had no draft to verify, which
    enter nothing here. `drafted` and `accepted` count tokens, so `aggregate` is accepted over drafted and
    `mean_length` is 1 + accepted / steps (tokens emitted a verification step).
    """

    survival: tuple[Rate, ...]
    proposal: tuple[Rate, ...]
    conditional: tuple[Rate, ...]
    mean_length: Interval
    aggregate: Interval
    steps: int
    undrafted: int
    drafted: int
    accepted: int
    prompts: int

    @property
    def undrafted_share(self) -> float:
        """Return the share of target evaluations that had no draft."""
        evaluations = self.steps + self.undrafted
        return self.undrafted / evaluations if evaluations else 0.0


def acceptance(
    drafted: ArrayLike,
    accepted: ArrayLike,
    prompt: ArrayLike,
    *,
    n_max: int,
    level: float = LEVEL,
    seed: int = 0,
    method: Method = "auto",
) -> Acceptance:
    """Return acceptance from step records.

    Args:
        drafted: tokens drafted in each target evaluation, shape (evaluations,); 0 where there was no draft.
        accepted: tokens accepted of them, same shape.
        prompt: the prompt of each evaluation (text or number), same shape.
        n_max: the most tokens a draft may have.
        level: the confidence level of the intervals.
        seed: of the resampling, where the method has any.
        method: how limits are found; see `stats.intervals.choose`.

    Raises:
        ValueError: lengths differ, more was accepted than drafted, or more drafted than `n_max`.
    """
    d, a, who = np.asarray(drafted, dtype=np.int64), np.asarray(accepted, dtype=np.int64), np.asarray(prompt)
    _check(d, a, who, n_max)
    verified = d > 0
    sums = cluster_sums(who[verified], *_columns(d[verified], a[verified], n_max))
    of = _Ratios(sums, level, method, seed)
    survived = range(_FIXED, _FIXED + n_max)
    return Acceptance(
        survival=tuple(of.rate(k, _STEPS) for k in survived),
        proposal=tuple(of.rate(k, k + n_max) for k in survived),
        conditional=tuple(of.rate(k, k + 2 * n_max) for k in survived),
        mean_length=of.interval(_ACCEPTED, _STEPS, Scale(1.0, 1.0 + n_max), 1.0),
        aggregate=of.interval(_ACCEPTED, _DRAFTED),
        steps=int(verified.sum()),
        undrafted=int((~verified).sum()),
        drafted=int(d.sum()),
        accepted=int(a.sum()),
        prompts=len(sums),
    )


@dataclass(frozen=True, slots=True)
class _Ratios:
    """Ratios of two columns of sums over prompts, shape (prompts, columns), with their intervals."""

    sums: Floats
    level: float
    method: Method
    seed: int

    def interval(self, numerator: int, denominator: int, scale: Scale = SHARE, offset: float = 0.0) -> Interval:
        pair = self.sums[:, [numerator, denominator]]
        used = pair[pair[:, 1] > 0]
        if scale is SHARE and len(used) and (used[:, 1] == 1).all():
            return exact_share(int(used[:, 0].sum()), len(used), level=self.level)
        return interval_of(used, _ratio(offset), scale=scale, level=self.level, method=self.method, seed=self.seed)

    def rate(self, numerator: int, denominator: int) -> Rate:
        successes, trials = self.sums[:, [numerator, denominator]].sum(axis=0)
        return Rate(interval=self.interval(numerator, denominator), successes=int(successes), trials=int(trials))


# Columns of the sums over prompts: these three, then for each position steps with A >= k, steps with D >= k,
# and steps with A >= k - 1 and D >= k.
_STEPS, _DRAFTED, _ACCEPTED, _FIXED = 0, 1, 2, 3


def _columns(drafted: np.ndarray, accepted: np.ndarray, n_max: int) -> list[np.ndarray]:
    positions = range(1, n_max + 1)
    return [
        np.ones(len(drafted)),
        drafted,
        accepted,
        *(accepted >= k for k in positions),
        *(drafted >= k for k in positions),
        *((accepted >= k - 1) & (drafted >= k) for k in positions),
    ]


def _ratio(offset: float) -> Statistic:
    def statistic(sums: Floats) -> Floats:
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray(offset + sums[..., 0] / sums[..., 1])

    return statistic


def _check(drafted: np.ndarray, accepted: np.ndarray, prompt: np.ndarray, n_max: int) -> None:
    if not drafted.shape == accepted.shape == prompt.shape or drafted.ndim != 1:
        raise ValueError(f"columns of shapes {drafted.shape}, {accepted.shape} and {prompt.shape}")
    if (accepted < 0).any() or (accepted > drafted).any():
        raise ValueError("a step accepted more tokens than it drafted, or fewer than none")
    if drafted.max(initial=0) > n_max:
        raise ValueError(f"a step drafted {drafted.max()} tokens where n_max is {n_max}")
