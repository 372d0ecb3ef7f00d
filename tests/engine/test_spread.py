"""A grid dealt to Dask workers, for real: two processes on two ports, one killed while it measures."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import dask
import pytest
from distributed import Client, LocalCluster

from analysis.launch import registry
from analysis.launch.process import free_port
from analysis.measure import cluster
from analysis.measure.estimate import depth_frame, ratio_frame
from analysis.measure.life import check_counters
from analysis.measure.plan import DRAFTED, RAW
from analysis.measure.spread import measure_spread
from analysis.measure.study import measure_study, open_study
from analysis.records import Problem
from analysis.records.model import Sample
from analysis.records.store import read_lines

pytestmark = pytest.mark.engine
SIZE = {"depths": [160], "regimes": ["continuation", "recall"], "prompts": 2, "n_predict": 8}
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
    with dask.config.set(settings), LocalCluster(n_workers=0, dashboard_address="127.0.0.1:0") as made:
        yield made.scheduler_address


@pytest.fixture
def start(scheduler: str) -> Iterator[Callable[..., list[subprocess.Popen]]]:
    """A function that starts workers of that scheduler as a user does, in the order of their addresses.

    Each is a process on a port of its own; an argument is the name that its machine gets.
    """
    settings = {f"DASK_DISTRIBUTED__SCHEDULER__LOCKS__{k.replace('-', '_').upper()}": v for k, v in LOCKS.items()}
    environment = os.environ | settings | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    command = [sys.executable, "-m", "dask", "worker", scheduler, "--no-nanny", "--no-dashboard", "--nthreads", "1"]
    started: list[subprocess.Popen] = []

    def start_all(*machines: str) -> list[subprocess.Popen]:
        ports = sorted(str(free_port()) for _ in machines)
        started.extend(
            subprocess.Popen(
                [*command, "--resources", "engine=1", "--worker-port", port],
                env=environment | ({"SPECBOOK_MACHINE": machine} if machine else {}),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            for port, machine in zip(ports, machines, strict=True)
        )
        with Client(scheduler, set_as_default=False) as client:
            client.wait_for_workers(len(machines), timeout=60)
        return started

    yield start_all
    for process in started:
        process.terminate()
    for process in started:
        process.wait(timeout=120)
    registry.end_orphans()


def recorded(local: Path) -> list[Sample]:
    return [sample for file in local.glob("runs/*/samples.jsonl") for sample in read_lines(file, Sample)]


def kill_once_it_has_measured(victim: subprocess.Popen, servers: set[str], local: Path) -> None:
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        taken = recorded(local)
        if len(taken) >= 2 and {sample.server for sample in taken} & servers:
            victim.send_signal(signal.SIGKILL)
            return
        time.sleep(0.02)


def test_a_worker_that_is_killed_loses_only_its_current_sample(local: Path, scheduler: str, start):
    workers = start("", "")
    killer = threading.Thread(target=kill_once_it_has_measured, args=(workers[0], {"raw-0", "drafted-1"}, local))
    killer.start()
    study = measure_spread("smollm2-ngram", scheduler=scheduler, profile="smoke", size=SIZE)
    killer.join()
    assert workers[0].wait(timeout=60) == -signal.SIGKILL

    keys = [(sample.leg, sample.cell, sample.prompt_id) for sample in study.samples]
    assert len(keys) == len(set(keys)) == 2 * 2 * 2, "every sample once"
    assert [sample.index for sample in study.samples] == list(range(8)), "one journal, in the order of arrival"
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


def test_machines_of_two_names_each_measure_the_grid_in_one_run(local: Path, scheduler: str, start):
    start("alpha", "beta")
    small = SIZE | {"regimes": ["recall"], "prompts": 1, "n_predict": 6}
    study = measure_spread("smollm2-ngram", scheduler=scheduler, profile="smoke", size=small)
    assert len(list((local / "runs").iterdir())) == 1
    assert sorted(machine.name for machine in study.run.machines) == ["alpha", "beta"]
    places = [(study.cells[sample.cell].machine, sample.leg) for sample in study.samples]
    assert sorted(places) == [("alpha", DRAFTED), ("alpha", RAW), ("beta", DRAFTED), ("beta", RAW)]
    machine_of = {life.id: life.machine for life in study.lives}
    assert all(study.cells[sample.cell].machine == machine_of[sample.server] for sample in study.samples)
    one = open_study(f"{study.run.id}@beta")
    assert one.run.machine.name == "beta"
    assert len(one.samples) == len(one.lives) == 2
    again = measure_spread("smollm2-ngram", scheduler=scheduler, profile="smoke", size=small)
    assert again.samples == study.samples, "nothing is measured twice"


def test_where_no_scheduler_is_no_run_is_begun(local: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(cluster, "CONNECT_S", 0.5)
    with pytest.raises(Problem, match="no Dask scheduler answers at tcp://127.0.0.1:1: "):
        measure_spread("smollm2-ngram", scheduler="tcp://127.0.0.1:1", profile="smoke")
    assert not list(local.iterdir())


def test_a_local_scheduler_goes_on_with_the_run_of_this_machine(local: Path):
    small = SIZE | {"regimes": ["recall"], "prompts": 1, "n_predict": 6}
    first = measure_study("smollm2-ngram", profile="smoke", size=small)
    more = measure_spread("smollm2-ngram", profile="smoke", size=small | {"prompts": 3})
    assert more.run.id == first.run.id
    assert more.samples[:2] == first.samples
    assert len({(s.leg, s.prompt_id) for s in more.samples}) == len(more.samples) == 6
    assert not [f for f in more.findings if f.where.kind == "timing"], "one worker shares its host with nobody"
    assert measure_study("smollm2-ngram", profile="smoke", size=small | {"prompts": 3}).samples == more.samples
