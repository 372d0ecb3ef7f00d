"""The step as a law, a fixed part and a part for each token, as far as printed digits allow one.

A point is a box: a printed length and a printed duration, each known to its last digit. A law holds if one straight
line passes through every box; the slopes of all such lines are the part for each token. Where no line does, the law
does not hold for what was printed, and the slopes between neighbouring points say how far it is from holding.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

from analysis.evidence.cells import drafted
from analysis.evidence.consistency.steps import step_points
from analysis.evidence.interval import Interval
from analysis.evidence.published import Row, constants


@dataclass(frozen=True, slots=True)
class Point:
    """Tokens (accepted length, or drafted tokens), the step's duration in ms, and the ids behind them."""

    tokens: Interval
    ms: Interval
    ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Law:
    """The least-squares line through the points' centres, and whether any line passes through all of them.

    `fixed` (ms) and `per_token` (ms a token) are the line's. `slopes` are those of every line that passes through all
    boxes, None where there is none; `between` the slopes from one point to the next.
    """

    points: tuple[Point, ...]
    fixed: Fraction
    per_token: Fraction
    slopes: Interval | None
    between: tuple[Interval, ...]

    @property
    def residuals(self) -> tuple[Fraction, ...]:
        """Return by how many ms each point's centre lies above the line."""
        return tuple(p.ms.centre - self.fixed - self.per_token * p.tokens.centre for p in self.points)


def fit(points: Sequence[Point]) -> Law:
    """Return the law of at least two points with different tokens, in the order of their tokens.

    Raises:
        ValueError: there are fewer, or they do not differ.
    """
    ordered = tuple(sorted(points, key=lambda p: p.tokens.centre))
    xs, ys = [p.tokens.centre for p in ordered], [p.ms.centre for p in ordered]
    if len(set(xs)) < 2:
        raise ValueError("a line needs two points that differ in tokens")
    x0, y0 = Fraction(sum(xs), len(xs)), Fraction(sum(ys), len(ys))
    products = sum(((x - x0) * (y - y0) for x, y in zip(xs, ys, strict=True)), Fraction(0))
    slope = products / sum(((x - x0) * (x - x0) for x in xs), Fraction(0))
    between = tuple((b.ms - a.ms) / (b.tokens - a.tokens) for a, b in pairwise(ordered))
    return Law(ordered, y0 - slope * x0, slope, slopes_through(ordered), between)


def slopes_through(points: Sequence[Point]) -> Interval | None:
    """Return the slopes, from 0 up, of the lines that pass through every box; None where no line does.

    A rising line passes a box if it lies below the upper left corner and above the lower right one. An intercept for
    all boxes exists if, for each pair, one box's lower right corner lies no higher above the line than the other's
    upper left: m (right - left) >= bottom - top.

    Raises:
        ValueError: all boxes overlap in tokens, so that a line may be as steep as it likes.
    """
    least, most = Fraction(0), None
    for a in points:
        for b in points:
            run, rise = a.tokens.high - b.tokens.low, a.ms.low - b.ms.high
            if run > 0:
                least = max(least, rise / run)
            elif run < 0:
                most = rise / run if most is None else min(most, rise / run)
            elif rise > 0:
                return None
    if most is None:
        raise ValueError("all points may have the same tokens")
    if least > most:
        return None
    return Interval(least, (least + most) / 2, most)


def by_accepted(rows: Mapping[str, Row]) -> Law:
    """Return card A's law over the mean accepted length: one depth, one n_max, one machine."""
    return fit([Point(length, ms, (name, f"{name}_acceptance")) for length, ms, name in step_points(rows, "A")])


def by_drafted(rows: Mapping[str, Row]) -> Law:
    """Return card B's law over drafted tokens, from the steps that its table of n_max implies.

    A step drafts no more than the drafter's block. Length moves with n in this table, so that the part for each
    drafted token holds whatever an accepted one costs.
    """
    block = constants()["v4_draft_block_size"].interval
    points = []
    for cell in drafted(rows):
        acceptance = cell.acceptance
        if cell.row.card != "B" or cell.n is None or acceptance is None or "depth" not in acceptance.factors:
            continue  # one acceptance for several depths says nothing of one step
        n = min(Interval.exactly(cell.n), block, key=lambda value: value.centre)
        ms = 1000 * (1 + n * acceptance.printed.interval) / cell.row.printed.interval
        points.append(Point(n, ms, (cell.row.id, acceptance.id)))
    return fit(points)
