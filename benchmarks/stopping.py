"""What it costs to look after every prompt: coverage at all sizes at once, and width, of confidence sequences.

`python benchmarks/stopping.py` prints, for several distributions of one value a prompt, how often any of the limits
from 3 to 100 prompts missed the mean (the sequence's promise is at most 5 %), how often the fixed-n t interval did when
looked at as often, and the width of the sequence over that of the t interval at 10, 20, 50 and 100 prompts.
"""

import argparse

import numpy as np

from analysis.stats.intervals import t_quantile
from analysis.stats.stopping import Sequence, bounded_sequence, normal_sequence

SIZES = np.array([10, 20, 50, 100])
LOOKS = np.arange(3, 101)
BETAS = {
    "alike": (60, 40),
    "spread": (6, 4),
    "wide": (1.2, 0.8),
    "high": (9, 1),
    "two kinds": (0.9, 0.1),
    "low": (0.5, 4.5),
}


def t_limits(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the limits of the t interval at each look."""
    mean = np.cumsum(values)[LOOKS - 1] / LOOKS
    squares = np.cumsum(values**2)[LOOKS - 1] / LOOKS
    error = np.sqrt(np.maximum(squares - mean**2, 0) / (LOOKS - 1))
    half = np.array([t_quantile(int(n), 0.95) for n in LOOKS]) * error
    return mean - half, mean + half


def row(name: str, draws: list[tuple[np.ndarray, Sequence]], truth: float) -> str:
    """Return one line of the table."""
    missed, peeked, prices = [], [], []
    for values, sequence in draws:
        low, high = t_limits(values)
        missed.append(((sequence.low > truth) | (sequence.high < truth)).any())
        peeked.append(((low > truth) | (high < truth)).any())
        prices.append((sequence.high - sequence.low)[SIZES - 1] / (high - low)[SIZES - LOOKS[0]])
    price = " ".join(f"{value:5.2f}" for value in np.median(prices, axis=0))
    return f"{name:32} {np.mean(missed):7.1%} {np.mean(peeked):9.1%}   {price}"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--replications", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args()
    rng = np.random.default_rng(chosen.seed)
    print(f"{'values':32} {'missed':>7} {'t missed':>9}   width over t at {', '.join(map(str, SIZES))}")
    for name, (a, b) in BETAS.items():
        values = [rng.beta(a, b, size=100) for _ in range(chosen.replications)]
        draws = [(v, bounded_sequence(v)) for v in values]
        print(row(f"bounded, beta({a}, {b}): {name}", draws, a / (a + b)), flush=True)
    for name, draw in {"normal": rng.standard_normal, "Laplace": rng.laplace}.items():
        values = [draw(size=100) for _ in range(chosen.replications)]
        print(row(f"t mixture, {name}", [(v, normal_sequence(v)) for v in values], 0.0), flush=True)


if __name__ == "__main__":
    main()
