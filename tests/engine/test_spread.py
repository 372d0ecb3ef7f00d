"""A grid dealt to Dask workers, for real: two processes on two ports, one killed while it measures."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import dask
import pytest
from distributed import LocalCluster

from analysis.launch import registry
from analysis.launch.process import free_port
from analysis.measure.estimate import depth_frame, ratio_frame
from analysis.measure.life import check_counters
from analysis.measure.spread import measure_spread
from analysis.measure.study import measure_study
from analysis.records.model import Sample
from analysis.records.store import read_lines

pytestmark = pytest.mark.engine
SIZE = {"depths": [160, 192], "regimes": ["continuation", "recall"], "prompts": 2, "n_predict": 12}
LOCKS = {"lease-timeout": "3s", "lease-validation-interval": "1s"}


@pytest.fixture
def local(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty place for runs."""
    monkeypatch.setenv("SPECBOOK_LOCAL", str(tmp_path))
    return tmp_path


@pytest.fixture
def scheduler() -> Iterator[str]:
    """The address of a scheduler without workers; the lock of a worker that died is soon free."""
    settings = {f"distributed.scheduler.locks.{name}": value for name, value in LOCKS.items()}
    with dask.config.set(settings), LocalCluster(n_workers=0, dashboard_address=None) as cluster:
        yield cluster.scheduler_address


@pytest.fixture
def workers(scheduler: str) -> Iterator[list[subprocess.Popen]]:
    """Two workers of that scheduler, started as a user starts them, in the order of their addresses."""
    settings = {f"DASK_DISTRIBUTED__SCHEDULER__LOCKS__{k.replace('-', '_').upper()}": v for k, v in LOCKS.items()}
    environment = os.environ | settings | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    command = [sys.executable, "-m", "dask", "worker", scheduler, "--no-nanny", "--no-dashboard", "--nthreads", "1"]
    started = [
        subprocess.Popen(
            [*command, "--resources", "engine=1", "--worker-port", port],
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for port in sorted(str(free_port()) for _ in range(2))
    ]
    yield started
    for process in started:
        process.terminate()
    for process in started:
        process.wait(timeout=30)
    registry.end_orphans()


def recorded(local: Path) -> list[Sample]:
    return [sample for file in local.glob("runs/*/samples.jsonl") for sample in read_lines(file, Sample)]


def kill_once_it_has_measured(victim: subprocess.Popen, servers: set[str], local: Path) -> None:
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        taken = recorded(local)
        if len(taken) >= 3 and {sample.server for sample in taken} & servers:
            victim.send_signal(signal.SIGKILL)
            return
        time.sleep(0.02)


def test_a_worker_that_is_killed_loses_only_its_current_sample(local: Path, scheduler: str, workers):
    killer = threading.Thread(target=kill_once_it_has_measured, args=(workers[0], {"raw-0", "drafted-1"}, local))
    killer.start()
    study = measure_spread("smollm2-ngram", scheduler=scheduler, profile="smoke", size=SIZE)
    killer.join()
    assert workers[0].wait(timeout=10) == -signal.SIGKILL

    keys = [(sample.leg, sample.cell, sample.prompt_id) for sample in study.samples]
    assert len(keys) == len(set(keys)) == 2 * 2 * 2 * 2, "every sample once"
    assert [sample.index for sample in study.samples] == list(range(16)), "one journal, in the order of arrival"
    assert {life.worker for life in study.lives} == {"worker-1", "worker-2"}
    for life in study.lives:  # also those of the servers that died with their worker
        assert life.metrics is not None
        check_counters(life.stream, life.metrics, life.id)
    assert {sample.server for sample in study.samples} <= {life.id for life in study.lives}
    assert {cell.machine for cell in study.run.cells} == {machine.name for machine in study.run.machines}

    assert {life.host for life in study.lives} == {"host-1"}
    refused = {(f.gate, f.where.kind) for f in study.findings if f.level == "refuse"}
    assert ("host-not-shared", "timing") in refused
    assert all(reason.startswith("host-not-shared") for reason in ratio_frame(study)["refused"])
    assert "host-not-shared" not in " ".join(depth_frame(study, "acceptance")["refused"])


def test_a_local_scheduler_goes_on_with_the_run_of_this_machine(local: Path):
    small = SIZE | {"depths": [160], "regimes": ["recall"], "prompts": 1, "n_predict": 6}
    first = measure_study("smollm2-ngram", profile="smoke", size=small)
    more = measure_spread("smollm2-ngram", profile="smoke", size=small | {"prompts": 3})
    assert more.run.id == first.run.id
    assert more.samples[:2] == first.samples
    assert len({(s.leg, s.prompt_id) for s in more.samples}) == len(more.samples) == 6
    assert not [f for f in more.findings if f.where.kind == "timing"], "one worker shares its host with nobody"
    assert measure_study("smollm2-ngram", profile="smoke", size=small | {"prompts": 3}).samples == more.samples
