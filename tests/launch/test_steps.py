"""From the totals in a stream to steps: what is known, what follows, and what cannot be."""

import math
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.launch import Mark, derive_steps
from analysis.records import Problem


@dataclass(frozen=True)
class Evaluation:
    drafted: int
    accepted: int
    ms: float
    replayed: bool = False


@st.composite
def evaluations(draw, longest=7, may_replay=False):
    drafted = draw(st.integers(0, longest))
    accepted = draw(st.integers(0, drafted))
    replayed = may_replay and accepted < drafted and draw(st.booleans())
    return Evaluation(drafted, accepted, draw(st.integers(1, 200_000)) / 1000, replayed)


def stream(steps: list[Evaluation]) -> list[Mark]:
    """The totals that a server sends with the tokens of these evaluations, the fill's token first."""
    marks = [Mark(1, 0.001, 0, 0)]
    for step in steps:
        before = marks[-1]
        for position in range(step.accepted + 1 + step.replayed):
            marks.append(
                Mark(
                    before.predicted_n + position + 1,
                    before.predicted_ms + step.ms,
                    before.draft_n + step.drafted,
                    before.draft_n_accepted + step.accepted,
                )
            )
    return marks


def test_raw_decoding_has_one_token_a_step():
    steps = derive_steps([Mark(1, 0.001, 0, 0), Mark(2, 14.368, 0, 0), Mark(3, 30.032, 0, 0)])
    assert steps.drafted == (0, 0)
    assert steps.accepted == (0, 0)
    assert steps.ms == pytest.approx((14.367, 15.664))


def test_the_first_token_belongs_to_no_step():
    assert derive_steps([Mark(1, 0.004, 0, 0)]).drafted == ()
    assert derive_steps([]).drafted == ()


def test_drafted_and_undrafted_evaluations_of_a_recorded_request():
    """ngram-simple, n_max 8, as the server streamed it."""
    marks = [
        Mark(1, 0.001, 0, 0),
        Mark(2, 492.417, 7, 0),
        Mark(3, 651.993, 7, 0),
        Mark(4, 795.778, 15, 1),
        Mark(5, 795.778, 15, 1),
    ]
    steps = derive_steps(marks)
    assert (steps.drafted, steps.accepted) == ((7, 0, 8), (0, 0, 1))
    assert steps.emitted == 5


@given(st.lists(evaluations(), max_size=40))
def test_every_evaluation_is_found_again(plan):
    steps = derive_steps(stream(plan))
    assert steps.drafted == tuple(step.drafted for step in plan)
    assert steps.accepted == tuple(step.accepted for step in plan)
    assert all(math.isclose(a, b.ms, abs_tol=1e-6) for a, b in zip(steps.ms, plan, strict=True))
    assert (steps.trimmed, steps.blurred) == (0, 0)


@given(st.lists(evaluations(may_replay=True), max_size=40))
def test_a_restored_checkpoint_is_a_step_and_an_evaluation_that_took_no_time_of_its_own(plan):
    steps = derive_steps(stream(plan))
    expected = []
    for step in plan:
        expected.append((step.drafted, step.accepted))
        if step.replayed:
            expected.append((0, 0))
    assert list(zip(steps.drafted, steps.accepted, strict=True)) == expected
    assert steps.replayed == sum(step.replayed for step in plan)
    assert sum(ms == 0 for ms in steps.ms) == steps.replayed
    assert steps.blurred == 0


@given(st.lists(evaluations(), min_size=1, max_size=20), st.integers(1, 7))
def test_a_text_that_ends_inside_a_draft_is_trimmed_to_what_was_emitted(plan, cut):
    """The server counts accepted tokens behind the end of the text; they were never emitted."""
    cut = min(cut, plan[-1].accepted)
    marks = stream(plan)
    marks = marks[: len(marks) - cut]
    steps = derive_steps(marks)
    assert steps.emitted == len(marks)
    assert steps.trimmed == cut
    assert steps.accepted[-1] == plan[-1].accepted - cut
    assert steps.drafted[-1] == plan[-1].drafted


@given(st.lists(evaluations(may_replay=True), min_size=1, max_size=20), st.data())
def test_withheld_tokens_never_break_the_totals(plan, data):
    """Tokens of an unfinished character are not sent. Totals and durations stay exact, whatever is hidden."""
    marks = stream(plan)
    hidden = data.draw(st.lists(st.booleans(), min_size=len(marks) - 1, max_size=len(marks) - 1))
    sent = [mark for mark, gone in zip(marks, [*hidden, False], strict=True) if not gone]
    steps = derive_steps(sent, longest_draft=7)
    assert steps.emitted == len(marks)
    assert sum(steps.drafted) == marks[-1].draft_n
    assert sum(steps.accepted) + steps.trimmed == marks[-1].draft_n_accepted
    assert math.isclose(sum(steps.ms), sum(step.ms for step in plan), abs_tol=0.002)
    assert all(0 <= a <= d for a, d in zip(steps.accepted, steps.drafted, strict=True))


@given(st.lists(st.integers(1, 200_000), min_size=2, max_size=20), st.data())
def test_withheld_tokens_of_raw_decoding_cost_only_their_own_duration(durations, data):
    plan = [Evaluation(0, 0, ms / 1000) for ms in durations]
    marks = stream(plan)
    hidden = data.draw(st.lists(st.booleans(), min_size=len(marks) - 1, max_size=len(marks) - 1))
    sent = [mark for mark, gone in zip(marks, [*hidden, False], strict=True) if not gone]
    steps = derive_steps(sent)
    assert len(steps.ms) == len(plan)
    assert steps.blurred >= sum(hidden[1:])


def test_two_withheld_evaluations_that_each_drafted_the_most_are_told_apart():
    """One token of two was withheld; ten drafted tokens are two drafts where five is the most."""
    marks = [Mark(1, 0.001, 0, 0), Mark(3, 40.0, 10, 0), Mark(4, 60.0, 15, 0)]
    steps = derive_steps(marks)
    assert (steps.drafted, steps.accepted, steps.blurred) == ((5, 5, 5), (0, 0, 0), 2)


CONTRADICTIONS = {
    "draft before a step": ([Mark(1, 0.1, 3, 0), Mark(2, 9.0, 3, 0)], "first token"),
    "more accepted than drafted": ([Mark(1, 0.1, 0, 0), Mark(2, 9.0, 3, 4)], "4 tokens were accepted of 3 drafted"),
    "accepted but not emitted": (
        [Mark(1, 0.1, 0, 0), Mark(2, 9.0, 3, 1), Mark(3, 19.0, 3, 1)],
        "cannot have emitted",
    ),
    "emitted but not accepted": (
        [Mark(1, 0.1, 0, 0), *(Mark(n, 9.0, 3, 3) for n in (2, 3, 4, 5, 6))],
        "cannot have emitted",
    ),
    "two tokens without a draft": (
        [Mark(1, 0.1, 0, 0), Mark(2, 9.0, 0, 0), Mark(3, 9.0, 0, 0)],
        "cannot have emitted",
    ),
    "drafted fell": ([Mark(1, 0.1, 0, 0), Mark(2, 9.0, 3, 0), Mark(3, 19.0, 2, 0)], "fell"),
    "time fell": ([Mark(1, 0.1, 0, 0), Mark(2, 9.0, 0, 0), Mark(3, 8.0, 0, 0)], "fell"),
}


@pytest.mark.parametrize(("marks", "complaint"), CONTRADICTIONS.values(), ids=CONTRADICTIONS.keys())
def test_totals_that_contradict_each_other_are_refused(marks, complaint):
    with pytest.raises(Problem, match=complaint):
        derive_steps(marks)


def test_a_recorded_restore():
    """A recurrent target: of two drafted tokens one was accepted, and the checkpoint restored."""
    marks = [Mark(1, 0.001, 0, 0), Mark(2, 3.3, 0, 0), *(Mark(n, 23.1, 2, 1) for n in (3, 4, 5)), Mark(6, 32.0, 2, 1)]
    steps = derive_steps(marks)
    assert (steps.drafted, steps.accepted, steps.replayed) == ((0, 2, 0, 0), (0, 1, 0, 0), 1)
    assert steps.ms == pytest.approx((3.299, 19.8, 0.0, 8.9))


def test_a_server_that_counts_a_replayed_token_as_accepted_looks_honest():
    """The fault of builds before pull request 26320 leaves no trace in the stream: one accepted token more is
    exactly the one token more that was emitted. The build's number tells (`specbook doctor`), the stream cannot."""
    honest = derive_steps(stream([Evaluation(4, 2, 10.0, replayed=True)]))
    faulty = derive_steps(stream([Evaluation(4, 3, 10.0)]))
    assert honest.emitted == faulty.emitted
    assert sum(honest.accepted) == 2 != sum(faulty.accepted)


def test_a_server_that_counts_partial_acceptance_as_zero_is_refused():
    """The fault of the state of pull request 25682."""
    marks = stream([Evaluation(4, 2, 10.0, replayed=True)])
    with pytest.raises(Problem, match="contradict"):
        derive_steps([mark._replace(draft_n_accepted=0) for mark in marks])
