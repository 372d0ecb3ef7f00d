"""Exact interval arithmetic: contains the truth always, and no more where every variable occurs once."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.evidence.interval import Interval, corners, largest, smallest


def interval_of(hundredths: tuple[int, int, int]) -> Interval:
    low, centre, high = (Fraction(h, 100) for h in sorted(hundredths))
    return Interval(low, centre, high)


hundredths = st.integers(-100_000, 100_000)
intervals = st.tuples(hundredths, hundredths, hundredths).map(interval_of)
# Built without zero: a filter would throw away so many that hypothesis now and then gives up.
sized = st.integers(1, 100_000)
apart_from_zero = st.tuples(st.sampled_from((1, -1)), st.tuples(sized, sized, sized)).map(
    lambda drawn: interval_of((drawn[0] * drawn[1][0], drawn[0] * drawn[1][1], drawn[0] * drawn[1][2]))
)
shares = st.integers(0, 100).map(lambda percent: Fraction(percent, 100))


def inside(interval: Interval, share: Fraction) -> Fraction:
    return interval.low + share * interval.width


@given(intervals, intervals, shares, shares)
def test_sum_difference_and_product_hold_every_pair(a, b, s, t):
    x, y = inside(a, s), inside(b, t)
    assert (a + b).holds(x + y)
    assert (a - b).holds(x - y)
    assert (a * b).holds(x * y)


@given(intervals, apart_from_zero, shares, shares)
def test_quotient_holds_every_pair(a, b, s, t):
    assert (a / b).holds(inside(a, s) / inside(b, t))


@given(intervals, intervals)
def test_bounds_are_reached(a, b):
    product = a * b
    reached = {x * y for x in (a.low, a.high) for y in (b.low, b.high)}
    assert {product.low, product.high} <= reached


@given(intervals, intervals)
def test_centre_is_plain_arithmetic(a, b):
    assert (a + b).centre == a.centre + b.centre
    assert (a * b).centre == a.centre * b.centre
    assert abs(a).centre == abs(a.centre)


def test_a_variable_that_enters_twice_widens_the_range():
    x = Interval(Fraction(1), Fraction(2), Fraction(3))
    assert (x - x).low == -2
    assert corners(lambda a, b: (b - a) / (a + b), x, x).high == Fraction(1, 2)


def test_smallest_and_largest_go_bound_by_bound():
    a, b = Interval(Fraction(1), Fraction(2), Fraction(5)), Interval(Fraction(2), Fraction(3), Fraction(4))
    assert smallest([a, b]) == Interval(Fraction(1), Fraction(2), Fraction(4))
    assert largest([a, b]) == Interval(Fraction(2), Fraction(3), Fraction(5))


def test_gap_and_overlap():
    a, b = Interval.exactly(1), Interval(Fraction(3), Fraction(3), Fraction(4))
    assert a.gap(b) == b.gap(a) == 2
    assert not a.overlaps(b)
    assert b.overlaps(b)


def test_upside_down_and_division_by_zero_are_refused():
    with pytest.raises(ValueError, match="upside down"):
        Interval(Fraction(2), Fraction(2), Fraction(1))
    with pytest.raises(ValueError, match="holds zero"):
        Interval.exactly(1) / Interval(Fraction(-1), Fraction(0), Fraction(1))
