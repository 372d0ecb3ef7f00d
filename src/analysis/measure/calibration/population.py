"""Real prompts as a population: cells drawn from it, with intervals over prompts and, wrongly, over steps.

The prompts of one cell of a recorded run are taken for all there are; their ratio of sums is then the truth. Cells of
a few prompts are drawn from them. Steps within a prompt are alike, so that an interval that takes each step for a
replication is too narrow: it counts what it does not know.
"""

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from analysis.measure.calibration.coverage import Coverage, count
from analysis.records import Sample
from analysis.stats import Interval
from analysis.stats.intervals import SHARE, interval_of
from analysis.stats.resampling import Floats

SIZES = (3, 5, 10, 20, 40)
OVER_PROMPTS, OVER_STEPS = "over prompts", "over steps"
QUANTITIES = ("mean accepted length", "survival 1", "aggregate acceptance")
ENOUGH = 300
"""Prompts below which cells drawn from a population would share too many of them."""


def population_coverage(
    samples: Sequence[Sample],
    n_max: int,
    *,
    sizes: Iterable[int] = SIZES,
    replications: int = 1000,
    seed: int = 0,
) -> list[Coverage]:
    """Return how often intervals over prompts, and over steps, hold the population's value.

    The quantity's name is followed by what was resampled. Lengths are on the scale from 0 to 1 (accepted a step over
    `n_max`), so that widths compare.

    Args:
        samples: one a prompt, all of one cell.
        n_max: the most tokens a draft may have.
        sizes: prompts of the cells to draw.
        replications: cells to draw of each size.
        seed: of the drawing.

    Raises:
        ValueError: there are fewer prompts than the largest size.
    """
    steps = [_columns(sample, n_max) for sample in samples if any(sample.drafted)]
    totals = np.stack([columns.sum(axis=0) for columns in steps])
    rng = np.random.default_rng(seed)
    rows = []
    for size in sizes:
        found: dict[str, list[tuple[Interval, float]]] = {}
        for _ in range(replications):
            chosen = rng.choice(len(steps), size=size, replace=False)
            for name, interval, expected in _both(totals, steps, chosen):
                found.setdefault(name, []).append((interval, expected))
        rows += [count(name, size, pairs) for name, pairs in found.items()]
    return rows


def _both(totals: Floats, steps: Sequence[Floats], chosen: np.ndarray) -> Iterator[tuple[str, Interval, float]]:
    by_prompt, by_step = totals[chosen], np.concatenate([steps[place] for place in chosen])
    everything = totals.sum(axis=0)
    for place, quantity in enumerate(QUANTITIES):
        pair = [2 * place, 2 * place + 1]
        expected = float(everything[pair[0]] / everything[pair[1]])
        for over, sums in ((OVER_PROMPTS, by_prompt), (OVER_STEPS, by_step)):
            yield f"{quantity}, {over}", interval_of(sums[:, pair], _ratio, scale=SHARE), expected


def _columns(sample: Sample, n_max: int) -> Floats:
    """Return numerator and denominator of each quantity for each verification step: shape (steps, 6)."""
    drafted, accepted = np.array(sample.drafted), np.array(sample.accepted)
    d, a = drafted[drafted > 0].astype(np.float64), accepted[drafted > 0].astype(np.float64)
    one = np.ones_like(d)
    return np.column_stack([a, n_max * one, (a >= 1).astype(np.float64), one, a, d])


def _ratio(sums: Floats) -> Floats:
    return np.asarray(sums[..., 0] / sums[..., 1])
