import numpy as np
import pytest

from analysis.stats import block_orders, drift, speed_ratio


def test_orders_are_balanced_random_and_extend_each_other():
    orders = block_orders(40, seed=3)
    assert orders.count("abba") == orders.count("baab") == 20
    assert block_orders(40, seed=4) != orders
    assert block_orders(11, seed=3) == orders[:11]
    assert abs(block_orders(7, seed=1).count("abba") - 3.5) == 0.5


def test_both_sides_have_the_same_mean_position_in_every_block():
    for order in block_orders(8, seed=0):
        places = {side: [place for place, other in enumerate(order) if other == side] for side in "ab"}
        assert sum(places["a"]) == sum(places["b"]) == 3


def test_a_drift_is_the_factor_from_the_first_block_to_the_last():
    found = drift(np.log(np.linspace(100.0, 110.0, 12)) + 0.001 * np.resize([1, -1], 12))
    assert found.estimate == pytest.approx(1.1, abs=0.005)
    assert found.contains(1.1)
    assert not found.contains(1.0)
    assert found.unit == "blocks"


def test_a_drift_of_three_blocks_shows_no_limits():
    assert not drift([0.0, 0.1, 0.0]).shown


def test_the_drift_of_noise_holds_1_as_often_as_it_says():
    rng = np.random.default_rng(5)
    held = [drift(rng.normal(0, 0.05, size=8)).contains(1.0) for _ in range(2000)]
    assert np.mean(held) == pytest.approx(0.95, abs=0.015)


@pytest.mark.parametrize("blocks", [4, 8])
def test_a_server_against_itself_on_a_drifting_machine_holds_1_as_often_as_it_says(blocks):
    """Speed falls by a third over the duel; prompts differ in rate; legs jitter by 2 %."""
    rng = np.random.default_rng(9)
    held = []
    for number in range(1000):
        a, b, block = [], [], []
        clock = np.linspace(1.0, 0.67, 4 * blocks)
        for place, order in enumerate(block_orders(blocks, seed=number)):
            for half in (0, 1):
                prompt = rng.lognormal(4, 0.3)
                for leg in (2 * half, 2 * half + 1):
                    rate = prompt * clock[4 * place + leg] * rng.lognormal(0, 0.02)
                    (a if order[leg] == "a" else b).append(rate)
                block.append(place)
        held.append(speed_ratio(a, b, block, unit="blocks").contains(1.0))
    assert np.mean(held) == pytest.approx(0.95, abs=0.025)
