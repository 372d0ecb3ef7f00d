"""The ledger of corrections, and how a correction travels with its numbers."""

import pytest

from analysis.evidence.audit import audit
from analysis.evidence.corrections import corrections, notes_for, superseded


def test_every_failing_claim_has_a_correction_and_travels_with_it():
    failing = [result.claim.id for result in audit() if result.verdict == "fails"]
    notes = notes_for(failing)
    assert set(failing) == set(notes)
    assert all(any(c.kind == "audit" for c in notes[claim]) for claim in failing)


def test_the_cards_own_corrections_are_there():
    declared = {c.id for c in corrections().values() if c.kind == "declared"}
    assert {"a_third", "a_one_code_row", "a_reciting", "a_derived_loss", "a_threshold", "a_refusal"} <= declared


def test_later_facts_name_their_source():
    later = [c for c in corrections().values() if c.kind == "later fact"]
    assert "later_requantize" in {c.id for c in later}
    assert all(c.source and c.source in c.note for c in later)


def test_a_number_carries_its_notes():
    notes = notes_for(["a_superseded_decode", "a_vk_raw", "b_q8_size"])
    assert [c.id for c in notes["a_superseded_decode"]] == ["a_derived_loss"]
    assert {c.id for c in notes["b_q8_size"]} == {"later_requantize", "later_q8_detour"}
    assert "a_vk_raw" not in notes
    assert "12.73 to 13.32" in notes["a_superseded_decode"][0].note


@pytest.mark.parametrize("number", ["12.5–13.2", "a third", "0.33", "13.55", "0.72–0.75"])
def test_superseded_numbers_are_known_as_printed(number):
    assert number in superseded()
    assert superseded()[number] in corrections()


def test_numbers_in_the_audits_corrections_are_the_audits_own():
    results = {result.claim.id: result for result in audit()}
    hip = corrections()["audit_hip_gain"].replaced_by
    gains = [100 * (19.31 / 13.50 - 1), 100 * (10.95 / 9.05 - 1)]
    assert all(f"+{gain:.0f}%" in hip for gain in gains)
    assert f"{float(results['b_c_identical'].off):.1f} %" in corrections()["audit_identical"].replaced_by
