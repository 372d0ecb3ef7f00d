"""The rollback gate on the caches of DeepSeek-V4, and that it would notice."""

import pytest

from analysis.convert.dsv4 import Recipe
from analysis.launch.inside import Context
from analysis.measure.exact import rollback
from analysis.measure.exact.rollback import BOUNDARIES, rollback_gate
from analysis.measure.exact.tiny import right_text
from analysis.records import Problem

TOKENS = right_text(Recipe(), 480)


@pytest.fixture(scope="module")
def cases(dsv4_model):
    return rollback_gate(dsv4_model, TOKENS)


def test_every_boundary_is_straddled_once_and_again_and_again(cases):
    assert [(case.boundary, case.spans, case.attempts) for case in cases] == [
        (boundary, spans, attempts) for boundary in BOUNDARIES for spans, attempts in ((1, 1), (3, 2))
    ]
    for case in cases:
        end = case.start + case.spans * rollback.ROWS
        assert case.start % case.boundary
        assert case.start // case.boundary < end // case.boundary


def test_what_was_taken_back_leaves_no_trace_at_all(cases):
    assert [case.difference for case in cases] == [0.0] * len(cases)
    assert all(case.exact for case in cases)


def test_the_control_sees_one_wrong_token_near_and_beyond_the_window(cases):
    """The window is 128 tokens; what is seen beyond it came through the compressed caches."""
    assert all(case.control > 0.01 for case in cases)
    assert all(case.control_beyond > 0 for case in cases)


def test_a_cache_that_takes_back_one_token_too_few_is_caught(dsv4_model, monkeypatch):
    """The fault is in the cache here, not in the control."""
    sound = Context.roll_back
    decode = Context.decode

    def forgetful(context, length):
        return sound(context, length + 1)

    def patient(context, tokens, at=None):
        if at is not None and at < context.length:  # the token that stayed stands where the right one should
            return decode(context, [*tokens[1:], tokens[-1]], at + 1)
        return decode(context, tokens, at)

    monkeypatch.setattr(Context, "roll_back", forgetful)
    monkeypatch.setattr(Context, "decode", patient)
    (case, *_) = rollback_gate(dsv4_model, TOKENS, boundaries=(128,))
    assert not case.exact
    assert case.difference > 0


def test_a_cache_that_takes_nothing_back_is_not_exact(dsv4_model, monkeypatch):
    monkeypatch.setattr(Context, "roll_back", lambda context, length: False)
    (case, *_) = rollback_gate(dsv4_model, TOKENS, boundaries=(4,))
    assert (case.allowed, case.exact) == (False, False)


def test_too_few_tokens(dsv4_model):
    with pytest.raises(Problem, match="300 tokens; expected at least 456 for the last boundary"):
        rollback_gate(dsv4_model, TOKENS[:300])
