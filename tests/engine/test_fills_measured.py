"""Every way to fill a context on the real server: what was evaluated for a sample, and what came from elsewhere."""

from pathlib import Path

import pytest

from analysis.measure.fills import WAYS, measure_fills
from analysis.records import Problem

pytestmark = pytest.mark.engine
DEPTH = 192


def test_each_way_evaluates_what_it_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("SPECBOOK_LOCAL", str(tmp_path))
    study = measure_fills("smollm2-dspark", prompts=2, depth=DEPTH)
    assert len(study.samples) == 2 * len(WAYS)
    by_way = {way.name: [s for s in study.samples if s.leg == way.name] for way in WAYS}
    local = study.run.cells[0].local_tokens
    evaluated = {name: {sample.prompt_n for sample in samples} for name, samples in by_way.items()}
    assert evaluated["cold"] == evaluated["uncached"] == {DEPTH}
    assert evaluated["reused"] == evaluated["restored"] == evaluated["restored-elsewhere"] == {local}
    assert max(evaluated["restored-whole"]) < 8
    assert {s.cache_n + s.prompt_n for s in study.samples} == {DEPTH}
    assert all(sum(s.drafted) > 0 for s in study.samples)
    assert len({s.server for s in study.samples}) == len(WAYS)
    journal = study.directory.samples_file.read_bytes()
    assert measure_fills("smollm2-dspark", prompts=2, depth=DEPTH).samples == study.samples
    assert study.directory.samples_file.read_bytes() == journal, "nothing is measured twice"


def test_a_pair_without_a_drafter_has_nothing_to_lose():
    with pytest.raises(Problem, match="drafts nothing"):
        measure_fills("smollm2-raw")
