"""The step as a law: a line through boxes, and what the cards allow one to say."""

from fractions import Fraction

import pytest

from analysis.evidence.interval import Interval
from analysis.evidence.published import rows
from analysis.evidence.step_law import Point, by_accepted, by_drafted, fit, slopes_through


def point(tokens, ms, half=0) -> Point:
    value = Fraction(ms)
    return Point(Interval.exactly(Fraction(tokens)), Interval(value - half, value, value + half), ())


def test_a_straight_line_is_found():
    law = fit([point(1, 13), point(3, 19), point(2, 16)])
    assert (law.fixed, law.per_token) == (10, 3)
    assert law.slopes == Interval.exactly(3)
    assert law.residuals == (0, 0, 0)
    assert [slope.centre for slope in law.between] == [3, 3]


def test_rounding_leaves_several_slopes_open():
    # boxes of +-1 ms at 1 and 3 tokens: from (14 - 11) / ... the flattest (18 - 14) / 2, the steepest (20 - 12) / 2
    assert slopes_through([point(1, 13, 1), point(3, 19, 1)]) == Interval(Fraction(2), Fraction(3), Fraction(4))


def test_no_line_passes_where_the_bend_is_larger_than_the_rounding():
    assert slopes_through([point(1, 10, 1), point(2, 10, 1), point(3, 20, 1)]) is None


def test_a_falling_step_has_no_rising_line():
    assert slopes_through([point(1, 20, 1), point(2, 10, 1)]) is None


def test_points_that_do_not_differ_have_no_law():
    with pytest.raises(ValueError, match="two points that differ"):
        fit([point(1, 10), point(1, 12)])
    wide = Point(Interval(Fraction(1), Fraction(2), Fraction(3)), Interval.exactly(5), ())
    with pytest.raises(ValueError, match="same tokens"):
        slopes_through([wide, wide])


def test_card_a_by_hand():
    # lengths 2.45, 2.95, 3.7, 5.5 and 379, 385, 391, 423 ms: 6 / 0.5, 6 / 0.75, 32 / 1.8 ms a token
    law = by_accepted(rows())
    assert [float(slope.centre) for slope in law.between] == pytest.approx([12, 8, 17.78], abs=0.01)
    assert law.slopes is None
    # least squares: mean length 3.65, mean step 394.5; 78.1 / 5.375
    assert float(law.per_token) == pytest.approx(14.53, abs=0.01)
    assert float(law.fixed) == pytest.approx(394.5 - 14.528 * 3.65, abs=0.1)


def test_card_b_by_hand():
    # 1801 / 17.73, 2518 / 20.43, 2773 / 16.04, 3160 / 16.10 and, with a block of five, 3195 / 13.75
    law = by_drafted(rows())
    assert [float(p.ms.centre) for p in law.points] == pytest.approx([101.58, 123.25, 172.88, 196.27, 232.36], abs=0.01)
    assert [int(p.tokens.centre) for p in law.points] == [1, 2, 3, 4, 5]
    assert law.slopes is None
