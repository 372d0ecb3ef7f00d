"""Cells drawn from a population of prompts: what counting steps as replications does."""

import numpy as np
import pytest

from analysis.measure.calibration.population import OVER_PROMPTS, OVER_STEPS, QUANTITIES, population_coverage
from factories import make_sample

POPULATION = 300


@pytest.fixture(scope="module")
def rows():
    """Prompts whose acceptance is beta-distributed; about 16 steps of up to 4 tokens each."""
    rng = np.random.default_rng(11)
    samples = []
    for number, share in enumerate(rng.beta(2.4, 1.6, size=POPULATION)):
        accepted = np.minimum(rng.geometric(1 - share, size=16) - 1, 4)
        samples.append(
            make_sample(
                prompt_id=f"prompt-{number:03d}",
                drafted=(4,) * 16,
                accepted=tuple(accepted.tolist()),
                step_ms=(10.0,) * 16,
            )
        )
    return population_coverage(samples, 4, sizes=(5, 20), replications=300)


def covered(rows, over, prompts):
    chosen = [row for row in rows if row.quantity.endswith(over) and row.prompts == prompts]
    assert len(chosen) == len(QUANTITIES)
    return sum(row.covered for row in chosen) / sum(row.shown for row in chosen)


def test_intervals_over_prompts_hold_the_populations_value(rows):
    assert covered(rows, OVER_PROMPTS, 5) > 0.9
    assert covered(rows, OVER_PROMPTS, 20) > 0.92


@pytest.mark.parametrize("prompts", [5, 20])
def test_steps_taken_for_replications_claim_far_too_much(rows, prompts):
    assert covered(rows, OVER_STEPS, prompts) < 0.85
    widths = {row.quantity: row.width for row in rows if row.prompts == prompts}
    for quantity in QUANTITIES:
        assert widths[f"{quantity}, {OVER_STEPS}"] < widths[f"{quantity}, {OVER_PROMPTS}"]
