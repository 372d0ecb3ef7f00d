import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from analysis.stats.intervals import POSITIVE, SHARE, Interval, Scale, exact_share, interval_of, mean_t, no_interval


def ratio(sums):
    with np.errstate(invalid="ignore", divide="ignore"):
        return sums[..., 0] / sums[..., 1]


def test_mean_t_by_hand():
    """1, 2, 3: mean 2, standard error 1/sqrt(3) = 0.577, t with 2 degrees of freedom 4.303."""
    interval = mean_t([1, 2, 3])
    assert (interval.estimate, interval.low, interval.high) == pytest.approx((2, 2 - 2.484, 2 + 2.484), abs=1e-3)


def test_exact_share_is_clopper_and_pearson():
    theirs = stats.binomtest(7, 10).proportion_ci(method="exact")
    ours = exact_share(7, 10)
    assert (ours.low, ours.high) == pytest.approx((theirs.low, theirs.high))


def test_no_success_in_five_has_the_known_upper_limit():
    """1 - 0.025 ** (1/5) = 0.5218."""
    assert exact_share(0, 5).limits == pytest.approx((0, 0.5218), abs=1e-4)


def test_a_ratio_of_three_prompts_by_hand():
    """4/10, 5/10, 6/10: estimate 0.5, jackknife error 0.0577; on the logit scale 4.303 x 0.0577 / 0.25 = 0.9936."""
    interval = interval_of(np.array([[4.0, 10], [5, 10], [6, 10]]), ratio, scale=SHARE)
    assert interval.estimate == 0.5
    assert interval.limits == pytest.approx((1 / (1 + math.exp(0.9936)), 1 / (1 + math.exp(-0.9936))), abs=1e-4)
    assert interval.method == "jackknife t (logit)"


def test_a_positive_quantity_is_judged_on_the_log_scale():
    """Rates 1, 2 and 4 over equal times: limits are the estimate times and divided by one factor."""
    interval = interval_of(np.array([[1.0, 1], [2, 1], [4, 1]]), ratio, scale=POSITIVE)
    low, high = interval.limits
    assert low * high == pytest.approx(interval.estimate**2)


def test_two_prompts_show_no_interval_and_say_why():
    interval = interval_of(np.array([[4.0, 10], [5, 10]]), ratio, scale=SHARE)
    assert interval.limits is None
    assert interval.note == "2 prompts, and an interval needs 3"
    assert str(interval) == "0.45 (no interval: 2 prompts, and an interval needs 3)"


@pytest.mark.parametrize(("prompts", "few"), [(2, False), (3, True), (7, True), (8, False)])
def test_an_interval_over_few_prompts_says_that_they_are_few(prompts, few):
    sums = np.array([[4.0 + n % 3, 10] for n in range(prompts)])
    interval = interval_of(sums, ratio, scale=SHARE)
    assert interval.few == few == (f"few: {prompts} prompts" in interval.describe())


def test_near_the_ceiling_few_prompts_show_no_interval():
    few = np.array([[9.4, 10], [9.6, 10], [9.2, 10], [9.5, 10], [9.8, 10]])
    assert "near its ceiling an interval needs 80 prompts" in interval_of(few, ratio, scale=SHARE).note
    assert interval_of(np.tile(few, (16, 1)), ratio, scale=SHARE).shown


def test_prompts_that_all_accept_nothing_are_counted_exactly():
    interval = interval_of(np.array([[0.0, 10]] * 5), ratio, scale=SHARE)
    assert interval.limits == pytest.approx((0, 0.5218), abs=1e-4)
    assert interval.method == "exact, prompts all alike"


def test_a_length_at_its_ceiling_is_counted_on_its_own_scale():
    interval = interval_of(np.array([[6.0, 1]] * 5), ratio, scale=Scale(1, 6))
    assert interval.limits == pytest.approx((6 - 5 * 0.5218, 6), abs=1e-3)


def test_prompts_that_do_not_differ_give_no_interval():
    assert interval_of(np.array([[1.0, 2]] * 5), ratio, scale=SHARE).note == "the prompts do not differ"


def test_bca_that_cannot_falls_back_and_says_so(monkeypatch):
    """A single resample always lies on one side of the estimate."""
    monkeypatch.setattr("analysis.stats.intervals.RESAMPLES", 1)
    interval = interval_of(np.array([[1.0, 4], [2, 4], [3, 4]]), ratio, scale=SHARE, method="bca")
    assert interval.method == "jackknife t (logit)"
    assert interval.note == "no BCa, because the resamples lie on one side of the estimate"


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ({"low": 2.0, "high": 1.0}, "upside down"),
        ({"low": 1.0, "high": None}, "two limits or none"),
        ({"low": None, "high": None}, "says why"),
        ({"low": 0.0, "high": 1.0, "method": ""}, "names its method"),
        ({"low": 0.0, "high": 1.0, "level": 95}, "not between"),
    ],
)
def test_an_interval_that_does_not_say_what_it_is_cannot_be_made(wrong, why):
    with pytest.raises(ValueError, match=why):
        Interval(**{"estimate": 0.5, "method": "t", "n": 5} | wrong)


@pytest.mark.parametrize(
    ("interval", "text"),
    [
        (Interval(estimate=0.5317, low=0.4612, high=0.6011, method="t", n=5), "0.532 [0.461, 0.601]"),
        (Interval(estimate=48.13, low=41.2, high=55.9, method="t", n=5), "48.1 [41.2, 55.9]"),
        (Interval(estimate=1234.5, low=1100, high=1400, method="t", n=5), "1234 [1100, 1400]"),
        (no_interval(0.5, n=2, note="few"), "0.50 (no interval)"),
        (no_interval(math.nan, n=0, note="none"), "–"),
    ],
)
def test_an_interval_shows_two_digits_of_its_half_width(interval, text):
    assert interval.format() == text


def test_a_share_can_be_shown_as_per_cent():
    shown = Interval(estimate=0.5317, low=0.4612, high=0.6011, method="t", n=5).format(percent=True, decimals=0)
    assert shown == "53 [46, 60] %"


@settings(max_examples=100)
@given(st.lists(st.tuples(st.integers(0, 30), st.integers(1, 30)), min_size=3, max_size=12))
def test_limits_enclose_the_estimate_and_stay_in_range(prompts):
    sums = np.array([[min(a, d), d] for a, d in prompts], dtype=float)
    for method in ("auto", "bca"):
        interval = interval_of(sums, ratio, scale=SHARE, method=method)
        if interval.limits is None:
            assert interval.note
        elif interval.method != "BCa":  # BCa limits may both lie on one side of a skewed estimate
            assert 0 <= interval.low <= interval.estimate <= interval.high <= 1


@settings(max_examples=50)
@given(st.lists(st.floats(0.1, 100), min_size=2, max_size=10, unique=True))
def test_a_higher_level_is_wider(values):
    narrow, wide = mean_t(values, level=0.9), mean_t(values, level=0.99)
    if narrow.shown:
        assert wide.low < narrow.low < narrow.high < wide.high


def test_the_t_interval_of_few_uneven_prompts_covers_and_the_percentile_bootstrap_does_not():
    """Five prompts, beta(4.8, 3.2), 30 steps each; 600 repetitions leave a Monte-Carlo error of 1 to 2 points."""
    rng = np.random.default_rng(11)
    t_hits = percentile_hits = 0
    for _ in range(600):
        successes = rng.binomial(30, rng.beta(4.8, 3.2, size=5)).astype(float)
        t_hits += interval_of(np.column_stack([successes, np.full(5, 30.0)]), ratio, scale=SHARE).contains(0.6)
        drawn = successes[rng.integers(0, 5, size=(300, 5))].mean(axis=1) / 30
        low, high = np.quantile(drawn, [0.025, 0.975])
        percentile_hits += low <= 0.6 <= high
    assert 0.92 <= t_hits / 600 <= 0.98
    assert percentile_hits / 600 < 0.88
