"""Frames that pages are made of."""

import pytest

from analysis.evidence import consistency, frames


def test_findings_have_their_reason():
    findings = frames.findings()
    assert len(findings) == len(consistency.check_all())
    assert findings["why"].str.len().min() > 20
    assert set(findings["card"]) == {"A", "B"}


def test_drafted_cells_have_what_the_card_says():
    cells = frames.drafted()
    vision = cells.loc["a_vision_decode"]
    assert vision["n"] == 3
    assert vision["step"] == pytest.approx(1000 * 2.81 / 24.04)
    assert vision["gain"] == pytest.approx(54.4, abs=0.01)
    assert cells.loc["a_vk_lru_port", "n_from"] == "block size; n_max is not stated"
    assert cells["step"].isna().any()
    known = cells.dropna(subset=["step"])
    assert (known["step_low"] <= known["step"]).all()
    assert (known["step"] <= known["step_high"]).all()


def test_the_break_even_grid_has_the_published_envelope():
    grid = frames.break_even_grid()
    assert round(grid["acceptance"].min(), 2) == 0.81
    assert round(grid["acceptance"].max(), 2) == 0.94
    assert len(grid) == 10
