"""Clusters instead of steps: sums per prompt, resampled or left out one at a time.

Every statistic of this room is a smooth function of sums over clusters (a cluster is a prompt, or a block of
legs). One pass over the steps makes the sums; resampling and the jackknife then cost the number of clusters,
not the number of steps, and statistics that share the sums are resampled together.
"""

from collections.abc import Callable
from functools import lru_cache

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr, ndtri

Floats = NDArray[np.float64]
# Takes sums of shape (..., columns) and returns values of shape (...).
Statistic = Callable[[Floats], Floats]

CHUNK_BYTES = 32 * 2**20


class Degenerate(Exception):
    """The sample does not say how much the statistic varies; the message says why."""


def cluster_sums(cluster: ArrayLike, *columns: ArrayLike) -> Floats:
    """Return the sum of each column in each cluster: shape (clusters, columns), clusters in order of appearance.

    Args:
        cluster: one label (text or number) a row.
        columns: one number a row each, of the same length.

    Raises:
        ValueError: the lengths differ.
    """
    labels = np.asarray(cluster)
    if any(np.shape(column) != labels.shape for column in columns):
        raise ValueError(f"columns of shapes {[np.shape(c) for c in columns]} beside clusters of {labels.shape}")
    codes, names = pd.factorize(labels)
    sums = np.empty((len(names), len(columns)))
    for place, column in enumerate(columns):
        sums[:, place] = np.bincount(codes, weights=np.asarray(column, dtype=np.float64), minlength=len(names))
    return sums


def resample(sums: Floats, *, resamples: int, seed: int) -> Floats:
    """Return the totals of bootstrap samples of the clusters: shape (resamples, columns).

    The clusters are drawn with replacement, in chunks of `CHUNK_BYTES` of weights. All columns of one resample
    come from the same draw, so that statistics computed from them are paired.

    Args:
        sums: shape (clusters, columns), from `cluster_sums`.
        resamples: how many samples to draw.
        seed: equal seeds draw equal clusters.
    """
    clusters = len(sums)
    chunk = max(1, CHUNK_BYTES // (8 * clusters))
    totals = np.empty((resamples, sums.shape[1]))
    for begin in range(0, resamples, chunk):
        count = min(chunk, resamples - begin)
        totals[begin : begin + count] = _weights(clusters, count, seed, begin) @ sums
    return totals


@lru_cache(maxsize=1)
def _weights(clusters: int, count: int, seed: int, begin: int) -> Floats:
    """Return how often each cluster was drawn: shape (count, clusters). Kept for the next statistic."""
    drawn = np.random.default_rng((seed, begin)).integers(0, clusters, size=(count, clusters))
    drawn += clusters * np.arange(count)[:, None]
    counts = np.bincount(drawn.ravel(), minlength=count * clusters)
    return counts.reshape(count, clusters).astype(np.float64)


def leave_one_out(sums: Floats) -> Floats:
    """Return the totals with each cluster left out in turn: shape (clusters, columns)."""
    return np.asarray(sums.sum(axis=0) - sums)


def jackknife_error(sums: Floats, statistic: Statistic) -> float:
    """Return the delete-one-cluster jackknife standard error of a statistic (Efron and Tibshirani 1993, 11.5).

    Raises:
        Degenerate: one cluster carries the whole denominator, or the clusters do not differ.
    """
    values = _finite(statistic(leave_one_out(sums)))
    spread = float(np.sum((values - values.mean()) ** 2))
    if spread <= 1e-24 * max(1.0, float(values.mean() ** 2)) * len(values):
        raise Degenerate("the clusters do not differ")
    return float(np.sqrt(spread * (len(values) - 1) / len(values)))


def bca_limits(sums: Floats, statistic: Statistic, *, level: float, resamples: int, seed: int) -> tuple[float, float]:
    """Return bias-corrected and accelerated bootstrap limits over clusters (Efron 1987).

    The acceleration comes from the jackknife over clusters; ties of resamples with the estimate count half.

    Raises:
        Degenerate: the resamples or the jackknife values are all alike, or some are not defined.
    """
    estimate = float(statistic(sums.sum(axis=0)[None, :])[0])
    values = _finite(statistic(resample(sums, resamples=resamples, seed=seed)))
    below = (np.mean(values < estimate) + np.mean(values <= estimate)) / 2
    if not 0 < below < 1 or np.ptp(values) == 0:
        raise Degenerate("the resamples lie on one side of the estimate")
    left_out = _finite(statistic(leave_one_out(sums)))
    deviations = left_out.mean() - left_out
    scale = float(np.sum(deviations**2))
    if scale == 0:
        raise Degenerate("the clusters do not differ")
    acceleration = float(np.sum(deviations**3)) / (6 * scale**1.5)
    bias = float(ndtri(below))
    tails = float(ndtri((1 - level) / 2)) * np.array([1.0, -1.0]) + bias
    shares = ndtr(bias + tails / (1 - acceleration * tails))
    low, high = np.quantile(values, shares)
    return float(low), float(high)


def _finite(values: Floats) -> Floats:
    if not np.isfinite(values).all():
        raise Degenerate("without some clusters the statistic is not defined")
    return values
