"""What acceptance is when every drafted token is accepted by a coin of known bias: the truth to calibrate against.

A request emits N tokens, the first from its fill. A step that has m tokens left to emit drafts D = min(n, m - 1) and
accepts A of them with P(A >= k) = rates[k - 1] for k <= D: unconditional survival rates, as llama-server's
`--spec-synth-rates` takes them. It emits A + 1. So the last drafts of a request are shorter, and a survival over all
steps lies a little below its rate; the expectations here allow for that and are exact.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Truth:
    """Ratios of expected sums over requests, in the meanings of `stats.acceptance`; tuples by position."""

    survival: tuple[float, ...]
    proposal: tuple[float, ...]
    conditional: tuple[float, ...]
    mean_length: float
    aggregate: float


def truth(rates: tuple[float, ...], emitted: int) -> Truth:
    """Return what an instrument must find, by the expected number of visits to each number of tokens left.

    Args:
        rates: P(A >= k) for k = 1..n, not rising.
        emitted: tokens a request emits, at least 3.

    Raises:
        ValueError: the rates rise or are no shares, or a request is too short to draft.
    """
    n = len(rates)
    _check(rates, emitted)
    at_least = np.array([1.0, *rates])
    visits = np.zeros(emitted)
    visits[emitted - 1] = 1.0
    steps = drafted = 0.0
    whole = np.zeros(n)  # steps with D >= k, by k
    for left in range(emitted - 1, 1, -1):
        longest = min(n, left - 1)
        steps += visits[left]
        drafted += visits[left] * longest
        whole[:longest] += visits[left]
        reached = at_least[: longest + 1]
        exactly = reached - np.append(reached[1:], 0.0)
        for accepted, share in enumerate(exactly):
            visits[left - accepted - 1] += visits[left] * share
    survived = whole * at_least[1:]
    return Truth(
        survival=tuple((survived / steps).tolist()),
        proposal=tuple(float(rate) for rate in rates),
        conditional=tuple((at_least[1:] / np.where(at_least[:-1] > 0, at_least[:-1], np.nan)).tolist()),
        mean_length=1 + float(survived.sum()) / steps,
        aggregate=float(survived.sum()) / drafted,
    )


def simulate(rates: tuple[float, ...], emitted: int, requests: int, rng: np.random.Generator) -> tuple[Ints, Ints]:
    """Return accepted and drafted tokens of each step of simulated requests: shape (requests, emitted - 1) each.

    Where a request has ended, or its evaluation had no draft, both are 0.
    """
    _check(rates, emitted)
    n = len(rates)
    left = np.full(requests, emitted - 1)
    accepted = np.zeros((requests, emitted - 1), dtype=np.int64)
    drafted = np.zeros_like(accepted)
    descending = -np.asarray(rates)
    for step in range(emitted - 1):
        drafted[:, step] = np.clip(left - 1, 0, n)
        # A >= k where the coin is below rates[k - 1]
        would = np.searchsorted(descending, -rng.random(requests), side="left")
        accepted[:, step] = np.minimum(would, drafted[:, step])
        left = np.maximum(left - accepted[:, step] - 1, 0)
    return accepted, drafted


def mean_share(rates: tuple[float, ...], emitted: int, *, requests: int = 200_000, seed: int = 0) -> float:
    """Return the mean over requests of each one's own accepted over drafted tokens, by simulation.

    It is the mean that `stopping.bounded_sequence` bounds. Its standard error is below 0.0005.
    """
    accepted, drafted = simulate(rates, emitted, requests, np.random.default_rng(seed))
    return float(np.mean(accepted.sum(axis=1) / drafted.sum(axis=1)))


def _check(rates: tuple[float, ...], emitted: int) -> None:
    if not rates or any(not 0 <= rate <= 1 for rate in rates) or list(rates) != sorted(rates, reverse=True):
        raise ValueError(f"rates {rates} are not shares that fall with the position")
    if emitted < 3:
        raise ValueError(f"a request of {emitted} tokens drafts nothing")
