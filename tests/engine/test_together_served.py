"""Two requests at once on the real server, with the trained drafter: whole groups, part of one, and a resumed run."""

from pathlib import Path

import pytest

from analysis.measure.sweep import measure_sweep, sweep_frame
from analysis.records import Problem

pytestmark = pytest.mark.engine
SIZE = {"depths": [192], "local_tokens": 160, "regimes": ["recall"], "prompts": 3, "n_predict": 12}


@pytest.fixture
def local(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SPECBOOK_LOCAL", str(tmp_path))
    return tmp_path


def sweep(**changes):
    return measure_sweep("smollm2-dspark", ["parallel=2"], profile="smoke", size=SIZE | changes)


def test_two_at_once_in_both_legs_and_what_is_missing_of_a_group_is_measured_again(local: Path):
    (point,) = sweep()
    for study in (point.raw, point.study):
        (life,) = study.lives
        assert life.argv[life.argv.index("--parallel") + 1] == "2"
        assert life.argv[life.argv.index("--ctx-size") + 1] == str(2 * study.run.cells[0].context)
        counted = (life.metrics.drafts, life.metrics.draft_tokens, life.metrics.accepted_tokens)
        assert counted == (life.stream.drafts, life.stream.draft_tokens, life.stream.accepted_tokens)
        assert len({sample.prompt_id for sample in study.samples}) == len(study.samples) == 3
        assert {(sample.cache_n, sample.prompt_n) for sample in study.samples} == {(191, 1)}
        refused = {found.gate for found in study.findings if found.level == "refuse"}
        assert not refused & {
            "counters-agree",
            "depth-real",
            "prompt-not-repeated",
            "drafts-happened",
            "warmup-discarded",
        }
    assert all(sum(sample.drafted) for sample in point.study.samples), "each slot drafts"
    assert [sample.prompt_id for sample in point.raw.samples] == [sample.prompt_id for sample in point.study.samples]

    frame = sweep_frame([point])
    found = {row["quantity"]: row["estimate"] for row in frame.to_dict("records") if not row["refused"]}
    if found:  # the little text that this test asks for may all be refused
        assert found["throughput"] == pytest.approx(2 * found["decode rate"])

    journal = point.study.directory.path / "samples.jsonl"
    lines = journal.read_bytes().splitlines(keepends=True)
    assert len(lines) == 3
    journal.write_bytes(lines[0])  # as if it had been killed before the first group was written whole
    again = sweep()[0].study
    assert [sample.prompt_id for sample in again.samples] == [sample.prompt_id for sample in point.study.samples]
    assert again.samples[0] == point.study.samples[0], "what was recorded stays"
    measured_again = sum(drafted > 0 for sample in again.samples[1:] for drafted in sample.drafted)
    assert again.lives[1].stream.drafts > measured_again, "the recorded one kept it company"


def test_what_cannot_be_asked_at_once_is_refused_before_anything_is_measured(local: Path):
    with pytest.raises(Problem, match="2 requests at once with 1 prompts a cell"):
        sweep(prompts=1)
    with pytest.raises(Problem, match="depth 9000"):
        sweep(depths=[9000])
    assert not (local / "runs").exists()
