"""A sweep on the real server: every combination once, killed and gone on with."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from analysis.measure.sweep import cells_of_sweep, measure_sweep, sweep_frame
from analysis.records import Problem
from analysis.records.store import RunDir

pytestmark = pytest.mark.engine
SIZE = {"depths": [160], "regimes": ["recall"], "prompts": 2}
FACTORS = ["n_predict=8,12", "n_max=4,8"]
SAMPLES = 2 * (2 + 4)  # two raw cells, one for each length; four drafted ones


@pytest.fixture
def local(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SPECBOOK_LOCAL", str(tmp_path))
    return tmp_path


def sweep(**changes):
    return measure_sweep("smollm2-ngram", FACTORS, profile="smoke", size=SIZE, **changes)


def test_a_sweep_that_is_killed_goes_on_and_finished_cells_stay_as_they_are(local: Path):
    code = (
        "from analysis.measure.sweep import measure_sweep\n"
        f"measure_sweep('smollm2-ngram', {FACTORS!r}, profile='smoke', size={SIZE!r})"
    )
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    process = subprocess.Popen(
        [sys.executable, "-c", code], env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    deadline = time.monotonic() + 120
    while recorded(local) < 3 and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.02)
    assert process.poll() is None, "it ended before it could be killed"
    process.kill()
    process.wait()
    finished = {path: contents(path) for path in (local / "runs").iterdir() if RunDir.open(path).run.ended}
    assert finished
    assert recorded(local) < SAMPLES

    points = sweep()
    assert recorded(local) == SAMPLES == 2 * len(cells_of_sweep(points))
    for path, before in finished.items():
        assert contents(path) == before, "a finished cell was touched"
    keys = [(s.cell, s.prompt_id) for path in (local / "runs").iterdir() for s in RunDir.open(path).samples()]
    assert len(keys) == len(set(keys))

    everything = {path: contents(path) for path in (local / "runs").iterdir()}
    frame = sweep_frame(sweep())
    assert {path: contents(path) for path in (local / "runs").iterdir()} == everything, "all is measured"
    assert list(frame[frame["quantity"] == "ratio"]["n_predict"]) == ["8", "8", "12", "12"]
    assert list(frame[frame["quantity"] == "ratio"]["n_max"]) == ["4", "8", "4", "8"]

    again = measure_sweep("smollm2-ngram", ["n_predict=8"], profile="smoke", size=SIZE, raw=False, again=True)
    assert len(again) == 1
    assert recorded(local) == SAMPLES, "n_max=8 at 8 tokens was set aside and measured anew"
    assert len(list((local / "runs").iterdir())) == len(everything) + 1


def test_every_value_is_checked_before_anything_is_measured(local: Path):
    with pytest.raises(Problem, match="n_max 2 and n-grams of 3 drafts nothing|n_max of at least"):
        measure_sweep("smollm2-ngram", ["n_max=8,2"], profile="smoke", size=SIZE)
    with pytest.raises(Problem, match="depth 9000"):
        measure_sweep("smollm2-ngram", ["depth=160,9000"], profile="smoke", size=SIZE)
    with pytest.raises(Problem, match="no llama|another program|no program|cannot be run|not an executable"):
        measure_sweep("smollm2-ngram", [f"engine={__file__}"], profile="smoke", size=SIZE)
    assert not (local / "runs").exists()


def contents(path: Path) -> tuple[bytes, bytes]:
    return (path / "samples.jsonl").read_bytes(), (path / "servers.jsonl").read_bytes()


def recorded(local: Path) -> int:
    runs = (file for file in local.glob("runs/*/samples.jsonl") if ".2" not in file.parent.name)
    return sum(file.read_bytes().count(b"\n") for file in runs)
