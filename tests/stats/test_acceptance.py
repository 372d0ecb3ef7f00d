import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis.stats import acceptance

# Two prompts, n_max 3. The third evaluation of "a" had no draft; the last of "b" drafted only one token.
DRAFTED = [3, 3, 0, 3, 3, 1]
ACCEPTED = [3, 0, 0, 2, 1, 1]
PROMPT = ["a", "a", "a", "b", "b", "b"]


def rates(positions):
    return [(rate.successes, rate.trials) for rate in positions]


def test_the_three_meanings_by_hand():
    """Five verification steps with A = 3 0 2 1 1 and D = 3 3 3 3 1."""
    found = acceptance(DRAFTED, ACCEPTED, PROMPT, n_max=3)
    assert rates(found.survival) == [(4, 5), (2, 5), (1, 5)]  # over all steps
    assert rates(found.proposal) == [(4, 5), (2, 4), (1, 4)]  # over steps that drafted so far
    assert rates(found.conditional) == [(4, 5), (2, 3), (1, 2)]  # and had accepted all before


def test_totals_by_hand():
    found = acceptance(DRAFTED, ACCEPTED, PROMPT, n_max=3)
    assert (found.steps, found.undrafted, found.drafted, found.accepted, found.prompts) == (5, 1, 13, 7, 2)
    assert found.mean_length.estimate == pytest.approx(1 + 7 / 5)
    assert found.aggregate.estimate == pytest.approx(7 / 13)
    assert found.undrafted_share == pytest.approx(1 / 6)


def test_evaluations_without_a_draft_never_enter_survival():
    without = acceptance(*zip(*[r for r in zip(DRAFTED, ACCEPTED, PROMPT, strict=True) if r[0]], strict=True), n_max=3)
    with_them = acceptance(DRAFTED, ACCEPTED, PROMPT, n_max=3)
    assert without.survival == with_them.survival
    assert without.mean_length == with_them.mean_length


def test_prompts_are_resampled_and_not_steps():
    """A thousand steps in three prompts are three witnesses: the interval is as wide as three prompts allow."""
    prompt = np.repeat(["a", "b", "c"], 1000)
    accepted = np.concatenate([np.arange(1000) < share * 1000 for share in (0.4, 0.5, 0.6)]).astype(int)
    interval = acceptance(np.ones(3000), accepted, prompt, n_max=1).aggregate
    assert interval.n == 3
    assert interval.limits == pytest.approx((0.2702, 0.7298), abs=1e-3)


def test_an_interval_counts_only_the_prompts_that_reached_its_position():
    found = acceptance([2, 2, 2, 2], [2, 1, 0, 0], ["a", "b", "c", "d"], n_max=2)
    assert found.survival[1].interval.n == 4
    assert found.conditional[1].interval.n == 2


def test_prompts_of_a_single_step_are_single_trials_and_counted_exactly():
    """4 of 5 single trials: Clopper and Pearson's limits are 0.284 and 0.995."""
    interval = acceptance([1] * 5, [1, 1, 1, 1, 0], list("abcde"), n_max=1).survival[0].interval
    assert interval.limits == pytest.approx((0.2836, 0.9949), abs=1e-4)
    assert interval.method == "exact"


def test_a_position_that_no_draft_reached_says_so():
    found = acceptance([1, 1, 1], [1, 0, 1], ["a", "b", "c"], n_max=2)
    assert (found.proposal[1].successes, found.proposal[1].trials) == (0, 0)
    assert not found.proposal[1].interval.shown
    assert found.survival[1].interval.estimate == 0


def test_nothing_drafted_gives_no_number():
    found = acceptance([0, 0], [0, 0], ["a", "b"], n_max=3)
    assert found.steps == 0
    assert np.isnan(found.mean_length.estimate)
    assert not found.mean_length.shown


@pytest.mark.parametrize(
    ("drafted", "accepted", "prompt", "why"),
    [
        ([1], [2], ["a"], "more tokens than it drafted"),
        ([4], [2], ["a"], "n_max is 3"),
        ([1, 2], [1], ["a"], "shapes"),
    ],
)
def test_records_that_contradict_themselves_are_refused(drafted, accepted, prompt, why):
    with pytest.raises(ValueError, match=why):
        acceptance(drafted, accepted, prompt, n_max=3)


STEPS = st.lists(
    st.tuples(st.integers(0, 4), st.integers(0, 4), st.integers(0, 5)).map(lambda s: (s[0], min(s[0], s[1]), s[2])),
    min_size=1,
    max_size=80,
)


@settings(max_examples=100)
@given(STEPS)
def test_what_holds_for_every_record(steps):
    found = acceptance(*zip(*steps, strict=True), n_max=4)
    survived = [rate.successes for rate in found.survival]
    assert survived == sorted(survived, reverse=True)
    assert sum(survived) == found.accepted
    assert sum(rate.trials for rate in found.proposal) == found.drafted
    if found.steps:
        assert found.mean_length.estimate == pytest.approx(1 + sum(r.interval.estimate for r in found.survival))


@settings(max_examples=100)
@given(STEPS.map(lambda steps: [(4, a, p) for _, a, p in steps]))
def test_full_drafts_make_survival_and_proposal_one_and_conditional_their_ratio(steps):
    found = acceptance(*zip(*steps, strict=True), n_max=4)
    assert found.survival == found.proposal
    for k in range(1, 4):
        assert found.conditional[k].trials == found.survival[k - 1].successes
