"""Greedy output with and without a drafter: it may differ where tokens nearly tie, and only there."""

import pytest

from analysis.convert.dsv4 import TINY
from analysis.convert.rewrite import write_f32
from analysis.measure.exact.greedy import compare_greedy
from analysis.measure.exact.tiny import starting_tokens

PROMPTS = [[token] for token in starting_tokens(8)]


def compared(target, drafter, prompts=PROMPTS, **changes):
    return compare_greedy("test", target, drafter, prompts, count=40, n_max=TINY.block_size, **changes)


def test_with_a_wide_margin_nothing_differs(dsv4_target, dsv4_drafter):
    found = compared(dsv4_target, dsv4_drafter, PROMPTS[::2])
    assert not found.differing
    assert 0 < found.share.high < 0.7
    assert 0.3 < found.accepted < 0.8
    assert min(outcome.narrowest for outcome in found.outcomes) > 1


@pytest.fixture(scope="module")
def narrow(narrow_pair):
    return compared(*narrow_pair)


def test_with_a_narrow_margin_outputs_can_differ(narrow):
    """How many of them do depends on the machine's kernels; that a lead lies within what a batch changes does not."""
    assert min(outcome.narrowest for outcome in narrow.outcomes) < narrow.spread
    assert len(narrow.differing) < len(narrow.outcomes)


def test_outputs_part_where_two_tokens_nearly_tie(narrow):
    for outcome in narrow.differing:
        assert 0 <= outcome.first < 40
        assert 0 <= outcome.margin < 2 * narrow.spread


def test_in_f32_batch_and_single_rows_stay_together(narrow, narrow_pair, tmp_path):
    """So the drafter changes nothing: what could still differ is a tie as narrow as one part in a million."""
    target, drafter = narrow_pair
    control = compared(write_f32(target, tmp_path / "f32.gguf").path, drafter, cache_type="f32")
    assert control.spread < narrow.spread / 100
    assert control.spread < 1e-4
    assert all(outcome.margin < 10 * control.spread for outcome in control.differing)
