"""Simulated drafting: walk over text that the target wrote greedily and draft as the engine would.

The text is what speculative decoding would emit, so the accepted lengths are what a server would count, apart
from arithmetic. Anchors are those a server visits; accepting uniformly spread ones flatters the drafter, because
easy stretches are left in few steps.
"""

from dataclasses import dataclass

import numpy as np

from analysis.drafter.generate import Texts
from analysis.drafter.model import Weights, chain, draft_states
from analysis.drafter.shapes import KINDS, Shape
from analysis.drafter.target import Target, forward
from analysis.drafter.torchlib import Tensor, functional, mixed_precision, torch


@dataclass(frozen=True)
class Replay:
    """One text: its kind, its answer's length in tokens, and how many drafted tokens each step accepted."""

    kind: str
    tokens: int
    accepted: tuple[int, ...]


def replay(weights: Weights, shape: Shape, target: Target, texts: Texts, n_max: int, at_once: int = 8) -> list[Replay]:
    """Return what drafting `n_max` tokens at a time would have accepted in each greedily written text."""
    found = []
    with torch.no_grad():
        for begin in range(0, len(texts), at_once):
            part = slice(begin, begin + at_once)
            ids = torch.from_numpy(texts.ids[part].astype(np.int64)).to(target.device)
            runs = _accepted_from(weights, shape, target, ids, n_max).cpu().numpy()
            for row, start, end, kind in zip(runs, texts.start[part], texts.end[part], texts.kind[part], strict=True):
                found.append(Replay(KINDS[kind], int(end - start), walk(row, int(start), int(end))))
    return found


def walk(runs: np.ndarray[tuple[int], np.dtype[np.int64]], start: int, end: int) -> tuple[int, ...]:
    """Return the accepted tokens of each step.

    Args:
        runs: how many drafted tokens would be accepted from each place.
        start: place of the first token of the answer; it comes from the fill.
        end: place after the last token; a step accepts no more than what is left.
    """
    accepted, place = [], start
    while place < end - 1:
        accepted.append(int(min(runs[place], end - 1 - place)))
        place += accepted[-1] + 1
    return tuple(accepted)


def mean_length(replays: list[Replay]) -> float:
    """Return the mean accepted length over all steps: one plus accepted tokens over steps."""
    steps = sum(len(one.accepted) for one in replays)
    return 1 + sum(sum(one.accepted) for one in replays) / steps if steps else float("nan")


def survival(replays: list[Replay], n_max: int) -> list[float]:
    """Return for each place k the share of steps that accepted at least k tokens."""
    accepted = np.array([count for one in replays for count in one.accepted])
    return [float((accepted >= place).mean()) for place in range(1, n_max + 1)]


def _accepted_from(weights: Weights, shape: Shape, target: Target, ids: Tensor, n_max: int) -> Tensor:
    """Return [texts, length]: the number of drafted tokens that equal the text, drafting from each place."""
    texts, length = ids.shape
    features, _ = forward(target, ids, shape.taps)
    padded = functional.pad(ids, (0, n_max), value=-1)
    runs = torch.zeros_like(ids)
    for begin in range(1, length, 64):
        places = torch.arange(begin, min(begin + 64, length), device=ids.device)
        anchors = places.expand(texts, -1)
        with mixed_precision(target.device):
            states = draft_states(weights, shape, target, ids, features, anchors, n_max)
        drafted, _ = chain(weights, target, states.flatten(0, 1), torch.gather(ids, 1, anchors).flatten())
        following = places[:, None] + 1 + torch.arange(n_max, device=ids.device)
        right = drafted.unflatten(0, (texts, -1)) == padded[:, following]
        runs[:, places] = right.long().cumprod(-1).sum(-1)
    return runs
