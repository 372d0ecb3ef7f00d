import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis.stats import RawLeg, Steps, break_even, crossing
from analysis.stats.economics import break_even_acceptance, break_even_length, decode_at

NAMES = np.array(["a", "b", "c", "d", "e"])


def legs(rng, *, raw_ms=10.0, fixed=20.0, slope=0.0, rates=(0.4, 0.5, 0.6, 0.7, 0.8), n=4, steps=200):
    """Five prompts: a raw leg at 100 tokens a second by default, and steps of a known law."""
    who = np.repeat(NAMES, steps)
    accepted = np.minimum(rng.geometric(1 - np.repeat(rates, steps)) - 1, n)
    ms = fixed + slope * accepted + rng.normal(0, 0.1, size=len(who))
    raw = RawLeg(np.full(5, 101), 100 * raw_ms * (1 + 0.01 * np.arange(-2, 3)), NAMES)
    return raw, Steps(np.full(len(who), n), accepted, ms, who)


def test_break_even_by_hand():
    """At 50 tokens a second a 60 ms step costs 3 raw tokens: it must emit 3, that is accept 2 of 4."""
    assert break_even_length(50, 60) == pytest.approx(3)
    assert break_even_acceptance(50, 60, 4) == pytest.approx(0.5)
    assert decode_at(3, 60) == pytest.approx(50)


def test_a_step_that_costs_no_more_than_a_token_breaks_even_at_nothing():
    assert break_even_acceptance(50, 20, 4) == pytest.approx(0)


def test_measured_and_needed_by_hand():
    """Three prompts, raw 100 tokens/s, steps of 20 ms that accepted 1, 2 and 3 of 4: length 3, needed 2."""
    raw = RawLeg([101] * 3, [1000, 1010, 990], ["a", "b", "c"])
    found = break_even(raw, Steps([4] * 3, [1, 2, 3], [20, 21, 19], ["a", "b", "c"]), n_max=4)
    assert found.mean_length.estimate == pytest.approx(3)
    assert found.length_needed.estimate == pytest.approx(2)
    assert found.margin.estimate == pytest.approx(1)
    assert found.acceptance.estimate == pytest.approx(0.5)
    assert found.acceptance_needed.estimate == pytest.approx(0.25)
    assert found.decode.estimate == pytest.approx(150)


def test_what_both_sides_share_does_not_widen_the_margin():
    """Prompts whose steps cost more in proportion to what they emit: length and break-even move together."""
    accepted = np.array([1, 2, 3, 2, 1])
    steps = Steps([4] * 5, accepted, 10.0 * (accepted + 1) + [0.1, -0.1, 0, 0.1, -0.1], NAMES)
    found = break_even(RawLeg([101] * 5, [1000.0, 1001, 999, 1000, 1000], NAMES), steps, n_max=4)
    assert found.margin.high - found.margin.low < 0.1 * (found.mean_length.high - found.mean_length.low)


def test_a_margin_above_0_and_a_decode_rate_above_raw_say_the_same():
    rng = np.random.default_rng(3)
    pays = break_even(*legs(rng, fixed=12), n_max=4)
    loses = break_even(*legs(rng, fixed=60), n_max=4)
    assert pays.margin.low > 0
    assert pays.decode.low > pays.raw.high
    assert loses.margin.high < 0
    assert loses.decode.high < loses.raw.low


def test_drafts_cut_short_have_no_break_even_in_acceptance():
    raw = RawLeg([101] * 3, [1000, 1010, 990], ["a", "b", "c"])
    found = break_even(raw, Steps([1, 4, 2], [1, 2, 1], [20, 21, 19], ["a", "b", "c"]), n_max=4)
    assert np.isnan(found.acceptance_needed.estimate)
    assert "58% of n_max" in found.acceptance_needed.note
    assert found.margin.shown


def test_only_prompts_of_both_legs_count():
    raw = RawLeg([101] * 4, [1000, 1010, 990, 500], ["a", "b", "c", "raw only"])
    found = break_even(raw, Steps([4] * 4, [1, 2, 3, 4], [20, 21, 19, 9], ["a", "b", "c", "drafted only"]), n_max=4)
    assert (found.prompts, found.unpaired) == (3, 2)
    assert found.raw.estimate == pytest.approx(100)


def test_evaluations_without_a_draft_enter_the_decode_rate_alone():
    raw = RawLeg([101] * 3, [1000, 1010, 990], ["a", "b", "c"])
    steps = Steps([4] * 3 + [0] * 3, [1, 2, 3, 0, 0, 0], [20, 21, 19, 10, 10, 10], ["a", "b", "c"] * 2)
    found = break_even(raw, steps, n_max=4)
    assert found.mean_length.estimate == pytest.approx(3)
    assert found.decode.estimate == pytest.approx(1000 * 12 / 90)


def test_crossing_finds_the_acceptance_at_which_a_known_law_breaks_even():
    """1 + A = 0.1 (20 + 2 A): A = 1.25."""
    raw, steps = legs(np.random.default_rng(1), fixed=20, slope=2)
    found = crossing(raw, steps)
    assert found.estimate == pytest.approx(1.25, abs=0.02)
    assert found.contains(1.25)


def test_crossing_and_break_even_agree_where_acceptance_costs_nothing():
    raw, steps = legs(np.random.default_rng(1), fixed=25)
    assert crossing(raw, steps).estimate + 1 == pytest.approx(
        break_even(raw, steps, n_max=4).length_needed.estimate, abs=0.01
    )


def test_a_token_that_costs_what_it_saves_never_crosses():
    raw, steps = legs(np.random.default_rng(1), fixed=20, slope=11)
    assert crossing(raw, steps).note == "no crossing: a further token costs what it saves"


def test_steps_that_accept_alike_have_no_line():
    raw = RawLeg([101] * 3, [1000, 1010, 990], ["a", "b", "c"])
    assert not crossing(raw, Steps([4] * 3, [2] * 3, [20, 21, 19], ["a", "b", "c"])).shown


@settings(max_examples=100)
@given(st.floats(1, 1000), st.floats(1, 1000), st.integers(1, 16))
def test_at_break_even_both_ways_decode_alike(raw, step, n):
    assert decode_at(break_even_length(raw, step), step) == pytest.approx(raw)
    assert decode_at(1 + n * break_even_acceptance(raw, step, n), step) == pytest.approx(raw)
