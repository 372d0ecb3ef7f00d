"""The gates that look at a drafter's first positions."""

import json

import numpy as np
import pytest
from evidence_for_tests import drafted_sample, make_evidence
from scipy import stats

from analysis.gates.canary import (
    LOWEST_DEEPER,
    LOWEST_HOLD,
    DeeperPositionsHold,
    FirstPositionAlive,
    SecondPositionHolds,
    deeper_positions,
)
from analysis.records.places import data_dir
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


def test_a_sound_drafter_passes_all():
    for gate in (FirstPositionAlive(), SecondPositionHolds(), DeeperPositionsHold()):
        assert judged(gate, (4, 2, 0, 3, 1, 2, 4, 0)) == []


def test_a_drafter_that_is_never_right_is_a_warning():
    assert judged(FirstPositionAlive(), (0, 0, 0, 0, 0, 0, 1)) == ["warn"]
    assert judged(FirstPositionAlive(), (0,)) == ["warn"]


def test_a_drafter_that_keeps_only_its_first_token_is_a_warning():
    assert judged(SecondPositionHolds(), (1, 1, 0, 1, 1, 2, 1)) == ["warn"]
    assert judged(FirstPositionAlive(), (1, 1, 0, 1, 1, 2, 1)) == []


def test_a_drafter_that_fades_behind_its_second_token_is_a_warning():
    fading = (2, 0, 2, 1, 2, 2, 3, 2, 0, 2, 2)
    assert judged(DeeperPositionsHold(), fading) == ["warn"]
    assert judged(SecondPositionHolds(), fading) == []


def test_what_counts_as_tested_behind_the_second_position():
    """Position k is tested where the k - 1 before it were accepted and a token was drafted for it."""
    cell = make_cell(spec_type="draft-dspark", n_max=5)
    drafted, accepted = (5, 5, 5, 2, 3, 3), (0, 2, 4, 2, 3, 2)
    tokens = tuple(range(sum(accepted) + len(accepted)))
    sample = drafted_sample(0, cell, drafted=drafted, accepted=accepted, step_ms=(1.0,) * 6, tokens=tokens)
    # accepted there 0 + 0 + 2 + 0 + 1 + 0, tested 0 + 1 + 3 + 0 + 1 + 1
    assert deeper_positions([sample]).estimate == pytest.approx(3 / 6)


def test_the_lowest_ratios_are_the_tolerance_limits_of_the_held_out_texts():
    """One-sided: 99 % of kinds of text above, with a confidence of 95 %, from the five kinds of the training."""
    texts = json.loads((data_dir() / "drafters" / "smollm2-dspark-first-training.json").read_text())["replay"]["texts"]
    kinds = {text["kind"] for text in texts}
    ratios = []
    for kind in sorted(kinds):
        accepted = np.concatenate([text["accepted"] for text in texts if text["kind"] == kind])
        reached = [(accepted >= k).sum() for k in range(6)]
        first = reached[1] / reached[0]
        ratios.append((reached[2] / reached[1] / first, sum(reached[3:]) / sum(reached[2:5]) / first))
    n = len(ratios)
    k = stats.nct.ppf(0.95, n - 1, stats.norm.ppf(0.99) * np.sqrt(n)) / np.sqrt(n)
    second, deeper = np.mean(ratios, axis=0) - k * np.std(ratios, axis=0, ddof=1)
    assert (round(second, 2), round(deeper, 2)) == (LOWEST_HOLD, LOWEST_DEEPER)


ALL = [FirstPositionAlive(), SecondPositionHolds(), DeeperPositionsHold()]


@pytest.mark.parametrize("gate", ALL, ids=lambda gate: gate.name)
def test_a_lookup_has_no_positions_of_its_own(gate):
    assert judged(gate, (0, 0, 0, 1), make_cell()) == []
