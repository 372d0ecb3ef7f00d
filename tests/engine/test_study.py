"""A pair measured for real: what a run holds, and how it goes on after every way of being cut off."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from analysis.gates.control import noise_floor
from analysis.launch import ServerDied
from analysis.measure import life as lives
from analysis.measure.estimate import ratio_frame
from analysis.measure.plan import CONTROL, DRAFTED, RAW
from analysis.measure.study import Study, measure_study, open_study
from analysis.records import Problem

pytestmark = pytest.mark.engine
SIZE = {"depths": [128, 192], "regimes": ["continuation", "recall"], "prompts": 2, "n_predict": 12}


def measure(**changes) -> Study:
    return measure_study("smollm2-ngram", profile="smoke", **({"size": SIZE} | changes))


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Study:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SPECBOOK_LOCAL", str(tmp_path_factory.mktemp("local")))
        yield measure()


@pytest.fixture
def local(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty place for runs."""
    monkeypatch.setenv("SPECBOOK_LOCAL", str(tmp_path))
    return tmp_path


def test_every_cell_has_its_prompts_on_both_legs(study: Study):
    assert len(study.samples) == 2 * 2 * 2 * 2
    for cell in study.run.cells:
        prompts = [sample.prompt_id for sample in study.samples if sample.cell == cell.id]
        assert len(set(prompts)) == len(prompts) == 2


def test_the_depth_of_every_sample_is_real(study: Study):
    for sample in study.samples:
        cell = study.cells[sample.cell]
        assert sample.cache_n + sample.prompt_n == cell.depth
        if cell.depth > cell.local_tokens:
            assert sample.cache_n >= cell.depth - cell.local_tokens, "the shared prefix was reused"


def test_emitted_tokens_are_accounted_for_step_by_step(study: Study):
    for sample in study.samples:
        assert sample.emitted == 1 + sum(a + 1 for a in sample.accepted)
        assert sum(sample.step_ms) == pytest.approx(sample.predicted_ms, rel=0.2)


def test_only_the_drafted_leg_drafts(study: Study):
    for sample in study.samples:
        drafts = sum(d > 0 for d in sample.drafted)
        assert sample.leg in (RAW, DRAFTED)
        assert drafts == 0 or sample.leg == DRAFTED
    recall = [s for s in study.samples if s.leg == DRAFTED and study.cells[s.cell].regime == "recall"]
    assert any(sum(s.accepted) for s in recall), "recall is what n-grams are good at"


def test_no_prompt_is_used_twice_in_a_servers_life(study: Study):
    used = [(sample.server, sample.prompt_sha256) for sample in study.samples]
    assert len(set(used)) == len(used)


def test_the_legs_share_their_prompts_and_neither_is_always_first(study: Study):
    by_leg = {leg: {s.prompt_sha256 for s in study.samples if s.leg == leg} for leg in (RAW, DRAFTED)}
    assert by_leg[RAW] == by_leg[DRAFTED]
    first = [sample.leg for sample in study.samples if sample.leg_order == 0]
    assert first.count(RAW) == first.count(DRAFTED)


def test_the_servers_own_counters_agree_with_the_stream(study: Study):
    assert len(study.lives) == 2
    for life in study.lives:
        assert life.metrics == life.stream
        assert life.warmups == len(SIZE["depths"]), "also where the prompts share no text"
        assert life.memory_peak >= life.memory_loaded > 50 * 2**20


def test_the_run_says_where_it_comes_from_and_nothing_of_whom(study: Study):
    run = study.run
    assert run.ended
    assert run.engine.commit
    assert run.files[0].path.startswith("$CACHE/")
    text = (study.directory.path / "run.json").read_text() + study.directory.servers_file.read_text()
    assert str(Path.home()) not in text
    assert '"--api-key-file","$CACHE/servers/' in text


def test_what_is_measured_is_not_measured_again(study: Study, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("SPECBOOK_LOCAL", str(study.directory.path.parents[1]))
    before = study.directory.samples_file.read_bytes(), (study.directory.path / "run.json").read_bytes()
    again = measure()
    assert again.samples == study.samples
    assert (again.directory.samples_file.read_bytes(), (again.directory.path / "run.json").read_bytes()) == before


def test_the_drafted_leg_alone_is_taken_from_a_finished_run_of_both(study: Study, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("SPECBOOK_LOCAL", str(study.directory.path.parents[1]))
    assert measure(raw=False).run.id == study.run.id
    other = measure(raw=False, size=SIZE | {"depths": [224], "regimes": ["recall"], "prompts": 1})
    assert other.run.id != study.run.id, "that run does not hold this depth"
    assert {sample.leg for sample in other.samples} == {DRAFTED}


def test_remeasuring_sets_the_old_run_aside(study: Study, local: Path):
    small = SIZE | {"depths": [256], "regimes": ["recall"], "prompts": 1, "n_predict": 4}
    first = measure(size=small)
    second = measure(size=small, remeasure=True)
    assert first.run.id == second.run.id
    assert first.samples[0].started <= second.samples[0].started
    assert len(list((local / "runs").iterdir())) == 2


def test_a_server_that_dies_stops_the_run_and_the_next_call_resumes(local: Path, monkeypatch: pytest.MonkeyPatch):
    taken = []
    take = lives.Life.take

    def kill_at_the_third(life, *arguments, **options):
        taken.append(1)
        if len(taken) == 3:
            psutil.Process(life._server.pid).kill()
        return take(life, *arguments, **options)

    monkeypatch.setattr(lives.Life, "take", kill_at_the_third)
    with pytest.raises(ServerDied, match="signal 9|SIGKILL"):
        measure()
    monkeypatch.undo()
    monkeypatch.setenv("SPECBOOK_LOCAL", str(local))
    (run,) = (local / "runs").iterdir()
    assert len(open_study(str(run)).samples) == 2

    resumed = measure()
    assert len(resumed.samples) == 16
    keys = [(sample.cell, sample.prompt_id) for sample in resumed.samples]
    assert len(set(keys)) == len(keys)


@pytest.mark.parametrize("signal_sent", [signal.SIGINT, signal.SIGKILL])
def test_a_run_that_is_cut_off_resumes_and_leaves_no_server(local: Path, signal_sent: signal.Signals):
    code = (
        "from analysis.measure.study import measure_study\n"
        f"measure_study('smollm2-ngram', profile='smoke', size={SIZE!r})"
    )
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    process = subprocess.Popen(
        [sys.executable, "-c", code], env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    deadline = time.monotonic() + 120
    while _recorded(local) < 3 and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.05)
    assert process.poll() is None, "it ended before it could be cut off"
    servers = [child for child in psutil.Process(process.pid).children(recursive=True) if "llama" in child.name()]
    process.send_signal(signal_sent)
    process.wait(timeout=120)
    psutil.wait_procs(servers, timeout=60)
    assert servers
    assert not any(server.is_running() and server.status() != psutil.STATUS_ZOMBIE for server in servers)

    before = _recorded(local)
    resumed = measure()
    assert len(resumed.samples) == 16 > before >= 3
    keys = [(sample.cell, sample.prompt_id) for sample in resumed.samples]
    assert len(set(keys)) == len(keys)


def test_another_length_is_another_run_and_another_depth_is_not(local: Path):
    small = SIZE | {"depths": [160], "regimes": ["recall"], "prompts": 1, "n_predict": 4}
    first = measure(size=small)
    deeper = measure(size=small | {"depths": [192]})
    longer = measure(size=small | {"n_predict": 6})
    assert deeper.run.id == first.run.id != longer.run.id
    keys = [(cell.spec_type, cell.depth, cell.regime) for cell in deeper.run.cells]
    assert len(keys) == len(set(keys)) == 4


def test_a_control_measures_the_raw_cells_again_on_a_server_of_its_own(local: Path):
    size = SIZE | {"depths": [160], "regimes": ["recall"], "prompts": 3, "n_predict": 8, "control": True}
    study = measure(size=size)
    legs = {leg: [s for s in study.samples if s.leg == leg] for leg in (RAW, DRAFTED, CONTROL)}
    assert {len(samples) for samples in legs.values()} == {3}
    assert {s.cell for s in legs[RAW]} == {s.cell for s in legs[CONTROL]} != {s.cell for s in legs[DRAFTED]}
    assert len({s.server for s in study.samples}) == 3
    floor = noise_floor(study.samples)
    assert floor.n == 3
    assert [s.tokens for s in legs[RAW]] == [s.tokens for s in legs[CONTROL]], "nothing acts but noise"
    assert ratio_frame(study)["pairs"].tolist() == [len([s for s in study.publishable if s.leg == DRAFTED])]
    assert len(measure(size=size).samples) == 9, "nothing is measured twice"
    assert measure(size=size, raw=False).run.id == study.run.id, "nor for a chapter that needs the drafted leg alone"


def test_a_depth_beyond_the_context_is_said_before_a_server_starts(local: Path):
    with pytest.raises(Problem, match="depth 100000 and 12 generated tokens need"):
        measure(size=SIZE | {"depths": [100000]})
    assert not (local / "runs").exists()


def _recorded(local: Path) -> int:
    return sum(file.read_bytes().count(b"\n") for file in local.glob("runs/*/samples.jsonl"))
