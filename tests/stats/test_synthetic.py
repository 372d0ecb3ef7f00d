import numpy as np
import pytest

from analysis.stats import acceptance
from analysis.stats.synthetic import mean_share, simulate, truth

RATES = (0.8, 0.6, 0.45, 0.3, 0.2)


def test_long_requests_find_the_rates_themselves():
    found = truth(RATES, 20_000)
    assert found.survival == pytest.approx(RATES, abs=1e-3)
    assert found.mean_length == pytest.approx(1 + sum(RATES), abs=1e-3)
    assert found.aggregate == pytest.approx(sum(RATES) / 5, abs=1e-3)


def test_short_requests_survive_less_and_propose_the_same():
    found = truth(RATES, 16)
    assert all(short < rate for short, rate in zip(found.survival[1:], RATES[1:], strict=True))
    assert found.proposal == RATES
    assert found.conditional == pytest.approx((0.8, 0.75, 0.75, 2 / 3, 2 / 3))


@pytest.mark.parametrize("emitted", [3, 6, 7, 40])
def test_the_truth_is_what_simulated_requests_add_up_to(emitted):
    accepted, drafted = simulate(RATES, emitted, 40_000, np.random.default_rng(1))
    found, steps = truth(RATES, emitted), (drafted > 0).sum()
    assert (accepted.sum(axis=1) + (drafted > 0).sum(axis=1) <= emitted - 1).all()
    assert 1 + accepted.sum() / steps == pytest.approx(found.mean_length, rel=0.01)
    assert accepted.sum() / drafted.sum() == pytest.approx(found.aggregate, rel=0.01)
    for k, survival in enumerate(found.survival, 1):
        assert (accepted >= k).sum() / steps == pytest.approx(survival, abs=0.01)


def test_an_emission_is_the_fill_the_accepted_and_one_an_evaluation():
    accepted, drafted = simulate(RATES, 24, 200, np.random.default_rng(2))
    for a, d in zip(accepted, drafted, strict=True):
        emitted, place = 1, 0
        while emitted < 24:
            assert d[place] == min(5, 24 - emitted - 1)
            emitted, place = emitted + int(a[place]) + 1, place + 1
        assert emitted == 24
        assert not a[place:].any()


def test_the_mean_share_is_no_ratio_of_sums():
    accepted, drafted = simulate(RATES, 24, 50_000, np.random.default_rng(3))
    shares = accepted.sum(axis=1) / drafted.sum(axis=1)
    assert mean_share(RATES, 24) == pytest.approx(shares.mean(), abs=0.003)


def test_intervals_over_simulated_requests_hold_the_truth_as_often_as_they_say():
    rng = np.random.default_rng(4)
    held: list[bool] = []
    expected = truth(RATES, 40)
    for _ in range(400):
        accepted, drafted = simulate(RATES, 40, 10, rng)
        verified = drafted > 0
        who = np.repeat(np.arange(10), drafted.shape[1]).reshape(drafted.shape)
        found = acceptance(drafted[verified], accepted[verified], who[verified], n_max=5)
        held.append(found.mean_length.contains(expected.mean_length))
    assert np.mean(held) == pytest.approx(0.95, abs=0.033)


@pytest.mark.parametrize(
    ("rates", "emitted"), [((), 10), ((0.5, 0.6), 10), ((1.2,), 10), ((0.5, -0.1), 10), ((0.5,), 2)]
)
def test_what_is_no_survival_is_refused(rates, emitted):
    with pytest.raises(ValueError, match=r"rates|tokens"):
        truth(rates, emitted)
