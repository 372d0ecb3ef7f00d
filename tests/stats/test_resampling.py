import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from analysis.stats.resampling import (
    Degenerate,
    bca_limits,
    cluster_sums,
    jackknife_error,
    leave_one_out,
    resample,
)


def mean(sums):
    return sums[..., 0] / sums[..., 1]


def singletons(values):
    """Each value is a cluster of its own: the cluster methods are then the plain ones."""
    return np.column_stack([values, np.ones(len(values))])


def test_sums_are_taken_per_prompt_in_order_of_appearance():
    sums = cluster_sums(["b", "a", "b", "a"], [1, 10, 2, 20], [1, 1, 1, 1])
    assert sums.tolist() == [[3, 2], [30, 2]]


def test_columns_of_different_lengths_are_refused():
    with pytest.raises(ValueError, match="shapes"):
        cluster_sums(["a", "b"], [1, 2, 3])


def test_leaving_one_prompt_out_subtracts_its_sums():
    assert leave_one_out(np.array([[1.0, 1], [2, 1], [4, 1]])).tolist() == [[6, 2], [5, 2], [3, 2]]


def test_jackknife_error_of_a_mean_is_the_textbook_error():
    values = np.array([1.0, 2, 4, 8])
    assert jackknife_error(singletons(values), mean) == pytest.approx(stats.sem(values))


def test_one_draw_serves_every_column():
    sums = np.array([[1.0, 10], [2, 20], [3, 30]])
    totals = resample(sums, resamples=50, seed=3)
    np.testing.assert_allclose(totals[:, 1], 10 * totals[:, 0])


def test_equal_seeds_give_equal_resamples_and_others_do_not():
    sums = singletons(np.arange(10.0))
    assert (resample(sums, resamples=20, seed=1) == resample(sums, resamples=20, seed=1)).all()
    assert (resample(sums, resamples=20, seed=1) != resample(sums, resamples=20, seed=2)).any()


def test_small_chunks_resample_as_large_ones_do(monkeypatch):
    monkeypatch.setattr("analysis.stats.resampling.CHUNK_BYTES", 8 * 10 * 7)
    totals = resample(singletons(np.arange(10.0)), resamples=2000, seed=1)
    assert (totals[:, 1] == 10).all()
    assert mean(totals).mean() == pytest.approx(4.5, abs=0.1)
    assert mean(totals).std() == pytest.approx(np.arange(10).std() / np.sqrt(10), rel=0.1)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_bca_agrees_with_scipy_on_single_trials(seed):
    values = np.random.default_rng(seed).gamma(2.0, size=40)
    ours = bca_limits(singletons(values), mean, level=0.95, resamples=20_000, seed=seed)
    theirs = stats.bootstrap((values,), np.mean, n_resamples=20_000, method="BCa", rng=seed).confidence_interval
    width = theirs.high - theirs.low
    # Two sets of 20,000 resamples: a 2.5 % quantile has a Monte-Carlo error near 0.6 % of the width.
    assert ours == pytest.approx((theirs.low, theirs.high), abs=0.03 * width)


def test_bca_bends_towards_the_long_tail_where_the_percentile_bootstrap_does_not():
    values = np.random.default_rng(5).gamma(0.5, size=30)
    low, high = bca_limits(singletons(values), mean, level=0.95, resamples=5000, seed=0)
    plain = np.quantile(mean(resample(singletons(values), resamples=5000, seed=0)), [0.025, 0.975])
    assert low > plain[0]
    assert high > plain[1]


@pytest.mark.parametrize(
    ("values", "why"),
    [([2.0, 2, 2, 2], "one side"), ([1.0, np.nan, 2], "not defined")],
)
def test_bca_says_why_it_cannot(values, why):
    with pytest.raises(Degenerate, match=why):
        bca_limits(singletons(np.array(values)), mean, level=0.95, resamples=100, seed=0)


@settings(max_examples=50)
@given(
    st.lists(st.tuples(st.integers(0, 5), st.floats(-1e3, 1e3)), min_size=1, max_size=60),
    st.randoms(use_true_random=False),
)
def test_the_order_of_rows_does_not_change_the_sums(rows, random):
    shuffled = list(rows)
    random.shuffle(shuffled)
    assert named_sums(rows) == pytest.approx(named_sums(shuffled), abs=1e-6)


def named_sums(rows):
    names, values = zip(*rows, strict=True)
    return dict(zip(dict.fromkeys(names), cluster_sums(names, values)[:, 0], strict=True))
