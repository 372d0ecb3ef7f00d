"""Does a drafter behave as one of this target at all? Faults that nothing refuses show in the first two positions."""

from collections.abc import Iterator, Sequence

import numpy as np

from analysis.gates.base import Evidence, Finding, Subject, finding
from analysis.records import Cell, Sample
from analysis.stats import Acceptance, Interval, acceptance
from analysis.stats.intervals import SHARE, interval_of
from analysis.stats.resampling import cluster_sums

LOWEST_FIRST = 0.25
"""Survival of the first position below which a drafter is taken for another target's, or for untrained."""

ENOUGH_STEPS = 50
"""Verification steps after which "never" needs no interval over prompts: with few of them that would stay wide."""

LOWEST_HOLD = 0.80
"""Conditional acceptance at position 2 over that at position 1, below which depth in the draft is lost.

Set from the held-out texts of the first training of the shipped drafter and nothing else
(`data/drafters/smollm2-dspark-first-training.json`): over its five kinds of text the ratio is 0.97 to 1.05, and 0.798
is the one-sided lower tolerance limit of such values, below which at most 1 kind in 100 lies with a confidence of 95 %
(normal, k = 5.74 for n = 5). The value was 0.6 at first and was changed once after a run of failures had been seen; the
rule above names no such run.

Checked on data it was not set on. Held-out texts of the second training, of another seed: 0.98 to 1.01. Fifteen groups
of 6 to 10 prompts, served with three drafters (`smollm2-dspark-served.json`): 0.92 to 1.08. 92 cells of the first
training's drafter on two machines, at several depths and settings (runs that those of the second training replaced):
0.77 to 1.32, one below the limit and none surely below it. No published table in `data/` prints both positions of a
sound drafter. In the run of failures with that drafter both reordered ones lay at 0.72 and 0.81, which six prompts
cannot tell from the limit: this gate was silent there.
"""

LOWEST_DEEPER = 0.67
"""The same for positions 3 and deeper, pooled, over position 1.

Set by the same rule from the same texts (0.96 to 1.11; the limit is 0.674) and checked on the same data: the second
training lies at 0.99 to 1.12, the fifteen groups at 0.91 to 1.17, the 92 cells at 0.79 to 1.25. It was proposed after
a run of failures with the first training's drafter had been seen, in which it warned of one of the two reordered
drafters (0.31), was not sure of the other (0.26), and was silent about the sound ways. In the published run, with the
drafter that is shipped, six prompts leave it silent about both (0.73 and 0.00, whose interval reaches 0.52 of tokens).
"""


class FirstPositionAlive:
    """A trained drafter's first token is often right; one that is nearly always wrong belongs to something else."""

    name = "first-position-alive"
    why = "A drafter of another target, an untrained one, or one that is run as another type drafts and is never right."
    symptom = "A DSpark file run as DFlash accepts 0.3 % where 51 % was measured before; nothing is refused."
    expected = f"survival of the first position not surely below {LOWEST_FIRST:g}"
    looks_at: Subject = "cell"

    def check(self, evidence: Evidence) -> Iterator[Finding]:
        """Warn of cells whose drafter is nearly always wrong."""
        for cell, found in _drafters(evidence):
            rate, first = found.survival[0], found.survival[0].interval
            if rate.successes == 0 and rate.trials >= ENOUGH_STEPS:
                yield finding(self, "warn", "cell", cell.id, f"not one of {rate.trials} first tokens was accepted")
            elif first.high is not None and first.high < LOWEST_FIRST:
                saw = f"{first.estimate:.3f} [{first.low:.3f}, {first.high:.3f}] over {first.n} {first.unit}"
                yield finding(self, "warn", "cell", cell.id, saw)


class SecondPositionHolds:
    """Where the first token is right, the second is nearly as often right; else the drafter has lost its positions."""

    name = "second-position-holds"
    why = "Rotated by the wrong pairs, or one position off, a drafter keeps its first token and loses the deeper ones."
    symptom = "A rotary layout taken from the target: mean accepted length 1.03 where it had been 7.78."
    expected = f"conditional acceptance at position 2 not surely below {LOWEST_HOLD:g} of that at position 1"
    looks_at: Subject = "cell"

    def check(self, evidence: Evidence) -> Iterator[Finding]:
        """Warn of cells whose second position collapses."""
        for cell, found in _drafters(evidence):
            if len(found.conditional) < 2:
                continue
            first, second = (rate.interval for rate in found.conditional[:2])
            if second.high is not None and second.high < LOWEST_HOLD * first.estimate:
                saw = f"{second.estimate:.2f} [{second.low:.2f}, {second.high:.2f}] after {first.estimate:.2f}"
                yield finding(self, "warn", "cell", cell.id, saw)


class DeeperPositionsHold:
    """A draft that began well goes on well; a drafter whose positions are wrong fades from place to place."""

    name = "deeper-positions-hold"
    why = "Heads in another rotary order keep the second token often enough; what they lose is everything behind it."
    symptom = "Good first tokens, fewer second ones, and next to nothing from the third on; nothing is refused."
    expected = f"conditional acceptance from position 3 on not surely below {LOWEST_DEEPER:g} of that at position 1"
    looks_at: Subject = "cell"

    def check(self, evidence: Evidence) -> Iterator[Finding]:
        """Warn of cells whose drafts fade."""
        for cell, found in _drafters(evidence):
            first, deeper = found.survival[0].interval, deeper_positions(evidence.by_cell[cell])
            if deeper.high is not None and deeper.high < LOWEST_DEEPER * first.estimate:
                saw = f"{deeper.estimate:.2f} [{deeper.low:.2f}, {deeper.high:.2f}] after {first.estimate:.2f}"
                yield finding(self, "warn", "cell", cell.id, saw)


def deeper_positions(samples: Sequence[Sample]) -> Interval:
    """Return conditional acceptance pooled over positions 3 and deeper: accepted tokens there over tested ones."""
    drafted = np.concatenate([sample.drafted for sample in samples]).astype(np.int64)
    accepted = np.concatenate([sample.accepted for sample in samples]).astype(np.int64)
    prompt = [sample.prompt_id for sample in samples for _ in sample.drafted]
    tested = np.clip(np.minimum(accepted + 1, drafted) - 2, 0, None)
    sums = cluster_sums(prompt, np.clip(accepted - 2, 0, None), tested)
    return interval_of(sums[sums[:, 1] > 0], lambda pair: np.asarray(pair[..., 0] / pair[..., 1]), scale=SHARE)


def _drafters(evidence: Evidence) -> Iterator[tuple[Cell, Acceptance]]:
    """Yield the cells in which a drafter drafted; a lookup in the text has no positions of its own."""
    for cell, samples in evidence.by_cell.items():
        if cell.spec_type.startswith("draft-") and any(sum(sample.drafted) for sample in samples):
            yield cell, _acceptance(cell, samples)


def _acceptance(cell: Cell, samples: Sequence[Sample]) -> Acceptance:
    drafted = [count for sample in samples for count in sample.drafted]
    accepted = [count for sample in samples for count in sample.accepted]
    who = [sample.prompt_id for sample in samples for _ in sample.drafted]
    return acceptance(drafted, accepted, who, n_max=max(cell.n_max, *drafted))
