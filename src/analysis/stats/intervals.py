"""Intervals that say how they were made, and the choice of a method that suits few prompts."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betaincinv, stdtrit

from analysis.stats.resampling import Degenerate, Floats, Statistic, bca_limits, jackknife_error

LEVEL = 0.95
RESAMPLES = 2000
MIN_CLUSTERS = 3
"""Below this no interval is shown. At 3 the chosen method still covers 94 % over all populations that were tried."""

FEW_CLUSTERS = 8
"""Below this an interval is shown and called few: where prompts are of two kinds it is too narrow (see `choose`)."""

# Above this share of its range an estimate needs this many clusters; see `choose`.
NEAR_CEILING = ((0.9, 80), (0.85, 40), (0.8, 15))

Method = Literal["auto", "jackknife-t", "bca"]
"""How limits are found. `auto` is the jackknife t, for the reasons that `choose` gives."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """An estimate with its confidence interval, or with the reason why none is shown.

    `low` and `high` are None where the interval would not be trustworthy; `note` then says why, and a page shows
    the raw points instead. `n` counts the clusters that stand behind the estimate, in `unit`.
    """

    estimate: float
    low: float | None
    high: float | None
    level: float = LEVEL
    method: str
    n: int
    unit: str = "prompts"
    note: str = ""

    def __post_init__(self) -> None:
        """Refuse an interval that does not say what it is."""
        if not 0 < self.level < 1:
            raise ValueError(f"level {self.level} is not between 0 and 1")
        if (self.low is None) != (self.high is None):
            raise ValueError("an interval has two limits or none")
        if self.low is None and not self.note:
            raise ValueError("an interval that is not shown says why")
        if self.low is not None and self.high is not None and not self.low <= self.high:
            raise ValueError(f"interval upside down: [{self.low}, {self.high}]")
        if not self.method:
            raise ValueError("an interval names its method")

    @property
    def shown(self) -> bool:
        """Return whether there are limits to show."""
        return self.low is not None

    @property
    def limits(self) -> tuple[float, float] | None:
        """Return both limits, or None."""
        return None if self.low is None or self.high is None else (self.low, self.high)

    @property
    def few(self) -> bool:
        """Return whether there are limits, over so few clusters that two kinds of them may have gone unseen."""
        return self.shown and self.n < FEW_CLUSTERS

    def contains(self, value: float) -> bool:
        """Return whether the limits enclose a value; False where there are none."""
        return self.low is not None and self.high is not None and self.low <= value <= self.high

    def map(self, function: Callable[[float], float]) -> "Interval":
        """Return the interval of a monotone function of the quantity."""
        if self.low is None or self.high is None:
            return replace(self, estimate=function(self.estimate))
        low, high = sorted((function(self.low), function(self.high)))
        return replace(self, estimate=function(self.estimate), low=low, high=high)

    def format(self, *, decimals: int | None = None, percent: bool = False) -> str:
        """Return the estimate and the limits as text, such as `0.53 [0.46, 0.60]`.

        Args:
            decimals: digits after the point; None keeps two significant digits of the half-width.
            percent: show a share as per cent.
        """
        scale, sign = (100.0, " %") if percent else (1.0, "")
        if math.isnan(self.estimate):
            return "–"
        digits = _decimals(self, scale) if decimals is None else decimals
        estimate = f"{self.estimate * scale:.{digits}f}"
        if self.low is None or self.high is None:
            return f"{estimate}{sign} (no interval)"
        return f"{estimate} [{self.low * scale:.{digits}f}, {self.high * scale:.{digits}f}]{sign}"

    def describe(self) -> str:
        """Return how the interval was made, such as `95 %, jackknife t (logit), 8 prompts`."""
        if self.low is None:
            return f"no interval: {self.note}"
        made = f"{self.level * 100:g} %, {self.method}, {'few: ' if self.few else ''}{self.n} {self.unit}"
        return f"{made}; {self.note}" if self.note else made

    def __str__(self) -> str:
        """Return estimate, limits and how they were made."""
        return f"{self.format().removesuffix(' (no interval)')} ({self.describe()})"


def mean_t(values: ArrayLike, *, level: float = LEVEL, unit: str = "prompts", minimum: int = MIN_CLUSTERS) -> Interval:
    """Return Student's t interval of a mean.

    Args:
        values: one value a cluster.
        level: the confidence level.
        unit: what a cluster is.
        minimum: below this many values no interval is shown.
    """
    array = np.asarray(values, dtype=np.float64)
    n = len(array)
    estimate = float(array.mean()) if n else math.nan
    base = Interval(estimate=estimate, low=None, high=None, level=level, method="t", n=n, unit=unit, note="-")
    if n < minimum:
        return replace(base, note=_too_few(n, minimum, unit))
    half = t_quantile(n, level) * float(array.std(ddof=1)) / math.sqrt(n)
    if half <= 1e-12 * abs(estimate):
        return replace(base, note=f"the {unit} do not differ")
    return replace(base, low=estimate - half, high=estimate + half, note="")


def exact_share(successes: int, trials: int, *, level: float = LEVEL, unit: str = "prompts") -> Interval:
    """Return the exact interval of a share whose trials are single and independent (Clopper and Pearson 1934).

    Args:
        successes: trials that succeeded.
        trials: all of them, one a cluster.
        level: the confidence level.
        unit: what a cluster is.

    Raises:
        ValueError: there are more successes than trials, or fewer than none.
    """
    if not 0 <= successes <= trials:
        raise ValueError(f"{successes} successes in {trials} trials")
    if trials == 0:
        return no_interval(math.nan, n=0, level=level, unit=unit, note=f"no {unit}")
    low, high = _clopper_pearson(successes, trials, level)
    return Interval(estimate=successes / trials, low=low, high=high, level=level, method="exact", n=trials, unit=unit)


def no_interval(estimate: float, *, n: int, note: str, level: float = LEVEL, unit: str = "prompts") -> Interval:
    """Return an estimate without limits, and why it has none."""
    return Interval(estimate=estimate, low=None, high=None, level=level, method="none", n=n, unit=unit, note=note)


def t_quantile(n: int, level: float) -> float:
    """Return the two-sided quantile of Student's t for n clusters."""
    return float(stdtrit(n - 1, (1 + level) / 2))


@dataclass(frozen=True, slots=True)
class Scale:
    """Where a quantity lives; limits are found on a scale without ends and brought back.

    Both ends finite: logit. Only the lower one: logarithm. Neither: as it is.
    """

    low: float = -math.inf
    high: float = math.inf

    @property
    def name(self) -> str:
        """Return the name of the transformation, empty for none."""
        return "logit" if math.isfinite(self.high) else "log" if math.isfinite(self.low) else ""

    def limits(self, estimate: float, error: float, quantile: float) -> tuple[float, float]:
        """Return the limits from a standard error by the delta method.

        Args:
            estimate: strictly between the ends of the scale.
            error: its standard error, in its own unit.
            quantile: how many standard errors the limits lie away, such as Student's t (`t_quantile`).
        """
        if self.name == "logit":
            below, above = estimate - self.low, self.high - estimate
            width = quantile * error * (1 / below + 1 / above)
            low, high = (below * math.exp(min(sign * width, 700.0)) / above for sign in (-1, 1))
            span = self.high - self.low
            return self.low + span * low / (1 + low), self.low + span * high / (1 + high)
        if self.name == "log":
            above = estimate - self.low
            factor = math.exp(min(quantile * error / above, 700.0))
            return self.low + above / factor, self.low + above * factor
        return estimate - quantile * error, estimate + quantile * error


SHARE = Scale(0.0, 1.0)
POSITIVE = Scale(0.0)
REAL = Scale()


def interval_of(
    sums: Floats,
    statistic: Statistic,
    *,
    scale: Scale = REAL,
    level: float = LEVEL,
    unit: str = "prompts",
    method: Method = "auto",
    minimum: int = MIN_CLUSTERS,
    seed: int = 0,
) -> Interval:
    """Return the interval of a function of sums over clusters.

    Args:
        sums: shape (clusters, columns), from `cluster_sums`; clusters that carry nothing are left out before.
        statistic: from sums of shape (..., columns) to values of shape (...).
        scale: the range of the quantity, which decides the transformation.
        level: the confidence level.
        unit: what a cluster is.
        method: see `choose`.
        minimum: below this many clusters no interval is shown.
        seed: of the resampling, where there is any.
    """
    n = len(sums)
    estimate = float(statistic(sums.sum(axis=0)[None, :])[0]) if n else math.nan
    refused = choose(estimate, n, scale=scale, unit=unit, minimum=minimum)
    if refused:
        return no_interval(estimate, n=n, note=refused, level=level, unit=unit)
    if estimate in (scale.low, scale.high):
        return _all_alike(estimate, n, scale, level, unit)
    try:
        return _limits(sums, statistic, estimate, scale, level, unit, method, seed)
    except Degenerate as reason:
        return no_interval(estimate, n=n, note=str(reason).replace("clusters", unit), level=level, unit=unit)


def choose(estimate: float, n: int, *, scale: Scale, unit: str, minimum: int = MIN_CLUSTERS) -> str:
    """Return why no interval may be shown for an estimate from n clusters, or an empty string.

    The rules come from `benchmarks/coverage.py` (its tables: `benchmarks/results/coverage.txt`), which counts how often
    95 % intervals hold the truth in 800 populations of prompts: beta-distributed acceptance with means from 0.005 to
    0.995 and concentrations from 2 to 50, one in eight a mixture of two kinds of prompts.

    * The jackknife t on the logit scale covers 93 to 98 % at every size from 3 prompts on, as long as the estimate
      lies below 0.8 of its range. In the populations looked at by name BCa covers 56 to 75 % at 3 prompts, 62 to
      88 % at 5, 76 to 92 % at 10 and 85 to 96 % at 20, the percentile bootstrap much the same, and the jackknife t
      without the logit less than with it. So it is the method, and BCa is there to compare with.
    * Near the ceiling a few prompts seldom show the rare one that fails: with at most 10 prompts 82 to 86 % above
      0.85 and 74 to 81 % above 0.9. Coverage reaches 90 % above 0.8 with 15 prompts, above 0.85 with 40, and above 0.9
      with 80.
    * With these rules what is shown covers at least 92 % in every named population but one: where one prompt in four
      accepts nearly everything and the others little, 3 to 5 prompts often hold only one kind, and the mean length
      is covered in 75 to 77 %, the second conditional in 88 to 91 %. From 8 prompts on it is 91 % and more. A larger
      minimum would not close this hole: it is as deep at 5 prompts as at 3, while over all populations 3 prompts cover
      94 %. So intervals over fewer than 8 are shown, and whoever shows them says that they are few (`Interval.few`).
      Cells hold one kind of text for the same reason; more prompts are the only remedy.
    """
    if n < minimum:
        return _too_few(n, minimum, unit)
    if math.isnan(estimate):
        return "nothing to count"
    if math.isfinite(scale.high) and estimate < scale.high:
        share = (estimate - scale.low) / (scale.high - scale.low)
        needed = next((count for bound, count in NEAR_CEILING if share > bound), 0)
        if n < needed:
            return f"so near its ceiling an interval needs {needed} {unit}"
    return ""


def _limits(
    sums: Floats,
    statistic: Statistic,
    estimate: float,
    scale: Scale,
    level: float,
    unit: str,
    method: Method,
    seed: int,
) -> Interval:
    n = len(sums)
    note = ""
    if method == "bca":
        try:
            low, high = bca_limits(sums, statistic, level=level, resamples=RESAMPLES, seed=seed)
            return Interval(estimate=estimate, low=low, high=high, level=level, method="BCa", n=n, unit=unit)
        except Degenerate as reason:
            note = f"no BCa, because {reason}".replace("clusters", unit)
    low, high = scale.limits(estimate, jackknife_error(sums, statistic), t_quantile(n, level))
    made = f"jackknife t ({scale.name})" if scale.name else "jackknife t"
    return Interval(estimate=estimate, low=low, high=high, level=level, method=made, n=n, unit=unit, note=note)


def _all_alike(estimate: float, n: int, scale: Scale, level: float, unit: str) -> Interval:
    """Return the exact interval where every cluster lies at the same end of the scale.

    The mean share cannot lie further from that end than the share of clusters that do, which is binomial.
    """
    if not math.isfinite(scale.high):
        return no_interval(estimate, n=n, note=f"every one of the {unit} is 0", level=level, unit=unit)
    low, high = _clopper_pearson(n if estimate == scale.high else 0, n, level)
    span = scale.high - scale.low
    return Interval(
        estimate=estimate,
        low=scale.low + span * low,
        high=scale.low + span * high,
        level=level,
        method=f"exact, {unit} all alike",
        n=n,
        unit=unit,
    )


def _clopper_pearson(successes: int, trials: int, level: float) -> tuple[float, float]:
    tail = (1 - level) / 2
    low = float(betaincinv(successes, trials - successes + 1, tail)) if successes else 0.0
    high = float(betaincinv(successes + 1, trials - successes, 1 - tail)) if successes < trials else 1.0
    return low, high


def _too_few(n: int, minimum: int, unit: str) -> str:
    return f"{n} {unit.removesuffix('s') if n == 1 else unit}, and an interval needs {minimum}"


def _decimals(interval: Interval, scale: float) -> int:
    if interval.low is None or interval.high is None or interval.high == interval.low:
        width = abs(interval.estimate) * scale or 1.0
    else:
        width = (interval.high - interval.low) / 2 * scale
    return max(0, min(6, 1 - math.floor(math.log10(width))))
