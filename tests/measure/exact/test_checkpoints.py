"""Which rollbacks a cache allows, and that both ways of undoing end at the same tokens."""

import numpy as np
import pytest

from analysis.convert.dsv4 import Recipe
from analysis.launch.inside import Context, Model
from analysis.measure.exact.checkpoints import checkpoint_cost, rollback_limits, saved_slot, two_ways
from analysis.measure.exact.tiny import right_text
from analysis.records import Problem

TOKENS = right_text(Recipe(), 700)


def test_the_caches_of_deepseek_v4_take_back_only_what_they_keep_a_state_for(dsv4_model):
    limits = rollback_limits(dsv4_model, TOKENS[:150], 4)
    assert limits.within
    assert not any((limits.beyond, limits.twice, limits.middle, limits.bare))


def test_a_plain_cache_takes_back_anything(local_target):
    with Model(local_target) as model:
        limits = rollback_limits(model, range(100, 124), 4)
    assert all((limits.within, limits.beyond, limits.twice, limits.middle, limits.bare))


def test_a_checkpoint_is_smaller_than_the_whole_sequence(dsv4_model):
    cost = checkpoint_cost(dsv4_model, TOKENS[:260], 4, repeats=2)
    slot = saved_slot(dsv4_model, TOKENS[:264], 256, repeats=1)
    assert 0 < cost.nbytes < slot.nbytes
    assert cost.depth == slot.depth == 256


def test_a_restored_sequence_goes_on_as_if_nothing_had_been(dsv4_model):
    assert saved_slot(dsv4_model, TOKENS[:208], 200, repeats=1).difference == 0


@pytest.mark.parametrize("kept", [0, 2, 5])
def test_both_ways_of_undoing_reach_the_same_place(dsv4_model, kept):
    found = two_ways(dsv4_model, TOKENS, depth=130, drafted=5, kept=kept, blocks=3, steps=3)
    assert found.rollback > 0 < found.checkpoint
    assert (found.ratio.n, found.ratio.unit) == (3, "blocks")


def test_a_state_of_something_else_is_refused(dsv4_model, local_target):
    with Model(local_target) as model, Context(model, size=256) as other, Context(dsv4_model, size=256) as context:
        other.fill(range(100, 120))
        with pytest.raises(Problem, match="of state; expected a state of this context"):
            context.set_state(other.state())


def test_two_ways_need_enough_text(dsv4_model):
    with pytest.raises(Problem, match="20 tokens; expected at least"):
        two_ways(dsv4_model, TOKENS[:20], depth=10, drafted=5, kept=1)


def test_a_checkpoint_brings_back_the_same_logits(dsv4_model):
    """What the side-by-side timing does in each step, looked at once."""
    with Context(dsv4_model, size=256) as one, Context(dsv4_model, size=256) as other:
        for context in (one, other):
            context.fill(TOKENS[:126])
        state = one.state(partial=True)
        one.decode(TOKENS[300:305], 126)
        assert not one.roll_back(126)
        one.set_state(state, partial=True)
        assert one.roll_back(126)
        assert np.array_equal(one.decode(TOKENS[126:130], 126), other.decode(TOKENS[126:130], 126))
