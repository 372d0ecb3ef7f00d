"""Taking back a few tokens, or a checkpoint in its place: what the cache allows, what each costs, what a slot costs."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import TypeVar

import numpy as np

from analysis.launch.inside import Context, Model
from analysis.measure.exact.rollback import wrong_tail
from analysis.records import Problem
from analysis.stats import Interval, speed_ratio

MIB = 1 << 20
T = TypeVar("T")


@dataclass(frozen=True)
class Limits:
    """Which rollbacks a cache allows: with a state of `rows` tokens, and `bare` without one.

    Attributes:
        rows: the tokens it keeps a state for.
        within: taking back `rows` tokens.
        beyond: taking back one more.
        twice: taking back again before anything was evaluated.
        middle: cutting tokens out of the middle.
        bare: taking back one token where no state is kept; where that is refused a server takes a checkpoint.
    """

    rows: int
    within: bool
    beyond: bool
    twice: bool
    middle: bool
    bare: bool


def rollback_limits(model: Model, tokens: Sequence[int], rows: int) -> Limits:
    """Return what the cache of a model allows, tried at the depth of the given tokens."""

    def attempt(rollback: int, act: Callable[[Context], bool]) -> bool:
        with Context(model, size=len(tokens) + 8, rollback=rollback) as context:
            context.fill(tokens)
            return act(context)

    depth = len(tokens)
    return Limits(
        rows=rows,
        within=attempt(rows, lambda context: context.roll_back(depth - rows)),
        beyond=attempt(rows, lambda context: context.roll_back(depth - rows - 1)),
        twice=attempt(rows, lambda context: context.roll_back(depth - 1) and context.roll_back(depth - 2)),
        middle=attempt(rows, lambda context: context.cut_out(depth // 2, depth // 2 + 1)),
        bare=attempt(0, lambda context: context.roll_back(depth - 1)),
    )


@dataclass(frozen=True)
class CheckpointCost:
    """What the two ways of undoing cost at one depth (tokens): medians in milliseconds, sizes in bytes."""

    depth: int
    nbytes: int
    take_ms: float
    bring_back_ms: float
    roll_back_ms: float


def checkpoint_cost(model: Model, tokens: Sequence[int], rows: int, repeats: int = 9) -> CheckpointCost:
    """Time a checkpoint (taken and brought back) and a rollback of `rows` tokens at the depth of the given tokens."""
    depth = len(tokens) - rows
    with Context(model, size=len(tokens) + 8, rollback=rows) as context:
        context.fill(tokens[:depth])
        taken = [_timed(lambda: context.state(partial=True)) for _ in range(repeats)]
        state = taken[0][1]
        brought, rolled = [], []
        for _ in range(repeats):
            context.decode(tokens[depth:], depth)
            rolled.append(_timed(lambda: context.roll_back(depth))[0])
            context.decode(tokens[depth:], depth)
            brought.append(_timed(lambda: context.set_state(state, partial=True))[0])
            context.roll_back(depth)
    return CheckpointCost(depth, len(state), median(ms for ms, _ in taken), median(brought), median(rolled))


@dataclass(frozen=True)
class TwoWays:
    """Decoding with drafts of which `kept` of `drafted` tokens are right, both ways side by side (tokens/s).

    `ratio` is rollback over checkpoint, paired by block of steps.
    """

    drafted: int
    kept: int
    depth: int
    rollback: float
    checkpoint: float
    ratio: Interval


def two_ways(
    model: Model, tokens: Sequence[int], *, depth: int, drafted: int, kept: int, blocks: int = 6, steps: int = 6
) -> TwoWays:
    """Decode with simulated drafts: rejected ones rolled back, or undone by a checkpoint and a replay.

    The two ways take turns, block by block. A checkpoint is taken before every draft, as the server does; where all
    of a draft is accepted it is taken for nothing.

    Raises:
        Problem: there are too few tokens.
    """
    needed = depth + 2 * blocks * steps * (kept + 1) + drafted + 1
    if len(tokens) < needed:
        raise Problem(f"{len(tokens)} tokens", expected=f"at least {needed}")
    rates: dict[str, list[float]] = {"rollback": [], "checkpoint": []}
    with Context(model, size=needed + 8, rollback=drafted) as one, Context(model, size=needed + 8) as other:
        for context in (one, other):
            context.fill(tokens[:depth])
        for block in range(blocks):
            legs = [("rollback", one, _step_with_rollback), ("checkpoint", other, _step_with_checkpoint)]
            for name, context, step in legs if block % 2 == 0 else reversed(legs):
                began = time.perf_counter()
                for _ in range(steps):
                    step(context, tokens, drafted, kept)
                rates[name].append(steps * (kept + 1) / (time.perf_counter() - began))
    ratio = speed_ratio(rates["checkpoint"], rates["rollback"], unit="blocks")
    return TwoWays(drafted, kept, depth, float(np.mean(rates["rollback"])), float(np.mean(rates["checkpoint"])), ratio)


@dataclass(frozen=True)
class SavedSlot:
    """A whole sequence saved and restored: bytes, milliseconds, and how far the next logits then lay apart."""

    depth: int
    nbytes: int
    save_ms: float
    restore_ms: float
    difference: float

    @property
    def save_ms_per_mib(self) -> float:
        """Return the time to save a MiB."""
        return self.save_ms / (self.nbytes / MIB)

    @property
    def restore_ms_per_mib(self) -> float:
        """Return the time to restore a MiB."""
        return self.restore_ms / (self.nbytes / MIB)


def saved_slot(model: Model, tokens: Sequence[int], depth: int, repeats: int = 5) -> SavedSlot:
    """Save a sequence of `depth` tokens, restore it into an empty context, and compare the logits of what follows."""
    following = tokens[depth : depth + 8]
    with Context(model, size=len(tokens) + 8) as one, Context(model, size=len(tokens) + 8) as other:
        one.fill(tokens[:depth])
        saved = [_timed(one.state) for _ in range(repeats)]
        state = saved[0][1]
        restored = []
        for _ in range(repeats):
            other.clear()
            restored.append(_timed(lambda: other.set_state(state))[0])
        apart = max(float(np.abs(one.decode([t]) - other.decode([t])).max()) for t in following)
    return SavedSlot(depth, len(state), median(ms for ms, _ in saved), median(restored), apart)


def _step_with_rollback(context: Context, tokens: Sequence[int], drafted: int, kept: int) -> None:
    at = context.length
    context.decode(_draft(tokens, at, drafted, kept, context.model.vocabulary), at)
    if kept < drafted:
        context.roll_back(at + kept + 1)


def _step_with_checkpoint(context: Context, tokens: Sequence[int], drafted: int, kept: int) -> None:
    at = context.length
    state = context.state(partial=True)
    context.decode(_draft(tokens, at, drafted, kept, context.model.vocabulary), at)
    if kept < drafted:
        context.set_state(state, partial=True)
        context.roll_back(at)
        context.decode(tokens[at : at + kept + 1], at)


def _draft(tokens: Sequence[int], at: int, drafted: int, kept: int, vocabulary: int) -> list[int]:
    right = list(tokens[at : at + drafted + 1])
    return [*right[: kept + 1], *wrong_tail(right[kept + 1 :], 1, vocabulary)]


def _timed(act: Callable[[], T]) -> tuple[float, T]:
    began = time.perf_counter()
    found = act()
    return 1e3 * (time.perf_counter() - began), found
