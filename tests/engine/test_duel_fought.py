"""Duels on the real server: order, prompts, resuming, a server against itself."""

from pathlib import Path

import pytest

from analysis.launch import ServerDied
from analysis.measure import duel as duels
from analysis.measure import life as lives
from analysis.measure.duel import measure_duel, plan_duel
from analysis.measure.duel_result import result_of
from analysis.measure.study import study_in
from analysis.records import Problem

pytestmark = pytest.mark.engine
SIZE = {"depths": [160], "regimes": ["recall"], "prompts": 1, "n_predict": 6}


@pytest.fixture
def local(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SPECBOOK_LOCAL", str(tmp_path))
    return tmp_path


def plan(a="smollm2-ngram", b="smollm2-ngram", **changes):
    return plan_duel(a, b, profile="smoke", size=SIZE, **changes)


def test_a_duel_is_fought_in_blocks_cut_off_and_gone_on_with(local: Path, monkeypatch: pytest.MonkeyPatch):
    taken = []
    take = lives.Life.take

    def die_in_the_second_block(life, *arguments, **options):
        taken.append(1)
        if len(taken) == 6:
            raise ServerDied("killed", exit_status=-9, log_lines=())
        return take(life, *arguments, **options)

    monkeypatch.setattr(lives.Life, "take", die_in_the_second_block)
    fight = plan("raw", "smollm2-ngram")
    assert fight.factor == "speculation"
    with pytest.raises(ServerDied):
        measure_duel(fight, 2)
    monkeypatch.undo()
    monkeypatch.setenv("SPECBOOK_LOCAL", str(local))

    directory = measure_duel(fight, 2)
    blocks = directory.blocks()
    assert [block.number for block in blocks] == [0, 1]
    assert len(directory.samples()) == 5 + 4, "the block that was cut off was measured again, in new servers"
    samples = {sample.index: sample for sample in directory.samples()}
    for block in blocks:
        assert len({leg.server for leg in block.legs}) == 2, "one life a side within a block"
        first, second, third, fourth = ([samples[i].prompt_id for i in leg.samples] for leg in block.legs)
        assert first == second != third == fourth
        assert [leg.contestant for leg in block.legs] == list(block.order)
    for life in directory.lives():
        mine = [sample.prompt_sha256 for sample in samples.values() if sample.server == life.id]
        assert len(mine) == len(set(mine)), "no server sees a prompt twice"
    study = study_in(directory)
    assert not {f.gate for f in study.findings if f.level == "refuse"} & {"prompt-not-repeated", "one-factor"}
    assert result_of(study).blocks <= 2

    before = directory.samples_file.read_bytes()
    assert measure_duel(fight, 2).samples_file.read_bytes() == before, "what is fought is not fought again"


def test_a_server_against_itself_is_a_control_and_restarts_a_leg_where_memory_is_short(local: Path):
    fight = plan(restart=True)
    assert fight.factor == "nothing"
    directory = measure_duel(fight, 1)
    (block,) = directory.blocks()
    assert len({leg.server for leg in block.legs}) == 4
    found = result_of(study_in(directory))
    assert found.restarted
    assert found.differing == 0, "the same server emits the same text"


def test_sides_that_differ_in_two_factors_are_refused_before_anything_starts(local: Path):
    with pytest.raises(Problem, match="differ in n_max, threads"):
        plan(changes=((), ("n_max=4", "threads=1")))
    with pytest.raises(Problem, match="specbook sweep"):
        plan(changes=((), ("n_predict=8",)))
    with pytest.raises(Problem, match="names no target"):
        plan("raw", "raw")
    assert not (local / "runs").exists()


def test_memory_that_holds_one_server_only_means_a_server_a_leg(local: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(duels, "SPARE", 1e9)
    assert plan().restart
