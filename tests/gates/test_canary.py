"""The two gates that look at a drafter's first positions."""

import pytest
from evidence_for_tests import drafted_sample, make_evidence

from analysis.gates.canary import FirstPositionAlive, SecondPositionHolds
from factories import make_cell, make_run

CELL = make_cell(spec_type="draft-dspark", pair="smollm2-dspark", n_max=4)


def judged(gate, steps, cell=CELL):
    """What a gate says of six prompts that took such steps, in turn."""
    samples = []
    for number in range(6):
        accepted = tuple(steps[(number + place) % len(steps)] for place in range(12))
        tokens = tuple(range(1 + sum(accepted) + len(accepted)))
        samples.append(
            drafted_sample(number, cell, drafted=(4,) * 12, accepted=accepted, step_ms=(1.0,) * 12, tokens=tokens)
        )
    return [f.level for f in gate.check(make_evidence(run=make_run(cells=(cell,)), samples=samples))]


def test_a_sound_drafter_passes_both():
    for gate in (FirstPositionAlive(), SecondPositionHolds()):
        assert judged(gate, (4, 2, 0, 3, 1, 2, 4, 0)) == []


def test_a_drafter_that_is_never_right_is_a_warning():
    assert judged(FirstPositionAlive(), (0, 0, 0, 0, 0, 0, 1)) == ["warn"]
    assert judged(FirstPositionAlive(), (0,)) == ["warn"]


def test_a_drafter_that_keeps_only_its_first_token_is_a_warning():
    assert judged(SecondPositionHolds(), (1, 1, 0, 1, 1, 2, 1)) == ["warn"]
    assert judged(FirstPositionAlive(), (1, 1, 0, 1, 1, 2, 1)) == []


@pytest.mark.parametrize("gate", [FirstPositionAlive(), SecondPositionHolds()], ids=lambda gate: gate.name)
def test_a_lookup_has_no_positions_of_its_own(gate):
    assert judged(gate, (0, 0, 0, 1), make_cell()) == []
