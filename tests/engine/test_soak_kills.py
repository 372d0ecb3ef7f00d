"""The harness killed again and again while it measures, and resumed each time (`make soak`)."""

import os
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from analysis.measure.study import measure_study

pytestmark = [pytest.mark.engine, pytest.mark.soak]
SIZE = {"depths": [160, 192], "regimes": ["continuation", "recall", "prose"], "prompts": 4, "n_predict": 12}
SAMPLES = 2 * 2 * 3 * 4
KILLS = 20


def test_no_sample_is_lost_and_none_is_measured_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("SPECBOOK_LOCAL", str(tmp_path))
    code = (
        "from analysis.measure.study import measure_study\n"
        f"measure_study('smollm2-ngram', profile='smoke', size={SIZE!r})"
    )
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    chance = random.Random(7)
    recorded = 0
    for _ in range(KILLS):
        process = subprocess.Popen(
            [sys.executable, "-c", code], env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        time.sleep(chance.uniform(2.0, 9.0))
        process.kill()
        process.wait()
        lines = [file.read_bytes() for file in tmp_path.glob("runs/*/samples.jsonl")]
        now = sum(content.count(b"\n") for content in lines)
        assert now >= recorded, "a recorded sample was lost"
        recorded = now
    study = measure_study("smollm2-ngram", profile="smoke", size=SIZE)
    keys = [(sample.cell, sample.prompt_id) for sample in study.samples]
    assert len(keys) == len(set(keys)) == SAMPLES
