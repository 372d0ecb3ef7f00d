import numpy as np
import pytest

from analysis.stats import step_law


def test_step_law_finds_the_parts_it_was_made_of():
    rng = np.random.default_rng(4)
    prompt = np.repeat(np.arange(40), 50)
    drafted = rng.integers(0, 6, size=2000)
    accepted = rng.integers(0, drafted + 1)
    depth = rng.choice([0, 4000], size=2000)
    ms = 8 + 1.5 * drafted + 0.25 * accepted + 2.0 * depth / 1000
    ms = ms + rng.normal(0, 0.5, size=40)[prompt] + rng.normal(0, 0.2, size=2000)
    law = step_law(drafted, accepted, ms, prompt, depth=depth)
    parts = (law.fixed, law.per_drafted, law.per_accepted, law.per_1000_depth)
    for part, truth in zip(parts, (8, 1.5, 0.25, 2.0), strict=True):
        assert part.contains(truth)
    assert law.fixed.high - law.fixed.low > 0.2  # prompts differ by 0.5 ms, so 40 of them leave 0.16 either way


def test_step_law_does_not_invent_a_part_the_steps_cannot_show():
    accepted = np.arange(40) % 4
    law = step_law(np.full(40, 3), accepted, 10 + accepted, np.arange(40) % 20)
    assert law.per_drafted is None
    assert "per_drafted" in law.note
    assert law.per_accepted.estimate == pytest.approx(1)


def test_step_law_of_few_prompts_shows_no_limits():
    accepted = np.arange(40) % 4
    law = step_law(np.full(40, 3), accepted, 10.0 + accepted, np.arange(40) % 4)
    assert law.fixed.note == "4 prompts, and cluster-robust errors need 5"


def test_step_law_needs_more_steps_than_parts():
    with pytest.raises(ValueError, match="cannot give"):
        step_law([1, 2], [0, 1], [3, 4], ["a", "b"])


def test_repetitions_after_a_restore_do_not_lower_the_fixed_part():
    accepted = np.arange(80) % 4
    drafted, ms = np.full(80, 4), 10.0 + accepted
    plain = step_law(drafted, accepted, ms, np.arange(80) % 20)
    zeros = np.zeros(80)
    repeated = step_law(
        np.concatenate([drafted, zeros]),
        np.concatenate([accepted, zeros]),
        np.concatenate([ms, zeros]),
        np.tile(np.arange(80) % 20, 2),
    )
    assert repeated.fixed.estimate == pytest.approx(plain.fixed.estimate)
    assert repeated.steps == 80
