"""The harness killed again and again while it measures, and resumed each time (`make soak ARGS="-k kills"`)."""

import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from analysis.measure.estimate import acceptance_frame
from analysis.measure.study import Study, measure_study

pytestmark = [pytest.mark.engine, pytest.mark.soak]
SIZE = {"depths": [160, 192], "regimes": ["continuation", "recall", "prose"], "prompts": 5, "n_predict": 12}
SAMPLES = 2 * 2 * 3 * 5
KILLS = 50
STARTING = 0.3  # share of the kills that come while interpreter and server start; the others come among samples
KEYS = ["regime", "depth", "meaning", "position"]


@pytest.mark.timeout(3600)
def test_after_fifty_kills_no_sample_is_lost_or_there_twice_and_the_tables_are_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, record_soak
):
    undisturbed = measured(monkeypatch, tmp_path / "undisturbed")
    chance, gained, runs = random.Random(7), [], []
    while len(gained) < KILLS:
        folder = tmp_path / f"killed-{len(runs)}"
        gained += killed_until_done(folder, chance, KILLS - len(gained))
        runs.append(measured(monkeypatch, folder))
    for study in (undisturbed, *runs):
        keys = [(sample.cell, sample.prompt_id) for sample in study.samples]
        assert len(keys) == len(set(keys)) == SAMPLES
    compared = [compare(undisturbed, study) for study in runs]
    assert sum(count > 0 for count in gained) >= KILLS / 2, "most kills came before anything was measured"
    record_soak(
        "kills",
        kills=len(gained),
        kills_among_samples=sum(count > 0 for count in gained),
        samples_recorded_before_each_kill=gained,
        runs=len(runs),
        samples_a_run=SAMPLES,
        samples_with_the_same_text=sum(same for same, _ in compared),
        table_rows_compared=sum(rows for _, rows in compared),
    )


def measured(monkeypatch: pytest.MonkeyPatch, folder: Path) -> Study:
    """Measure, or measure what is left, without being disturbed."""
    monkeypatch.setenv("SPECBOOK_LOCAL", str(folder))
    return measure_study("smollm2-ngram", profile="smoke", size=SIZE)


def killed_until_done(folder: Path, chance: random.Random, most: int) -> Iterator[int]:
    """Kill a measurement at random moments, at most so often; give what each life recorded. One may end by itself."""
    code = (
        "from analysis.measure.study import measure_study\n"
        f"measure_study('smollm2-ngram', profile='smoke', size={SIZE!r})"
    )
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
        "SPECBOOK_LOCAL": str(folder),
    }
    for _ in range(most):
        before = recorded(folder)
        process = subprocess.Popen(
            [sys.executable, "-c", code], env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        if chance.random() >= STARTING:
            while recorded(folder) == before and process.poll() is None:
                time.sleep(0.02)
            delay = chance.uniform(0.0, 1.5)
        else:
            delay = chance.uniform(0.3, 4.0)
        try:
            status = process.wait(delay)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        else:
            assert status == 0, "a measurement failed by itself"
            return
        now = recorded(folder)
        assert now >= before, "a recorded sample was lost"
        yield now - before


def recorded(folder: Path) -> int:
    """Return how many samples stand in the journal."""
    return sum(file.read_bytes().count(b"\n") for file in folder.glob("runs/*/samples.jsonl"))


def compare(undisturbed: Study, killed: Study) -> tuple[int, int]:
    """Hold a run's table of acceptance against the undisturbed one's; return equal texts and compared rows.

    After a kill a prompt's context is filled anew, in other batches, and rounding may choose another text. Where the
    text is the same, every step must be; the tables may differ by less than the prompts do.
    """
    before = {(sample.cell, sample.prompt_id): sample for sample in undisturbed.samples}
    pairs = [(before[sample.cell, sample.prompt_id], sample) for sample in killed.samples]
    same = [(one, other) for one, other in pairs if one.tokens == other.tokens]
    assert all((one.drafted, one.accepted) == (other.drafted, other.accepted) for one, other in same)
    tables = acceptance_frame(undisturbed).merge(acceptance_frame(killed), on=KEYS, how="outer", suffixes=("", "_k"))
    bounded = tables.dropna(subset=["low", "high", "estimate_k"])
    assert len(bounded) > 0
    assert bounded["estimate_k"].between(bounded["low"], bounded["high"]).all()
    return len(same), len(bounded)
