"""What a calculator offers of the cards."""

from fractions import Fraction

import pytest

from analysis.evidence.choices import choices
from analysis.evidence.consistency.lengths import carried_length
from analysis.evidence.interval import Interval
from analysis.evidence.published import rows


@pytest.fixture(scope="module")
def by_id():
    return {choice.row.id: choice for choice in choices(rows())}


def test_every_acceptance_that_still_stands_is_offered(by_id):
    printed = {row.id for row in rows().values() if row.quantity == "acceptance"}
    assert printed - set(by_id) == {"a_refusal_acceptance"}


def test_a_row_brings_its_own_economics(by_id):
    choice = by_id["b_n2_acceptance"]
    assert (choice.n, choice.n_from) == (2, "n_max")
    assert float(choice.length.centre) == pytest.approx(2.518)
    assert float(choice.raw.centre) == 14.03
    assert float(choice.step.centre) == pytest.approx(2518 / 20.43)


def test_a_printed_step_goes_before_an_implied_one(by_id):
    assert float(by_id["a_step_039_acceptance"].step.centre) == 385


def test_repeats_share_one_step(by_id):
    steps = [5502.5 / rate for rate in (12.73, 12.83, 12.87, 13.32)]
    assert float(by_id["a_recall_acceptance"].step.centre) == pytest.approx(sum(steps) / 4)


def test_where_p_min_cuts_drafts_the_printed_length_counts(by_id):
    assert (float(by_id["a_vision_acceptance"].length.centre), by_id["a_vision_acceptance"].length_from) == (
        2.81,
        "printed",
    )


def test_one_acceptance_for_several_depths_has_no_step(by_id):
    assert by_id["b_depth_acceptance"].step is None
    assert by_id["a_prose_short_acceptance"].raw is None


def test_a_length_is_carried_to_another_n():
    # accepted 1.5 = c + c^2 at n = 2 gives c = (sqrt 7 - 1) / 2 = 0.82288; to n = 3 that adds c^3 = 0.55719
    carried = carried_length(Interval.exactly(Fraction("2.5")), 2, 3)
    assert float(carried.centre) == pytest.approx(3.05719, abs=1e-5)
    assert carried_length(Interval.exactly(Fraction("2.5")), 2, 2) == Interval.exactly(Fraction("2.5"))
