"""How often 95 % intervals over few prompts hold the truth, by method, number of prompts and estimate.

Prompts differ: the chance that a drafted token is accepted is drawn for each prompt from a beta distribution, or
is one of two values. A prompt emits 64 tokens in steps that draft 5, as a request does, so that prompts that
accept much have fewer steps. The truth is the ratio of sums over a large population of such prompts.

`python benchmarks/coverage.py` prints four tables in some seven minutes. The rules of `stats.intervals.choose` come
from the second. The fourth is about the step law: prompts differ in what a step and an accepted token cost.
"""

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from analysis.stats import step_law
from analysis.stats.intervals import SHARE, Interval, interval_of, t_quantile
from analysis.stats.resampling import Degenerate, bca_limits, jackknife_error, resample

TOKENS, DRAFT = 64, 5
SIZES = (3, 4, 5, 6, 8, 10, 15, 20, 40, 80)
ESTIMATES = (0.0, 0.02, 0.1, 0.5, 0.8, 0.85, 0.9, 0.95, 1.0)
Pairs = tuple[np.ndarray, np.ndarray]


@dataclass(frozen=True)
class Population:
    """How prompts differ: `beta` with a mean and a concentration, or `two` kinds of prompts."""

    name: str
    mean: float
    concentration: float = 0.0

    def rates(self, rng: np.random.Generator, count: int) -> np.ndarray:
        """Return the conditional acceptance of `count` prompts."""
        if self.concentration:
            return rng.beta(self.mean * self.concentration, (1 - self.mean) * self.concentration, size=count)
        return np.where(rng.random(count) < self.mean, 0.95, 0.3)


NAMED = (
    Population("alike", 0.6, 1e6),
    Population("low, some spread", 0.3, 8),
    Population("middle, some spread", 0.6, 8),
    Population("middle, wide spread", 0.6, 2),
    Population("high, some spread", 0.85, 8),
    Population("high, wide spread", 0.85, 2),
    Population("two kinds, 1 in 4 accepts .95, else .3", 0.25),
)


def simulate(population: Population, rng: np.random.Generator, shape: tuple[int, ...]) -> dict[str, Pairs]:
    """Return numerators and denominators per prompt, each of the given shape, on the scale from 0 to 1."""
    rates = population.rates(rng, int(np.prod(shape)))[:, None]
    accepted = np.minimum(rng.geometric(np.clip(1 - rates, 1e-9, 1), size=(len(rates), TOKENS)) - 1, DRAFT)
    before = np.cumsum(accepted + 1, axis=1) - accepted
    live = before < TOKENS
    accepted = np.where(live, np.minimum(accepted, TOKENS - before - 1), 0)
    steps = live.sum(axis=1)
    pairs = {"length": (accepted.sum(axis=1) / DRAFT, steps)}
    for k in (1, 2, 5):
        pairs[f"s{k}"] = ((accepted >= k).sum(axis=1), steps)
    pairs["c2"] = ((accepted >= 2).sum(axis=1), (accepted >= 1).sum(axis=1))
    return {name: (n.reshape(shape).astype(float), d.reshape(shape).astype(float)) for name, (n, d) in pairs.items()}


def ratio(sums: np.ndarray) -> np.ndarray:
    """Return the ratio of two columns of sums."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(sums[..., 0] / sums[..., 1])


def limits(method: str, sums: np.ndarray, seed: int) -> tuple[float, float] | None:
    """Return the limits that a method gives, whatever the rules of the library say about showing them."""
    estimate = float(ratio(sums.sum(axis=0)[None])[0])
    if not 0 < estimate < 1:
        return None
    try:
        if method == "jackknife t, logit":
            return SHARE.limits(estimate, jackknife_error(sums, ratio), t_quantile(len(sums), 0.95))
        if method == "jackknife t":
            half = t_quantile(len(sums), 0.95) * jackknife_error(sums, ratio)
            return estimate - half, estimate + half
        if method == "BCa":
            return bca_limits(sums, ratio, level=0.95, resamples=599, seed=seed)
        values = ratio(resample(sums, resamples=599, seed=seed))
        low, high = np.nanquantile(values, (0.025, 0.975))
        return float(low), float(high)
    except Degenerate:
        return None


def by_population(replications: int, seed: int) -> Iterator[str]:
    """Yield coverage by method and named population: the evidence for the method."""
    methods = ("jackknife t, logit", "jackknife t", "BCa", "percentile")
    yield f"{'population':40} {'of':6} {'n':>3} " + " ".join(f"{m:>19}" for m in methods)
    rng = np.random.default_rng(seed)
    for population in NAMED:
        truth = {k: n.sum() / d.sum() for k, (n, d) in simulate(population, rng, (100_000,)).items()}
        for n in (3, 5, 8, 10, 20):
            drawn = simulate(population, rng, (replications, n))
            for quantity in ("length", "s1", "c2"):
                cells = [_share(m, drawn[quantity], truth[quantity], seed) for m in methods]
                yield f"{population.name:40} {quantity:6} {n:3} " + " ".join(f"{cell:>19}" for cell in cells)


def _share(method: str, pairs: Pairs, truth: float, seed: int) -> str:
    hits, widths = [], []
    for number, sums in enumerate(np.stack(pairs, axis=-1)):
        found = limits(method, sums[sums[:, 1] > 0], seed + number)
        if found:
            hits.append(found[0] <= truth <= found[1])
            widths.append(found[1] - found[0])
    return f"{np.mean(hits):.1%} ({np.median(widths):.2f})" if hits else "-"


def by_estimate(populations: int, replications: int, seed: int) -> Iterator[str]:
    """Yield coverage by number of prompts and by the estimate that the reader sees: the evidence for the rules.

    The populations are drawn at random: mean acceptance uniform between 0.005 and 0.995, concentration
    log-uniform between 2 and 50; one in eight has two kinds of prompts.
    """
    rng = np.random.default_rng(seed)
    found: dict[int, list[np.ndarray]] = {n: [] for n in SIZES}
    for number in range(populations):
        mean = rng.uniform(0.005, 0.995)
        population = Population("", mean, 0.0 if number % 8 == 0 else np.exp(rng.uniform(np.log(2), np.log(50))))
        truth = {k: n.sum() / d.sum() for k, (n, d) in simulate(population, rng, (20_000,)).items()}
        for n in SIZES:
            for quantity, pairs in simulate(population, rng, (replications, n)).items():
                found[n].append(_logit_hits(np.stack(pairs, axis=-1), truth[quantity]))
    yield f"{'n':>3} {'all':>6} " + " ".join(f"{a:g}-{b:g}".rjust(13) for a, b in pairwise(ESTIMATES))
    for n, parts in found.items():
        estimate, hit, width = np.concatenate(parts, axis=1)
        bins = np.digitize(estimate, ESTIMATES[1:-1])
        cells = []
        for place in range(len(ESTIMATES) - 1):
            inside = bins == place
            cells.append(f"{hit[inside].mean():.1%} ({np.median(width[inside]):.2f})" if inside.sum() > 50 else "-")
        yield f"{n:3} {hit.mean():6.1%} " + " ".join(cell.rjust(13) for cell in cells)


def _logit_hits(sums: np.ndarray, truth: float) -> np.ndarray:
    """Return estimate, hit and width of many replications at once; the library's formula, vectorized."""
    kept = (sums[..., 1] > 0).all(axis=1)
    totals = sums.sum(axis=1)
    estimate = ratio(totals)
    kept &= (estimate > 0) & (estimate < 1)
    sums, totals, estimate = sums[kept], totals[kept], estimate[kept]
    n = sums.shape[1]
    left_out = ratio(totals[:, None] - sums)
    error = np.sqrt((n - 1) / n * ((left_out - left_out.mean(axis=1, keepdims=True)) ** 2).sum(axis=1))
    middle = np.log(estimate / (1 - estimate))
    half = t_quantile(n, 0.95) * error / (estimate * (1 - estimate))
    with np.errstate(over="ignore"):
        low, high = (1 / (1 + np.exp(-(middle + sign * half))) for sign in (-1, 1))
    return np.stack([estimate, (low <= truth) & (truth <= high), high - low])


def rules(replications: int, seed: int) -> Iterator[str]:
    """Yield what the library shows in the named populations: coverage of shown intervals, and how many are shown."""
    rng = np.random.default_rng(seed)
    yield f"{'population':40} {'of':6} {'n':>3} {'shown':>7} {'coverage of the shown':>22}"
    for population in NAMED:
        truth = {k: n.sum() / d.sum() for k, (n, d) in simulate(population, rng, (100_000,)).items()}
        for n in (3, 5, 8, 10, 20):
            drawn = simulate(population, rng, (replications, n))
            for quantity in ("length", "s1", "c2"):
                shown = [_interval(sums) for sums in np.stack(drawn[quantity], axis=-1)]
                hits: Any = [i.contains(truth[quantity]) for i in shown if i.shown]
                covered = f"{np.mean(hits):.1%}" if hits else "-"
                yield f"{population.name:40} {quantity:6} {n:3} {len(hits) / len(shown):7.0%} {covered:>22}"


def _interval(sums: np.ndarray) -> Interval:
    return interval_of(sums[sums[:, 1] > 0], ratio, scale=SHARE)


def of_step_law(replications: int, seed: int) -> Iterator[str]:
    """Yield how often the step law's intervals hold its parts, whatever the library says about showing them."""
    rng = np.random.default_rng(seed)
    parts = {"fixed": 8.0, "per_drafted": 1.5, "per_accepted": 0.25}
    yield f"{'n':>3} " + " ".join(f"{name:>13}" for name in parts)
    for n in (3, 5, 8, 10, 20):
        hits = dict.fromkeys(parts, 0)
        for _ in range(replications):
            who = np.repeat(np.arange(n), 30)
            drafted = rng.integers(1, DRAFT + 1, size=len(who))
            accepted = np.minimum(rng.geometric(1 - rng.beta(3, 2, size=n)[who]) - 1, drafted)
            own = rng.normal(0, 0.5, size=n)[who] + rng.normal(0, 0.2, size=n)[who] * accepted
            ms = 8 + 1.5 * drafted + 0.25 * accepted + own + rng.normal(0, 0.4, size=len(who))
            law = step_law(drafted, accepted, ms, who, minimum=2)
            for name, truth in parts.items():
                hits[name] += getattr(law, name).contains(truth)
        yield f"{n:3} " + " ".join(f"{count / replications:13.1%}" for count in hits.values())


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--replications", type=int, default=500)
    parser.add_argument("--populations", type=int, default=800)
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args()
    tables = {
        "Coverage (median width) by method and population": by_population(chosen.replications, chosen.seed),
        "Coverage (median width) of the jackknife t on the logit scale, by estimate": by_estimate(
            chosen.populations, 25, chosen.seed
        ),
        "What the library shows": rules(chosen.replications, chosen.seed),
        "Coverage of the parts of the step law": of_step_law(2 * chosen.replications, chosen.seed),
    }
    for title, lines in tables.items():
        print(f"\n{title}")
        for line in lines:
            print(line, flush=True)


if __name__ == "__main__":
    main()
