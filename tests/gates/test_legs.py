import pytest
from evidence_for_tests import drafted_sample, make_evidence

from analysis.gates import check_all, publishable
from analysis.gates.legs import LegsAlike, LegUndisturbed
from analysis.records import Block, Leg
from factories import make_host


def make_block(number=0, legs=None, order="abba"):
    changes = legs or {}
    made = [
        Leg(
            **{
                "contestant": side,
                "server": f"{side}-0",
                "samples": (4 * number + place,),
                "host_before": make_host(),
                "host_after": make_host(),
            }
            | changes.get(place, {})
        )
        for place, side in enumerate(order)
    ]
    return Block(number=number, order=order, legs=tuple(made))


def findings(gate, *blocks):
    return [(f.level, str(f.where), f.saw) for f in gate.check(make_evidence(blocks=blocks))]


@pytest.mark.parametrize(
    ("counter", "saw"),
    [
        ("major_faults", "3 major page faults"),
        ("swap_in", "3 bytes swapped in"),
        ("swap_out", "3 bytes swapped out"),
    ],
)
def test_a_leg_during_which_memory_moved_is_refused(counter, saw):
    block = make_block(legs={2: {"host_after": make_host(**{counter: 3})}})
    assert findings(LegUndisturbed(), make_block(), block) == [("refuse", "leg 1.3", saw)]


def test_memory_that_a_gpu_lost_is_refused():
    block = make_block(legs={0: {"host_before": make_host(gpu_evicted=0), "host_after": make_host(gpu_evicted=4096)}})
    assert findings(LegUndisturbed(), block) == [("refuse", "leg 1.1", "4096 bytes of GPU memory evicted")]


def test_what_nobody_read_is_unchecked():
    block = make_block(legs={1: {"host_after": make_host(major_faults=None)}})
    assert findings(LegUndisturbed(), block) == [("unchecked", "leg 1.2", "not known at both ends: major_faults")]


@pytest.mark.parametrize(
    ("state", "saw"),
    [
        ({"host_before": make_host(load1=9.0)}, "a load of 9 on 2 cores"),
        ({"host_after": make_host(frequency_mhz=2000.0, temperature_c=60.0)}, "2000 MHz where the median is 3000"),
        ({"host_after": make_host(frequency_mhz=3000.0, temperature_c=85.0)}, "85 °C where the median is 60"),
    ],
)
def test_a_leg_on_another_kind_of_machine_warns(state, saw):
    steady = {"host_after": make_host(frequency_mhz=3000.0, temperature_c=60.0)}
    legs = dict.fromkeys(range(3), steady) | {3: steady | state}
    assert findings(LegsAlike(), make_block(legs=legs)) == [("warn", "leg 1.4", saw)]


def test_the_samples_of_a_refused_leg_are_left_out_and_the_others_stay():
    samples = [drafted_sample(number) for number in range(4)]
    blocks = (make_block(legs={1: {"host_after": make_host(major_faults=1)}}),)
    evidence = make_evidence(samples=samples, blocks=blocks)
    kept = publishable(samples, check_all(evidence), blocks)
    assert [sample.index for sample in kept] == [0, 2, 3]


def test_a_block_whose_legs_are_in_another_order_is_no_block():
    block = make_block()
    with pytest.raises(ValueError, match="in order baab"):
        Block(number=0, order="baab", legs=block.legs)
