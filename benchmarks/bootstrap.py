"""Cluster bootstrap of a million steps in 2,000 prompts with 2,000 resamples, beside a loop over scipy's.

`python benchmarks/bootstrap.py` times four ways to survival, proposal rate and conditional acceptance at five
positions, mean accepted length and aggregate acceptance:

* the library's default (jackknife t over prompts) and its BCa;
* a loop over `scipy.stats.bootstrap` that resamples prompts and counts their steps anew, as one writes it without sums
  per prompt. It is timed for one quantity and `FEW` resamples and scaled up; percentile limits spare it the jackknife;
* the same loop, but over this library's sums per prompt, with BCa (making the sums is not in its time).
"""

import resource
import time
from collections.abc import Callable

import numpy as np
from scipy import stats

from analysis.stats import acceptance
from analysis.stats.intervals import RESAMPLES
from analysis.stats.resampling import cluster_sums

STEPS, PROMPTS, DRAFT = 1_000_000, 2_000, 5
FEW = 40


def measure() -> list[dict[str, str]]:
    """Return the times as rows of the README's table."""
    rng = np.random.default_rng(0)
    who = np.repeat(np.arange(PROMPTS), STEPS // PROMPTS)
    accepted = np.minimum(rng.geometric(1 - rng.beta(6, 4, size=PROMPTS)[who]) - 1, DRAFT)
    drafted = np.full(STEPS, DRAFT)
    pairs = ratios(drafted, accepted, who)
    before = peak_mib()
    acceptance(drafted, accepted, who, n_max=DRAFT)  # the first call also imports and faults pages in
    quick = seconds(lambda: acceptance(drafted, accepted, who, n_max=DRAFT))
    bca = seconds(lambda: acceptance(drafted, accepted, who, n_max=DRAFT, method="bca"))
    memory = peak_mib() - before
    over_steps = seconds(lambda: scipy_over_steps(accepted, who), repeats=1) * len(pairs) * RESAMPLES / FEW
    over_sums = seconds(lambda: [scipy_over_sums(pair) for pair in pairs], repeats=1)
    size = f"{STEPS:,} steps in {PROMPTS:,} prompts, {len(pairs)} quantities"
    scaled = f"one quantity and {FEW} resamples timed and scaled up"
    return [
        row("acceptance with its default intervals", f"{quick:.2f} s", "< 2 s", size),
        row("the same with BCa", f"{bca:.2f} s", "< 2 s", f"{RESAMPLES:,} resamples, {memory:.0f} MiB above the data"),
        row("loop over scipy.stats.bootstrap, counting steps anew", f"{over_steps / bca:.0f} x BCa", "≥ 20 x", scaled),
        row("the same loop over our sums per prompt", f"{over_sums / bca:.1f} x BCa", "none", f"{over_sums:.1f} s"),
    ]


def row(quantity: str, measured: str, target: str, note: str) -> dict[str, str]:
    """Return one row of the table."""
    return {"quantity": quantity, "measured": measured, "target": target, "note": note}


def peak_mib() -> float:
    """Return the highest memory of this process so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def ratios(drafted: np.ndarray, accepted: np.ndarray, who: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return numerator and denominator per prompt of every quantity."""
    one = np.ones(len(who))
    pairs = [(accepted, one), (accepted, drafted)]
    for k in range(1, DRAFT + 1):
        survived = accepted >= k
        pairs += [(survived, one), (survived, drafted >= k), (survived, (accepted >= k - 1) & (drafted >= k))]
    return [tuple(cluster_sums(who, *pair).T) for pair in pairs]


def scipy_over_steps(accepted: np.ndarray, who: np.ndarray) -> object:
    """Return scipy's percentile interval of survival at position 1: prompts are drawn, then their steps counted."""
    of_prompt = np.split(accepted >= 1, np.flatnonzero(np.diff(who)) + 1)

    def survival(drawn: np.ndarray) -> float:
        return float(np.concatenate([of_prompt[prompt] for prompt in drawn]).mean())

    prompts = (np.arange(PROMPTS),)
    return stats.bootstrap(prompts, survival, vectorized=False, n_resamples=FEW, method="percentile", rng=0)


def scipy_over_sums(pair: tuple[np.ndarray, np.ndarray]) -> object:
    """Return scipy's BCa interval of a ratio of sums over prompts."""

    def ratio(numerator: np.ndarray, denominator: np.ndarray, axis: int) -> np.ndarray:
        return numerator.sum(axis=axis) / denominator.sum(axis=axis)

    return stats.bootstrap(
        pair, ratio, paired=True, vectorized=True, n_resamples=RESAMPLES, batch=200, method="BCa", rng=0
    )


def seconds(work: Callable[[], object], repeats: int = 3) -> float:
    """Return the best wall time of a few."""
    times = []
    for _ in range(repeats):
        begin = time.perf_counter()
        work()
        times.append(time.perf_counter() - begin)
    return min(times)


if __name__ == "__main__":
    for line in measure():
        print("; ".join(line.values()))
