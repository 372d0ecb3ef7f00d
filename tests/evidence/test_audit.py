"""The audit as a whole: what it covers and what it says."""

import json
import os
import subprocess
import sys
from collections import Counter

import pytest

from analysis.evidence.audit import VERDICTS, audit
from analysis.evidence.claims import claims
from analysis.evidence.printed import parse


def by_id():
    return {result.claim.id: result for result in audit()}


def test_every_claim_of_both_cards_has_a_verdict():
    results = audit()
    assert [result.claim.id for result in results] == list(claims())
    assert Counter(result.claim.card for result in results) == Counter(c.card for c in claims().values())
    assert {result.verdict for result in results} == set(VERDICTS)
    assert [r.claim.id for r in audit("B")] == [r.claim.id for r in results if r.claim.card == "B"]


def test_json_has_exactly_the_seven_keys():
    for entry in (result.plain() for result in audit()):
        assert list(entry) == ["card", "quote", "printed", "low", "high", "verdict", "note"]
        assert entry["card"] in ("A", "B")
        assert entry["quote"]
        assert entry["printed"] in entry["quote"]
        assert entry["note"]
        assert json.loads(json.dumps(entry, allow_nan=False)) == entry


def test_an_underdetermined_claim_says_what_is_missing():
    for result in audit():
        assert (result.verdict == "underdetermined") == bool(result.claim.missing)
        if result.claim.missing:
            assert result.note.startswith("missing: ")


def test_a_failing_claim_says_by_how_much():
    for result in audit():
        assert (result.verdict == "fails") == (result.off is not None)
        if result.off is not None:
            assert result.off > 0


@pytest.mark.parametrize("verdict", ["reproduces", "rounding", "fails"])
def test_a_verdict_on_a_number_follows_from_the_bounds(verdict):
    """The recomputed interval meets what the printed number may mean, unless the claim fails."""
    for result in audit():
        if result.verdict == verdict and result.claim.kind == "number":
            claimed = parse(result.claim.printed, whole=False).interval
            meets = result.low <= claimed.high and claimed.low <= result.high
            assert meets == (verdict != "fails"), result.claim.id


def test_no_bounds_are_wider_than_they_must_be():
    """Formulas are written so that each value enters once."""
    assert {c.id: f.repeated for c in claims().values() if c.kind != "word" for f in c.formulas if f.repeated} == {}


def test_words_are_claims_too():
    words = {claim.printed for claim in claims().values() if claim.kind == "word"}
    assert {"monotonically", "identical", "does not fade", "no depth effect", "at every depth", "knee"} <= words


def test_a_claim_for_one_build_is_held_against_both():
    results = by_id()
    assert results["b_c_not_fading"].verdict == "reproduces"
    assert results["b_c_not_fading_hip"].verdict == "fails"


def test_the_audit_needs_no_heavy_library():
    """What takes seconds to import is left to frames; the audit of both cards takes milliseconds."""
    script = (
        "import sys; from analysis.evidence.audit import audit; audit();"
        "print([m for m in ('pandas', 'pandera', 'frictionless', 'numpy', 'scipy') if m in sys.modules])"
    )
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, env=environment)
    assert done.stdout.strip() == "[]"
