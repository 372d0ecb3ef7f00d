"""How often the right sign is named: made-up drafters whose fault is known, with chance as steps and prompts have it.

This is a simulation, and says so wherever it is shown: it tests the thresholds against chance, not against faults that
nobody thought of. Its drafters differ from one another more widely than the thresholds, and a prompt's acceptance
varies about its drafter's (a beta distribution with concentration 20).
"""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pandas as pd

from analysis.ingest.curve import Curve, Group
from analysis.ingest.signs import SHAPES, Sign, falls, shapes, thresholds

SET_ON = range(1, 4)
"""Seeds on which the thresholds were looked at."""

JUDGED_ON = range(101, 105)
"""Seeds on which they are judged."""

CONCENTRATION = 20.0
PROMPTS = 12

Rng = np.random.Generator
Truth = Callable[[Rng, int], list[float]]


def flat(rng: Rng, n: int) -> list[float]:
    """Level or slowly falling, 0.55 to 0.95."""
    base, slope = rng.uniform(0.55, 0.95), rng.uniform(0.0, 0.02)
    return [base - slope * k for k in range(n)]


def weak(rng: Rng, n: int) -> list[float]:
    """Level and low, 0.12 to 0.35."""
    base = rng.uniform(0.12, 0.35)
    return [base] * n


def decay(rng: Rng, n: int) -> list[float]:
    """Every position keeps 0.6 to 0.8 of the one before it."""
    first, keep = rng.uniform(0.65, 0.9), rng.uniform(0.6, 0.8)
    return [first * keep**k for k in range(n)]


def collapse(rng: Rng, n: int) -> list[float]:
    """A first position of 0.5 to 0.9, and 0.02 to 0.3 of it behind."""
    first = rng.uniform(0.5, 0.9)
    return [first] + [first * rng.uniform(0.02, 0.3)] * (n - 1)


def cliff(rng: Rng, n: int) -> list[float]:
    """Level at 0.65 to 0.95 up to one position between 2 and the last but one, and 0 to 0.06 behind it."""
    base, last = rng.uniform(0.65, 0.95), int(rng.integers(2, n))
    return [base] * last + [rng.uniform(0.0, 0.06)] * (n - last)


def nothing(rng: Rng, n: int) -> list[float]:
    """0 to 0.03 everywhere."""
    return [rng.uniform(0.0, 0.03)] * n


def ones(rng: Rng, n: int) -> list[float]:
    """0.985 to 1 everywhere."""
    return [rng.uniform(0.985, 1.0)] * n


TRUTHS: Mapping[str, Truth] = {
    "ones": ones, "nothing": nothing, "cliff": cliff, "collapse": collapse, "weak": weak, "decay": decay, "flat": flat,
}  # fmt: skip


def drafter(truth: Sequence[float], steps: int, rng: Rng, *, prompts: int = PROMPTS) -> Curve:
    """Return what a drafter with this conditional acceptance shows in so many steps, spread over prompts."""
    groups = []
    for share in np.diff(np.linspace(0, steps, prompts + 1).round().astype(int)):
        left, survived, reached = int(share), [], []
        shift = rng.beta(CONCENTRATION / 2, CONCENTRATION / 2) - 0.5
        for rate in truth:
            spread = 4 * rate * (1 - rate) * shift  # none at the ends, where prompts cannot differ
            reached.append(left)
            left = int(rng.binomial(left, min(max(rate + spread, 0.0), 1.0)))
            survived.append(left)
        groups.append(
            Group(survived=tuple(survived), reached=tuple(reached), accepted=sum(survived), drafted=share * len(truth))
        )
    return Curve(title="simulated", groups=tuple(groups), n_max=len(truth))


def confusion(
    *, steps: Sequence[int] = (60, 250, 1000), repeats: int = 40, seeds: Sequence[int] = tuple(JUDGED_ON)
) -> pd.DataFrame:
    """Return how often each shape was named for each true one: columns truth, steps, named, share, n.

    A shape is named when its evidence reaches the threshold `sure`; otherwise the row counts as `undecided`.
    """
    limits = thresholds()
    found: dict[tuple[str, int, str], int] = {}
    for seed in seeds:
        for place, (name, truth) in enumerate(TRUTHS.items()):
            for count in steps:
                rng = np.random.default_rng([seed, place, count])
                for _ in range(repeats):
                    curve = drafter(truth(rng, int(rng.integers(4, 8))), count, rng)
                    evidence = shapes(curve, limits, seed=int(rng.integers(2**31)), draws=200)
                    sure = bool(evidence) and evidence[0].share >= limits["sure"].value
                    named = evidence[0].sign if sure else "undecided"
                    found[name, count, named] = found.get((name, count, named), 0) + 1
    n = repeats * len(seeds)
    rows = [
        {"truth": truth, "steps": count, "named": named, "share": hits / n, "n": n}
        for (truth, count, named), hits in found.items()
    ]
    return pd.DataFrame(rows)


def confused_falls(*, repeats: int = 40, seeds: Sequence[int] = tuple(JUDGED_ON)) -> pd.DataFrame:
    """Return how often a fall with depth is named where there is none, a healthy one, and a faulty one.

    A healthy drafter keeps 0.75 to 1 of its acceptance at depth, a faulty one 0.15 to 0.4.
    """
    limits = thresholds()
    rows = []
    for name, keeps in {"none": (1.0, 1.0), "healthy": (0.75, 1.0), "faulty": (0.15, 0.4)}.items():
        named = 0
        for seed in seeds:
            rng = np.random.default_rng([seed, len(name)])
            for _ in range(repeats):
                curve = _ladder(rng, rng.uniform(*keeps))
                share = falls(curve, limits["depth"].value, by="depth", seed=int(rng.integers(2**31)), draws=200)
                named += share is not None and share >= limits["sure"].value
        rows.append({"truth": name, "named": named / (repeats * len(seeds)), "n": repeats * len(seeds)})
    return pd.DataFrame(rows)


def _ladder(rng: Rng, keeps: float) -> list[Group]:
    base = rng.uniform(0.55, 0.85)
    groups = []
    for depth, part in ((500, 1.0), (16_000, keeps)):
        for _ in range(PROMPTS // 2):
            rate = float(rng.beta(CONCENTRATION * base * part, CONCENTRATION * (1 - base * part)))
            accepted = int(rng.binomial(250, rate))
            groups.append(Group(survived=(), reached=(), accepted=accepted, drafted=250, depth=depth))
    return groups


def matrix(table: pd.DataFrame, steps: int) -> pd.DataFrame:
    """Return the confusion table at one number of steps: true shapes down, named ones across, shares in the cells."""
    part = table[table["steps"] == steps]
    wide = part.pivot_table(index="truth", columns="named", values="share", fill_value=0.0)
    named: list[Sign | str] = [*SHAPES, "undecided"]
    return wide.reindex(index=list(SHAPES), columns=named, fill_value=0.0)
