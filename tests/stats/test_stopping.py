"""Proof by simulation, in short; `benchmarks/stopping.py` has the long version and what validity costs in width."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis.stats.intervals import t_quantile
from analysis.stats.stopping import Rule, _t_bound, bounded_sequence, normal_sequence


def ever_missed(sequence, truth):
    """Whether any of the limits, at any size, left the truth out."""
    return bool(((sequence.low > truth) | (sequence.high < truth)).any())


def t_limits(values):
    """The fixed-n t interval after each value, from the third on."""
    n = np.arange(1, len(values) + 1)
    mean = np.cumsum(values) / n
    spread = np.sqrt(np.maximum(np.cumsum(values**2) / n - mean**2, 0) / np.maximum(n - 1, 1))
    half = np.array([t_quantile(int(k), 0.95) for k in n[2:]]) * spread[2:]
    return mean[2:] - half, mean[2:] + half


@pytest.mark.parametrize(("a", "b"), [(6, 4), (0.9, 0.1)])
def test_the_bounded_sequence_holds_the_mean_at_all_sizes_at_once(a, b):
    """200 runs of 50 looks; 95 % less three Monte-Carlo errors of 1.5 points is 90 %."""
    rng = np.random.default_rng(2)
    missed = sum(ever_missed(bounded_sequence(rng.beta(a, b, size=50)), a / (a + b)) for _ in range(200))
    assert missed / 200 <= 0.10


def test_the_normal_sequence_holds_the_mean_at_all_sizes_at_once_and_repeated_t_intervals_do_not():
    """1000 runs of 60 looks; 95 % less three Monte-Carlo errors of 0.7 points is 93 %.

    Read as duels of a server against itself: stopping at the first look that excludes equality finds a difference
    in more than a fifth of them, if the interval is one for a fixed number of prompts.
    """
    rng = np.random.default_rng(3)
    missed = peeked = 0
    for _ in range(1000):
        values = rng.normal(0.1, 3.0, size=60)
        missed += ever_missed(normal_sequence(values), 0.1)
        low, high = t_limits(values)
        peeked += bool(((low > 0.1) | (high < 0.1)).any())
    assert missed / 1000 <= 0.07
    assert peeked / 1000 > 0.20


def test_the_normal_bound_is_where_the_likelihood_ratio_reaches_its_limit():
    """Put the bound for ten values back into the mixture: it must give 1 / 0.05."""
    (t,) = _t_bound(np.array([10]), 0.05, planned=10)
    g = (2 * math.log(20) + math.log(1 + 2 * math.log(20))) / 10
    r = 1 + 10 * g
    assert math.sqrt(1 / r) * ((1 + t**2 / 9) / (1 + t**2 / (9 * r))) ** 5 == pytest.approx(20)


@settings(max_examples=50)
@given(st.lists(st.floats(0, 1), min_size=1, max_size=40))
def test_looking_again_never_widens_and_bounds_are_kept(values):
    sequence = bounded_sequence(values)
    assert (np.diff(sequence.low) >= 0).all()
    assert (np.diff(sequence.high) <= 0).all()
    assert (sequence.low >= 0).all()
    assert (sequence.high <= 1).all()


@settings(max_examples=50)
@given(st.lists(st.floats(0, 1), min_size=1, max_size=30))
def test_other_bounds_are_a_change_of_unit(values):
    plain, shifted = bounded_sequence(values), bounded_sequence([1 + 5 * v for v in values], low=1, high=6)
    np.testing.assert_allclose(shifted.low, 1 + 5 * plain.low, atol=1e-9)
    np.testing.assert_allclose(shifted.high, 1 + 5 * plain.high, atol=1e-9)


def test_values_out_of_bounds_are_refused():
    with pytest.raises(ValueError, match="outside 0"):
        bounded_sequence([0.5, 1.2])


def test_a_rule_stops_when_the_valid_interval_is_narrow_enough():
    values = np.tile([0.5, 0.55, 0.6], 20)
    sizes = [n for n in range(3, 61) if Rule(width=0.3, budget=60).decide(values[:n]).stop]
    first = Rule(width=0.3, budget=60).decide(values[: sizes[0]])
    assert first.why == "narrow enough"
    assert sizes[0] < 60
    assert first.price > 1
    assert first.fixed.method == "t"


def test_a_rule_stops_when_the_budget_is_spent():
    decision = Rule(width=0.01, budget=5).decide([0.1, 0.9, 0.4, 0.6, 0.5])
    assert (decision.stop, decision.why) == (True, "budget spent")


def test_a_rule_goes_on_while_it_knows_too_little():
    assert Rule(width=0.1, budget=50).decide([]).valid.note == "no values yet"
    early = Rule(width=0.1, budget=50, kind="normal").decide([0.1, 0.2])
    assert (early.stop, early.valid.note) == (False, "2 prompts do not bound it yet")
    assert early.price is None


def test_values_that_drift_contradict_every_mean():
    decision = Rule(width=0.1, budget=400).decide([0.1] * 150 + [0.9] * 150)
    assert decision.valid.note == "no mean fits all values: they drift"
