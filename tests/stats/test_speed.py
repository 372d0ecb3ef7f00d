import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis.stats import decode_rate, speed_ratio, step_cost_by_accepted, verdict
from analysis.stats.intervals import Interval, no_interval


def test_the_first_token_belongs_to_the_fill():
    """65 tokens in 640 ms are 64 decoded ones: 100 a second."""
    assert decode_rate([65, 65, 65], [640, 640, 640], ["a", "b", "c"]).estimate == pytest.approx(100)


def test_decode_rate_weighs_time_not_samples():
    """64 tokens in 0.5 s and 64 in 1.5 s are 128 in 2 s."""
    assert decode_rate([65, 65, 1], [500, 1500, 0], ["a", "b", "c"]).estimate == pytest.approx(64)


def test_step_cost_by_accepted_tokens():
    table = step_cost_by_accepted([0, 2, 2, 2, 2], [0, 0, 0, 2, 2], [5, 10, 12, 20, 22], ["a", "a", "b", "a", "b"])
    assert [(row.accepted, row.steps, row.ms.estimate) for row in table] == [(None, 1, 5), (0, 2, 11), (2, 2, 21)]


def test_evaluations_that_repeat_others_after_a_restore_took_no_time_of_their_own():
    """A restored checkpoint: the draft's evaluation has all the time, its repetition 0 ms."""
    table = step_cost_by_accepted([3, 0, 0], [1, 0, 0], [30, 0, 10], ["a", "a", "a"])
    assert [(row.accepted, row.steps, row.ms.estimate) for row in table] == [(None, 1, 10), (1, 1, 30)]


def test_speed_ratio_by_hand():
    """Ratios 2, 2 and 4: the geometric mean is 16 ** (1/3) = 2.52; logs have standard deviation ln 2 / sqrt(3)."""
    ratio = speed_ratio([10, 20, 10], [20, 40, 40], ["a", "b", "c"])
    half = 4.3027 * np.log(2) / 3
    assert ratio.estimate == pytest.approx(16 ** (1 / 3))
    assert ratio.limits == pytest.approx((2.5198 / np.exp(half), 2.5198 * np.exp(half)), rel=1e-3)


def test_pairs_of_one_prompt_are_one_witness():
    ratio = speed_ratio([10, 10, 10, 10], [20, 20, 20, 20], ["a", "a", "b", "b"])
    assert ratio.n == 2
    assert not ratio.shown


def test_a_rate_of_nothing_is_refused():
    with pytest.raises(ValueError, match="not positive"):
        speed_ratio([0, 1], [1, 1], ["a", "b"])


@pytest.mark.parametrize(
    ("low", "high", "says"),
    [(1.01, 1.5, "pays"), (0.5, 0.99, "loses"), (0.99, 1.01, "undecided"), (1.0, 1.2, "undecided")],
)
def test_verdict(low, high, says):
    assert verdict(Interval(estimate=(low + high) / 2, low=low, high=high, method="t", n=5)) == says


def test_without_an_interval_nothing_is_decided():
    assert verdict(no_interval(3.0, n=2, note="2 prompts")) == "undecided"


RATES = st.lists(st.floats(1, 1000), min_size=3, max_size=12)


@settings(max_examples=60)
@given(RATES, st.floats(0.2, 5))
def test_a_constant_factor_moves_the_ratio_by_that_factor(raw, factor):
    drafted = [rate * (1.1 if i % 2 else 0.9) for i, rate in enumerate(raw)]
    names = range(len(raw))
    base, scaled = (speed_ratio(raw, [rate * by for rate in drafted], names) for by in (1.0, factor))
    assert scaled.limits == pytest.approx(tuple(factor * limit for limit in base.limits))


@settings(max_examples=60)
@given(RATES)
def test_swapping_the_legs_inverts_the_ratio(raw):
    drafted = [rate * (1.1 if i % 2 else 0.9) for i, rate in enumerate(raw)]
    names = range(len(raw))
    forth, back = speed_ratio(raw, drafted, names), speed_ratio(drafted, raw, names)
    assert back.limits == pytest.approx((1 / forth.high, 1 / forth.low))
