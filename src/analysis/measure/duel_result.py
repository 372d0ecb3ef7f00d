"""What a duel says: the ratio of speeds with its interval over blocks, on all and on equal texts, and the drift."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from analysis.measure.estimate import rate_of
from analysis.measure.study import Study
from analysis.records import Block, Sample
from analysis.stats import Interval, Rule, Verdict, drift, speed_ratio, verdict


@dataclass(frozen=True)
class Bout:
    """One prompt on both sides of a block."""

    block: int
    a: Sample
    b: Sample

    @property
    def equal_text(self) -> bool:
        """Return whether both sides emitted the same tokens."""
        return self.a.tokens == self.b.tokens


@dataclass(frozen=True, kw_only=True)
class DuelResult:
    """The outcome of a duel. Ratios are the speed of b over that of a.

    `ratio` is over all prompts, `equal_ratio` over those on which both sides emitted the same tokens; `differing` of
    `prompts` did not. `sequence` may be looked at after every block, `ratio` only at a number of blocks settled
    beforehand. `ratio_drift` is the factor by which the ratio changed from the first block to the last, `speed_drift`
    that of both sides' decode rates together. `left_out` names blocks that a gate took a leg from, from 1 on.
    `restarted` says that each leg had a server of its own.
    """

    ratio: Interval
    equal_ratio: Interval
    sequence: Interval
    ratio_drift: Interval
    speed_drift: Interval
    blocks: int
    left_out: tuple[int, ...]
    prompts: int
    differing: int
    restarted: bool

    @property
    def verdict(self) -> Verdict:
        """Return whether b pays against a."""
        return verdict(self.ratio)


def result_of(study: Study) -> DuelResult:
    """Return the outcome of a duel that was recorded."""
    blocks = study.directory.blocks()
    bouts = fought(study)
    kept = {bout.block for bout in bouts}
    logs = block_ratios(study)
    servers = [{leg.server for leg in block.legs} for block in blocks]
    return DuelResult(
        ratio=_ratio(bouts),
        equal_ratio=_ratio([bout for bout in bouts if bout.equal_text]),
        sequence=Rule(width=0.0, budget=max(len(blocks), 1), kind="normal", unit="blocks")
        .decide(logs)
        .valid.map(lambda value: float(np.exp(value))),
        ratio_drift=drift(logs),
        speed_drift=drift(_per_block(bouts, lambda bout: (np.log(rate_of(bout.a)) + np.log(rate_of(bout.b))) / 2)),
        blocks=len(kept),
        left_out=tuple(block.number + 1 for block in blocks if block.number not in kept),
        prompts=len(bouts),
        differing=sum(not bout.equal_text for bout in bouts),
        restarted=any(len(names) > 2 for names in servers),
    )


def fought(study: Study) -> list[Bout]:
    """Return the prompts of a duel on which both sides have a publishable sample, in the order of measuring.

    A block counts only with some of its prompts left on both of its halves: without one half its order is not balanced.
    """
    fit = {sample.index: sample for sample in study.publishable if sample.emitted > 1 and sum(sample.step_ms) > 0}
    bouts = []
    for block in sorted(study.directory.blocks(), key=lambda block: block.number):
        halves = [_bouts(block, half, fit) for half in (0, 1)]
        if all(halves):
            bouts += [bout for half in halves for bout in half]
    return bouts


def block_ratios(study: Study) -> list[float]:
    """Return the mean logarithm of the speed ratio of each block that counts, in order."""
    return _per_block(fought(study), lambda bout: np.log(rate_of(bout.b) / rate_of(bout.a)))


def _bouts(block: Block, half: int, fit: dict[int, Sample]) -> list[Bout]:
    legs = block.legs[2 * half : 2 * half + 2]
    sides = {
        leg.contestant: {fit[index].prompt_id: fit[index] for index in leg.samples if index in fit} for leg in legs
    }
    return [Bout(block.number, a, sides["b"][prompt]) for prompt, a in sides["a"].items() if prompt in sides["b"]]


def _per_block(bouts: list[Bout], value: Callable[[Bout], float]) -> list[float]:
    found: dict[int, list[float]] = {}
    for bout in bouts:
        found.setdefault(bout.block, []).append(float(value(bout)))
    return [float(np.mean(values)) for values in found.values()]


def _ratio(bouts: list[Bout]) -> Interval:
    return speed_ratio(
        [rate_of(bout.a) for bout in bouts],
        [rate_of(bout.b) for bout in bouts],
        [bout.block for bout in bouts],
        unit="blocks",
    )
