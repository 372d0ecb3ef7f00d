"""What words must mean for printed numbers."""

from fractions import Fraction

import pytest

from analysis.evidence import predicates as p
from analysis.evidence.printed import parse


def n(text: str):
    return parse(text).interval


def test_monotone_at_the_printed_digits():
    truth = p.decreasing(n("0.801"), n("0.759"), n("0.591"))
    assert truth.holds
    assert truth.margin.centre == Fraction("0.042")


def test_monotone_within_rounding_only():
    truth = p.increasing(n("1.2"), n("1.2"), n("1.3"))
    assert (truth.holds, truth.possible) == (False, True)


def test_not_monotone_even_with_rounding():
    assert not p.increasing(n("1.2"), n("1.4"), n("1.3")).holds
    assert not p.increasing(n("1.2"), n("1.6"), n("1.3")).possible


def test_possible_looks_at_all_values_together():
    # each neighbour alone could rise, all three together cannot: 1.0-1.2, 1.05-1.15 ... 0.9-1.0
    assert not p.increasing(n("1.15"), n("1.1"), n("1.05")).possible


@pytest.mark.parametrize(("a", "b", "holds", "possible"), [("10.95", "10.95", True, True), ("3.1", "3.10", True, True)])
def test_same(a, b, holds, possible):
    truth = p.same(n(a), n(b))
    assert (truth.holds, truth.possible) == (holds, possible)


def test_same_fails_by_percent():
    truth = p.same(n("13.61"), n("13.50"))
    assert not truth.possible
    assert float(-truth.margin.centre) == pytest.approx(0.8148, abs=1e-4)


def test_best_is_greater_than_every_other():
    assert p.exceeds_all(n("20.43"), n("17.73"), n("16.04")).holds
    assert not p.exceeds_all(n("0.921"), n("0.95"), n("1.00")).possible


def test_not_fading_compares_the_ends():
    assert p.not_fading(n("43.1"), n("40.8"), n("47.0")).holds
    assert not p.not_fading(n("43.0"), n("34.3"), n("21.0")).possible


def test_ranges_apart_and_together():
    code, prose = parse("0.714 – 0.746"), parse("0.19 – 0.23")
    assert p.apart(code, prose).holds
    assert not p.together(code, prose).possible
    assert p.together(parse("1.0–1.2"), parse("1.1–1.3")).holds


def test_within_counts_what_prints_as_an_end():
    assert p.within(n("40.82"), parse("+41-47%")).holds
    assert not p.within(n("21.0"), parse("+41-47%")).possible


def test_every_needs_all_and_shows_the_tightest_margin():
    truth = p.every(p.above(n("2.0"), n("1.0")), p.below(n("1.0"), n("1.5")))
    assert truth.holds
    assert truth.margin.centre == Fraction(1, 2)
