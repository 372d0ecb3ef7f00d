"""The rollback gate: a wrong tail, taken back and replayed, must leave no trace in the logits."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from analysis.launch.inside import Context, Floats, Model
from analysis.records import Problem

# Where DeepSeek-V4's compressed caches close a block, and twice the longer ratio.
BOUNDARIES = (4, 128, 256)
ROWS = 4
PROBES = 8  # tokens evaluated one by one after the replay
NOTHING = np.zeros((1, 1), np.float32)
BEYOND = 160  # tokens after which the replayed ones have left a window of 128


@dataclass(frozen=True)
class Rollback:
    """One case: where wrong tails were taken back, and how far the logits then lay from a context without any.

    Attributes:
        boundary: the multiple that the spans straddle.
        start: position of the first span.
        spans: how many spans of `ROWS` tokens were tried, one behind the other.
        attempts: wrong tails a span, each taken back before the next.
        allowed: whether the cache took them all back.
        difference: the largest absolute difference of any logit, right after and beyond the window.
        control: the same where one wrong token was left in the cache: what the gate would see. `control_beyond` counts
            only the logits beyond the window, which the wrong token can reach through compressed blocks alone.
    """

    boundary: int
    start: int
    spans: int
    attempts: int
    allowed: bool
    difference: float
    control: float
    control_beyond: float

    @property
    def exact(self) -> bool:
        """Return whether rolling back left no trace, and the control shows that one would have been seen."""
        return self.allowed and self.difference == 0 and self.control > 0


def rollback_gate(
    model: Model,
    tokens: Sequence[int],
    *,
    boundaries: Sequence[int] = BOUNDARIES,
    threads: int = 1,
) -> tuple[Rollback, ...]:
    """Run the gate over spans that straddle each boundary: once, and three spans in a row with two attempts each.

    Both contexts evaluate batches of the same shapes: other shapes are computed by other kernels, which round
    differently.

    Args:
        model: any model; contexts keep a state of `ROWS` tokens where their cache has one.
        tokens: the right text; at least the last boundary and 200 more.
        boundaries: multiples of tokens to straddle.
        threads: of each batch.

    Raises:
        Problem: there are too few tokens.
    """
    if len(tokens) < max(boundaries) + 2 * ROWS + PROBES + BEYOND + ROWS:
        raise Problem(f"{len(tokens)} tokens", expected=f"at least {max(boundaries) + 200} for the last boundary")
    cases = [(boundary, spans, attempts) for boundary in boundaries for spans, attempts in ((1, 1), (3, 2))]
    return tuple(_case(model, tokens, *case, threads) for case in cases)


def _case(model: Model, tokens: Sequence[int], boundary: int, spans: int, attempts: int, threads: int) -> Rollback:
    start = boundary - ROWS // 2 - (ROWS if spans > 1 and boundary > ROWS else 0)
    size = start + spans * ROWS + PROBES + BEYOND + 1

    def run(attempts: int, *, left: bool = False) -> tuple[bool, Floats, Floats]:
        with Context(model, size=size, rollback=ROWS, threads=threads) as context:
            context.fill(tokens[:start])
            near = []
            for at in range(start, start + spans * ROWS, ROWS):
                right = list(tokens[at : at + ROWS])
                for attempt in range(attempts):
                    context.decode(wrong_tail(right, attempt + 1, model.vocabulary), at)
                    if not context.roll_back(at):
                        return False, NOTHING, NOTHING
                first = wrong_tail(right[:1], 1, model.vocabulary) if left and at == start else right[:1]
                near.append(context.decode([*first, *right[1:]], at))
            end = start + spans * ROWS
            near += [context.decode(tokens[at : at + 1], at) for at in range(end, end + PROBES)]
            return True, np.concatenate(near), context.decode(tokens[end + PROBES : end + PROBES + BEYOND])[-4:]

    _, near, far = run(0)
    allowed, near_again, far_again = run(attempts)
    _, near_wrong, far_wrong = run(0, left=True)
    return Rollback(
        boundary=boundary,
        start=start,
        spans=spans,
        attempts=attempts,
        allowed=allowed,
        difference=max(_apart(near, near_again), _apart(far, far_again)) if allowed else float("nan"),
        # The first row of the control's span is another token; its own logits differ anyway.
        control=_apart(near[1:], near_wrong[1:]),
        control_beyond=_apart(far, far_wrong),
    )


def wrong_tail(right: Sequence[int], step: int, vocabulary: int) -> list[int]:
    """Return other tokens than the right ones, ordinary ones for any vocabulary."""
    return [(token + 7 * step) % (vocabulary // 2) + vocabulary // 8 for token in right]


def _apart(one: Floats, other: Floats) -> float:
    return float(np.abs(one - other).max())
