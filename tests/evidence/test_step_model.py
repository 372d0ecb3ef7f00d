"""The mechanistic model of the step, and how far off it is."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.evidence import frames, published
from analysis.evidence.interval import Interval
from analysis.evidence.step_model import (
    compare,
    distinct_experts,
    missed_by,
    models,
    speed_ratio,
    step_bytes,
    step_ms,
    verdict,
)
from analysis.records import Problem


def errors():
    return {found.cell.row.id: found.error for found in compare(published.rows())}


def test_distinct_experts():
    assert distinct_experts(256, 6, 1).low == distinct_experts(256, 6, 1).high == 6
    # 256 x (1 - (250 / 256)^2) = 11.859: two rows share 0.14 experts on average
    assert float(distinct_experts(256, 6, 2).high) == pytest.approx(11.859, abs=1e-3)
    assert distinct_experts(4, 4, 9) == Interval.exactly(4)


@given(st.integers(1, 64), st.integers(1, 300), st.integers(1, 20))
def test_distinct_experts_stay_within_bounds(used, spare, rows):
    found = distinct_experts(used + spare, used, rows)
    assert used <= found.low <= found.high <= min(used + spare, used * rows)


def test_bytes_of_a_raw_step():
    target = models()["target_b"]
    # dense 6.445e9 x 8.5 / 8 = 6.848 GB; experts 43 x 6 x 25165824 x 2.564 / 8 = 2.081 GB
    assert float(target.evaluation_bytes(1, 0).high) == pytest.approx(6.848e9 + 2.081e9, rel=1e-3)
    assert target.evaluation_bytes(1, 1000).low - target.evaluation_bytes(1, 0).low == 1000 * 1504


def test_experts_and_dense_weights_make_up_the_files():
    """What the model reads at most is what the files hold, but for the embedding and a few small tensors."""
    for name, row, factor in (("target_b", "b_target_size", 2**30), ("target_a_vision", "a_vision_target_size", 10**9)):
        found = models()[name]
        everything = found.dense_bytes + found.layers * found.experts * found.expert_parameters * found.expert_bits / 8
        held = published.rows()[row].printed.interval.centre * factor
        assert 0.97 < everything / held < 1


def test_a_drafted_step_moves_more_with_each_draft():
    target, drafter = models()["target_b"], models()["drafter_q2k"]
    moved = [step_bytes(target, drafter, n, 5, 0).high for n in range(6)]
    assert moved == sorted(moved)


def test_bytes_become_milliseconds():
    # 10 GB at 100 GB/s is 100 ms, and 5 ms of fixed cost
    assert step_ms(Interval.exactly(10**10), 100.0, 5.0) == Interval.exactly(105)


def test_how_far_off_the_model_is():
    """Stated, not hidden: within 7 % for one and two drafts and for card A's three; a third too short from three on.

    Bytes do not explain card B's steps at n_max 3 and more, nor the patched build at depth.
    """
    found = errors()
    near = ("b_n1_decode", "b_n2_decode", "a_vision_decode", "b_cached_draft", "b_12k_draft", "b_85k_draft")
    assert all(abs(found[name].centre) < 7 for name in near)
    assert all(-40 < found[name].centre < -20 for name in ("b_n3_decode", "b_n4_decode", "b_n6_decode"))
    assert found["b_85k_hip_draft"].centre < -15
    assert len(found) == 16


def test_the_frame_shows_model_and_measurement_side_by_side():
    frame = frames.step_model()
    assert len(frame) == len(errors())
    vision = frame.loc["a_vision_decode"]
    # 2.81 x 15.57 / 24.04 = 1.820 raw steps
    assert vision["measured"] == pytest.approx(2.81 * 15.57 / 24.04)
    assert vision["drafter_stated"]
    assert not frame.loc["b_n2_decode", "drafter_stated"]


def test_a_verdict_from_a_bandwidth():
    target, drafter = models()["target_b"], models()["drafter_q2k"]
    ratio = speed_ratio(target, drafter, 2, Interval.exactly(Fraction("2.518")), {"bandwidth": 125.0})
    # card B measured 20.43 / 14.03 = 1.456; independent routing gives 2.518 / 1.673 = 1.505
    assert float(ratio.low) == pytest.approx(1.505, abs=0.002)
    assert verdict(ratio) == "pays"
    assert verdict(speed_ratio(target, drafter, 5, Interval.exactly(1), {"bandwidth": 125.0})) == "loses"
    assert verdict(speed_ratio(target, drafter, 5, Interval.exactly(2), {"bandwidth": 125.0})) == "undecided"


def test_a_fixed_cost_of_the_drafter_counts_against_it():
    target, drafter = models()["target_b"], models()["drafter_q2k"]
    length = Interval.exactly(2)
    plain = speed_ratio(target, drafter, 2, length, {"bandwidth": 125.0})
    dearer = speed_ratio(target, drafter, 2, length, {"bandwidth": 125.0, "draft_ms": 40.0})
    assert dearer.low < plain.low


def test_sizes_that_are_no_numbers_are_refused(copied):
    path = copied / "models.csv"
    path.write_text(path.read_text(encoding="utf-8").replace(",43,", ",many,"), encoding="utf-8")
    with pytest.raises(Problem, match=r"models\.csv:2: layers 'many' is not a number"):
        models(copied)


def test_what_the_model_missed_by():
    found = compare(published.rows())
    factor = missed_by(found)
    # the worst: card B at n_max 6, 264.29 ms / 71.28 ms = 3.708 raw steps against 2.306 of a block of five
    assert float(factor.high) == pytest.approx(3.708 / 2.306, abs=0.01)
    assert factor.low <= factor.centre <= factor.high
    with pytest.raises(ValueError, match="no published cell"):
        missed_by([])
