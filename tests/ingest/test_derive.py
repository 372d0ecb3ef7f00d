"""Steps that are not printed follow from what is, or are left open."""

import random

from hypothesis import given
from hypothesis import strategies as st

from analysis.ingest.derive import counts_of, half_unit, problems_of, steps_from_mean, steps_of
from analysis.ingest.model import Known


@given(st.lists(st.integers(0, 5), min_size=1, max_size=400))
def test_the_true_number_of_steps_is_always_within_the_limits(accepted: list[int]) -> None:
    steps, total = len(accepted), sum(accepted)
    counts = [sum(a >= k for a in accepted) for k in range(1, 6)]
    survival = [float(f"{count / steps:.3f}") for count in counts]
    mean = float(f"{1 + total / steps:.2f}")
    found = steps_of(total, 5 * steps, mean_length=(mean, 0.005), survival=survival)
    assert found.low is None or found.low <= steps <= found.high
    if found.value == steps:
        assert counts_of(survival, steps, 0.0005) in ((), tuple(counts))


def test_a_curve_narrows_what_the_mean_leaves_open() -> None:
    without = steps_of(1200, 1980, mean_length=(3.40, 0.005))
    assert (without.low, without.high, without.how) == (499, 501, "bounded")
    with_curve = steps_of(1200, 1980, mean_length=(3.40, 0.005), survival=(0.82, 0.66, 0.52, 0.4))
    assert with_curve == Known(500, 500, "derived")


def test_the_longest_draft_alone_leaves_a_range() -> None:
    assert steps_of(171, 297, n_max=3) == Known(99, 297, "bounded")
    assert steps_of(171, 297) == Known()


def test_no_steps_fit_numbers_that_contradict_each_other() -> None:
    assert steps_of(120, 198, mean_length=(3.4, 0.005), survival=(0.1, 0.1, 0.1, 0.1)) == Known()


def test_a_rate_must_be_what_its_counts_say_to_its_last_place() -> None:
    good = {"drafted": 297, "accepted": 171, "rate_half": half_unit(b"0.57576")}
    assert problems_of(rate=0.57576, **good) == ()
    assert problems_of(rate=0.57570, **good) == ("a rate of 0.5757 where 171 of 297 is 0.57576",)


def test_steps_from_a_mean_alone_are_those_of_the_general_rule() -> None:
    rng = random.Random(3)
    seen = set()
    for _ in range(20_000):
        steps = rng.randint(1, 400)
        drafted = steps + rng.randint(0, 7 * steps)
        accepted = rng.randint(1, drafted)
        digits = rng.choice((2, 3))
        mean = max(1.0, round(1 + accepted / steps + rng.choice((0, 0, 0.02)), digits))
        half, n_max = 0.5 * 10.0**-digits, rng.choice((None, 8, 16))
        found = steps_from_mean(accepted, drafted, mean, half, n_max)
        assert found == steps_of(accepted, drafted, mean_length=(mean, half), n_max=n_max)
        seen.add(found.how)
    assert seen == {"derived", "bounded", "unknown"}
