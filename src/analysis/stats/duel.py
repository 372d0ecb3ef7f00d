"""A duel of two legs: the ratio of their speeds over blocks, and how far speed drifted meanwhile."""

from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import linregress

from analysis.stats.intervals import LEVEL, MIN_CLUSTERS, Interval, no_interval, t_quantile

Order = Literal["abba", "baab"]
DRIFT_BLOCKS = MIN_CLUSTERS + 1
"""Blocks that a drift needs: a line takes two of them, and Student's t the others."""


def block_orders(blocks: int, seed: int) -> tuple[Order, ...]:
    """Return the order of the legs of each block: as many `abba` as `baab`, at random; of an odd number one more.

    Within a block both legs have the same mean position, so that a steady drift reaches both alike; orders that are
    random keep whatever recurs in time from siding with one leg. Asking for more blocks extends the list: it is
    drawn in pairs of one order each.
    """
    rng = np.random.default_rng(seed)
    pairs: Sequence[tuple[Order, Order]] = (("abba", "baab"), ("baab", "abba"))
    drawn = (pairs[int(rng.integers(2))] for _ in range((blocks + 1) // 2))
    return tuple(order for pair in drawn for order in pair)[:blocks]


def drift(log_values: ArrayLike, *, level: float = LEVEL) -> Interval:
    """Return the factor by which a value changed from the first block to the last: a line through its logarithms.

    Least squares with Student's t (blocks - 2 degrees of freedom).

    Args:
        log_values: the logarithm of one value a block, in the order of measuring, shape (blocks,).
        level: the confidence level.
    """
    values = np.asarray(log_values, dtype=np.float64)
    n = len(values)
    if n < DRIFT_BLOCKS:
        return no_interval(
            float("nan"), n=n, note=f"{n} blocks, and a drift needs {DRIFT_BLOCKS}", level=level, unit="blocks"
        )
    line = linregress(np.linspace(0.0, 1.0, n), values)
    half = t_quantile(n - 1, level) * float(line.stderr)
    found = Interval(
        estimate=float(line.slope),
        low=float(line.slope) - half,
        high=float(line.slope) + half,
        level=level,
        method="least squares t (log)",
        n=n,
        unit="blocks",
    )
    return found.map(lambda value: float(np.exp(value)))
