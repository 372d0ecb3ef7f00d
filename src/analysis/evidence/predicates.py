"""Words as claims: what "monotonically", "identical" or "best" must mean for the printed numbers.

Each predicate turns a word into a margin that must not be negative. The claim holds if the margin does at the
printed digits, and is possible if the rounding of the digits allows it. `same` measures in percent, the others in
the unit of what they compare.
"""

from dataclasses import dataclass
from itertools import pairwise

from analysis.evidence.interval import Interval, largest, smallest
from analysis.evidence.printed import Printed


@dataclass(frozen=True, slots=True)
class Truth:
    """Whether a statement holds at the printed digits, whether rounding allows it, and by what margin."""

    holds: bool
    possible: bool
    margin: Interval


def above(a: Interval, b: Interval) -> Truth:
    """Tell whether a is greater than b: "faster", "helps", "pays"."""
    margin = a - b
    return Truth(margin.centre > 0, margin.high > 0, margin)


def below(a: Interval, b: Interval) -> Truth:
    """Tell whether a is smaller than b: "slower", "loses", "under"."""
    return above(b, a)


def at_least(a: Interval, b: Interval) -> Truth:
    """Tell whether a is no smaller than b: "no fall"."""
    margin = a - b
    return Truth(margin.centre >= 0, margin.high >= 0, margin)


def at_most(a: Interval, b: Interval) -> Truth:
    """Tell whether a is no greater than b: "never beats", "the gain is gone"."""
    return at_least(b, a)


def increasing(*values: Interval) -> Truth:
    """Tell whether each value is greater than the one before: "monotonically", "grows"."""
    steps = [after - before for before, after in pairwise(values)]
    floor, possible = values[0].low, True
    for value in values[1:]:
        possible = possible and value.high > floor
        floor = max(floor, value.low)
    return Truth(all(step.centre > 0 for step in steps), possible, smallest(steps))


def decreasing(*values: Interval) -> Truth:
    """Tell whether each value is smaller than the one before: "falls monotonically"."""
    return increasing(*(-value for value in values))


def not_fading(*values: Interval) -> Truth:
    """Tell whether the last value, at the greatest depth, is no smaller than the first: "does not fade".

    What happens in between is left to `increasing`; one dip among single measurements is no trend.
    """
    return at_least(values[-1], values[0])


def exceeds_all(best: Interval, *others: Interval) -> Truth:
    """Tell whether a value is greater than each of the others: "largest", "optimum", "knee", "best anywhere"."""
    return above(best, largest(list(others)))


def same(a: Interval, b: Interval) -> Truth:
    """Tell whether two printed values agree: "identical", "either way", "a tie". The margin is in percent."""
    difference = abs((a / b - 1) * 100)
    return Truth(difference.centre == 0, a.overlaps(b), -difference)


def within(a: Interval, printed: Printed) -> Truth:
    """Tell whether a value prints as one of a printed range: "a prose number", "at every depth +41-47%"."""
    allowed = printed.interval
    margin = smallest([a - allowed.low, allowed.high - a])
    return Truth(allowed.holds(a.centre), a.overlaps(allowed), margin)


def apart(a: Printed, b: Printed) -> Truth:
    """Tell whether two printed ranges have nothing in common: "non-overlap"."""
    margin = largest([a.first - b.last, b.first - a.last])
    return Truth(margin.centre > 0, margin.high > 0, margin)


def together(a: Printed, b: Printed) -> Truth:
    """Tell whether two printed ranges overlap: "no effect", "leaves alone", as far as ranges can say."""
    margin = -largest([a.first - b.last, b.first - a.last])
    return Truth(margin.centre >= 0, margin.high >= 0, margin)


def every(*truths: Truth) -> Truth:
    """Tell whether all of several statements hold: "at every depth", "any task". The margin is the tightest."""
    return Truth(
        all(truth.holds for truth in truths),
        all(truth.possible for truth in truths),
        smallest([truth.margin for truth in truths]),
    )


PREDICATES = (
    above,
    below,
    at_least,
    at_most,
    increasing,
    decreasing,
    not_fading,
    exceeds_all,
    same,
    within,
    apart,
    together,
    every,
)
