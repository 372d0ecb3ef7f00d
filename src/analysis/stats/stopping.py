"""Sampling until an interval is narrow enough, with intervals that stay valid however often one looks.

A fixed-n interval that is looked at after every prompt, and reported when it pleases, misses the truth far more often
than it says. A confidence sequence holds the truth at all sizes at once with the stated probability, so that one may
stop whenever one likes; it is wider, and that is its price. Both sequences are about the mean over prompts of one value
a prompt: every prompt counts alike, however many steps it took.
"""

import math
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from analysis.stats.intervals import LEVEL, Interval, mean_t, no_interval
from analysis.stats.resampling import Floats

Kind = Literal["bounded", "normal"]

GRID = 1001
"""Candidate means that the betting sequence tests, ends included; a limit is rounded outwards to the next one."""

BET = 0.75
"""Share of the capital that a bet may risk: the authors' constant c, which they set to 1/2 or 3/4."""


@dataclass(frozen=True, slots=True)
class Sequence:
    """Running means and limits, one entry after each value: arrays of shape (values,)."""

    mean: Floats
    low: Floats
    high: Floats


def bounded_sequence(values: ArrayLike, *, level: float = LEVEL, low: float = 0.0, high: float = 1.0) -> Sequence:
    """Return the hedged betting confidence sequence for the mean of values that lie between known bounds.

    Two gamblers bet against each candidate mean, one that the values lie above it and one that they lie below; a
    candidate that has made either of them rich is out. Nothing is assumed of the values but their bounds and that
    each has the same mean given those before (Waudby-Smith and Ramdas 2024, Journal of the Royal Statistical Society
    B 86: 1-27, the hedged capital process with predictable plug-in bets).

    Args:
        values: one value a prompt, in the order of sampling.
        level: the probability that all limits hold the mean.
        low: the least that a value can be.
        high: the most that a value can be.

    Raises:
        ValueError: a value lies outside the bounds.
    """
    array = (np.asarray(values, dtype=np.float64) - low) / (high - low)
    if ((array < 0) | (array > 1)).any():
        raise ValueError(f"a value lies outside {low} to {high}")
    candidates = np.linspace(0, 1, GRID)
    bets = _plug_in_bets(array, 1 - level)[:, None]
    with np.errstate(divide="ignore"):
        above = np.minimum(bets, BET / candidates)
        below = np.minimum(bets, BET / (1 - candidates))
    distance = array[:, None] - candidates
    rich = np.maximum(np.cumsum(np.log1p(above * distance), axis=0), np.cumsum(np.log1p(-below * distance), axis=0))
    out = np.logical_or.accumulate(rich - math.log(2) >= -math.log(1 - level), axis=0)
    lows, highs = _ends(candidates, out)
    span = high - low
    return Sequence(mean=low + span * _running_mean(array), low=low + span * lows, high=low + span * highs)


def normal_sequence(values: ArrayLike, *, level: float = LEVEL, planned: int = 20) -> Sequence:
    """Return a confidence sequence for the mean of normal values of unknown variance, such as log speed ratios.

    The t statistic's likelihood ratio, mixed over a normal effect size of variance g, is a martingale for the true mean
    whatever the variance; means that make it exceed 1 / (1 - level) are out (Lai 1976, Annals of Statistics 4: 265-280;
    Wang and Ramdas 2025, Sequential Analysis 44: 56-110). Before the fourth value or so the limits are infinite.

    Args:
        values: one value a prompt, in the order of sampling.
        level: the probability that all limits hold the mean.
        planned: the number of values at which the sequence is to be narrowest; it is valid at all of them.
    """
    array = np.asarray(values, dtype=np.float64)
    n = np.arange(1, len(array) + 1)
    mean = _running_mean(array)
    with np.errstate(invalid="ignore", divide="ignore"):
        variance = (_running_mean(array**2) - mean**2) * n / (n - 1)
        half = _t_bound(n, 1 - level, planned) * np.sqrt(np.maximum(variance, 0) / n)
    half = np.where(np.isnan(half) | (n < 2), np.inf, half)
    return Sequence(mean=mean, low=np.maximum.accumulate(mean - half), high=np.minimum.accumulate(mean + half))


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """Whether to stop, why, and both intervals: the one that stays valid, and the fixed-n one beside it.

    `fixed` would be valid had the number of values been settled beforehand. `price` is the width of the valid one
    over its own; None where either is missing.
    """

    stop: bool
    why: Literal["narrow enough", "budget spent", "too wide"]
    valid: Interval
    fixed: Interval

    @property
    def price(self) -> float | None:
        """Return how many times wider the valid interval is."""
        if self.valid.limits is None or self.fixed.limits is None:
            return None
        return (self.valid.limits[1] - self.valid.limits[0]) / (self.fixed.limits[1] - self.fixed.limits[0])


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """Sample until the valid interval is at most `width` wide, or `budget` values are spent.

    `kind` says what is known of the values: `bounded` between `low` and `high`, or `normal` with any variance.
    """

    width: float
    budget: int
    kind: Kind = "bounded"
    low: float = 0.0
    high: float = 1.0
    level: float = LEVEL
    unit: str = "prompts"

    def decide(self, values: ArrayLike) -> Decision:
        """Return whether the values so far suffice. May be asked after every value."""
        array = np.asarray(values, dtype=np.float64)
        valid = self._valid(array)
        narrow = valid.limits is not None and valid.limits[1] - valid.limits[0] <= self.width
        spent = len(array) >= self.budget
        return Decision(
            stop=narrow or spent,
            why="narrow enough" if narrow else "budget spent" if spent else "too wide",
            valid=valid,
            fixed=mean_t(array, level=self.level, unit=self.unit),
        )

    def _valid(self, array: Floats) -> Interval:
        if not len(array):
            return no_interval(math.nan, n=0, note="no values yet", level=self.level, unit=self.unit)
        if self.kind == "bounded":
            sequence = bounded_sequence(array, level=self.level, low=self.low, high=self.high)
            method = "betting confidence sequence"
        else:
            sequence = normal_sequence(array, level=self.level, planned=self.budget)
            method = "t-mixture confidence sequence"
        base = no_interval(float(sequence.mean[-1]), n=len(array), note="-", level=self.level, unit=self.unit)
        low, high = float(sequence.low[-1]), float(sequence.high[-1])
        if not math.isfinite(high - low):
            few = f"1 {self.unit.removesuffix('s')} does" if len(array) == 1 else f"{len(array)} {self.unit} do"
            return replace(base, note=f"{few} not bound it yet")
        if low > high:
            return replace(base, note="no mean fits all values: they drift")
        return replace(base, low=low, high=high, method=method, note="")


def _plug_in_bets(values: Floats, alpha: float) -> Floats:
    """Return the bet before each value: it knows the ones before."""
    count = np.arange(1, len(values) + 1)
    mean = (0.5 + np.cumsum(values)) / (count + 1)
    variance = (0.25 + np.cumsum((values - mean) ** 2)) / (count + 1)
    known = np.concatenate([[0.25], variance[:-1]])
    return np.asarray(np.sqrt(2 * math.log(2 / alpha) / (known * count * np.log1p(count))))


def _ends(candidates: Floats, out: np.ndarray) -> tuple[Floats, Floats]:
    """Return the least and greatest candidate still in after each value, one grid step further out."""
    step = candidates[1]
    first = np.argmin(out, axis=1)
    last = len(candidates) - 1 - np.argmin(out[:, ::-1], axis=1)
    none = out.all(axis=1)
    lows = np.where(none, 1.0, np.maximum(candidates[first] - step, 0))
    highs = np.where(none, 0.0, np.minimum(candidates[last] + step, 1))
    return lows, highs


def _t_bound(n: np.ndarray, alpha: float, planned: int) -> Floats:
    """Return the largest |t| that the mixture still allows.

    The mixture of n values is sqrt(1/r) ((1 + t^2/v) / (1 + t^2/(v r)))^(n/2) with v = n - 1 and r = 1 + n g;
    g is set so that the bound is narrowest near `planned` values.
    """
    g = (2 * math.log(1 / alpha) + math.log(1 + 2 * math.log(1 / alpha))) / planned
    r = 1 + n * g
    k = (r / alpha**2) ** (1 / n)
    squared = np.where(k < r, (n - 1) * (k - 1) / (1 - k / r), np.inf)
    return np.asarray(np.sqrt(squared))


def _running_mean(values: Floats) -> Floats:
    return np.asarray(np.cumsum(values) / np.arange(1, len(values) + 1))
