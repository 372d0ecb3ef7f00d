import pytest
from evidence_for_tests import drafted_sample, make_evidence

from analysis.gates.drift import AcceptanceSteady, SpeedSteady

NINE = range(9)


def timed(number, factor, drafted=(4, 4, 3)):
    """Steps of one sample, with some noise that does not depend on its place."""
    noise = 1 + 0.004 * ((number * 7) % 5 - 2)
    return drafted_sample(number, drafted=drafted, step_ms=tuple(5.0 * d * factor * noise for d in drafted))


def judged(gate, samples):
    return [finding.level for finding in gate.check(make_evidence(samples=samples))]


def test_steady_steps_pass():
    assert judged(SpeedSteady(), [timed(n, 1.0) for n in NINE]) == []


@pytest.mark.parametrize("slope", [0.02, -0.02])
def test_steps_that_become_slower_or_faster_are_a_warning(slope):
    assert judged(SpeedSteady(), [timed(n, 1 + slope * n) for n in NINE]) == ["warn"]


def test_longer_drafts_at_the_end_are_no_drift():
    samples = [timed(n, 1.0, drafted=(4, 4, 2) if n < 5 else (4, 2, 2)) for n in NINE]
    assert judged(SpeedSteady(), samples) == []


def test_few_samples_cannot_tell():
    assert judged(SpeedSteady(), [timed(n, 1.0 + n) for n in range(6)]) == ["unchecked"]


def accepting(number, accepted):
    return drafted_sample(number, drafted=(4, 4, 4), accepted=accepted)


def test_acceptance_that_decays_with_uptime_is_a_warning():
    decaying = [accepting(n, (4, 4, 3 - n % 2) if n < 3 else (2, 2, n % 2) if n < 6 else (1, 0, n % 2)) for n in NINE]
    assert judged(AcceptanceSteady(), decaying) == ["warn"]


def test_prompts_that_differ_are_no_decay():
    mixed = [accepting(n, ((4, 4, 2), (1, 0, 1), (2, 3, 1))[n % 3]) for n in NINE]
    assert judged(AcceptanceSteady(), mixed) == []
