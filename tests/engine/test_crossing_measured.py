"""The break-even measured at chosen acceptances on the real server."""

from pathlib import Path

import pytest

from analysis.measure.crossing import crossing_frame, measure_crossing, plan_crossing
from analysis.records import Problem

pytestmark = pytest.mark.engine


def test_steps_cost_what_they_cost_and_accept_as_they_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("SPECBOOK_LOCAL", str(tmp_path))
    size = {"depths": [160], "regimes": ["prose"], "prompts": 3, "n_predict": 24}
    plan = plan_crossing("smollm2-dspark", profile="smoke", size=size, acceptances=(0.1, 0.9))
    samples = measure_crossing(plan)
    assert len(samples) == 3 * 3
    raw, low, high = crossing_frame(samples).to_dict("records")
    assert not any(sum(s.drafted) for s in samples if s.acceptance is None)
    assert low["accepted"] < 1.0, "0.11 tokens a step are expected"
    assert high["accepted"] > 2.0, "3.7 are expected of whole drafts"
    assert low["estimate"] < high["estimate"]
    assert raw["estimate"] > 0
    before = plan.journal.read_bytes()
    assert measure_crossing(plan) == samples
    assert plan.journal.read_bytes() == before, "nothing is measured twice"


def test_a_pair_without_a_drafter_has_no_crossing():
    with pytest.raises(Problem, match="drafts nothing"):
        plan_crossing("smollm2-raw", profile="smoke")
    with pytest.raises(Problem, match="two different shares"):
        plan_crossing("smollm2-dspark", profile="smoke", acceptances=(0.5,))
