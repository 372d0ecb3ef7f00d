"""What is said, in one line, where a grid cannot be dealt."""

from dataclasses import replace

import pytest
from distributed import Client, LocalCluster

from analysis.launch.process import free_port
from analysis.measure import cluster
from analysis.measure.bench import Job, seat_of
from analysis.measure.plan import DRAFTED, RAW, load_grid
from analysis.measure.serving import serving_of
from analysis.records import Problem
from factories import make_run


@pytest.fixture(scope="module")
def job() -> Job:
    return Job(
        served=serving_of("smollm2-ngram"),
        grid=load_grid("smoke"),
        legs=(RAW, DRAFTED),
        engine=make_run().engine,
        files=frozenset({serving_of("smollm2-ngram").pair.target.sha256}),
    )


@pytest.fixture(scope="module")
def client():
    """A client of one worker in this process, with an engine."""
    with (
        LocalCluster(n_workers=1, processes=False, dashboard_address="127.0.0.1:0", resources={"engine": 1}) as local,
        Client(local, set_as_default=False) as client,
    ):
        yield client


def test_no_scheduler_there(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(cluster, "CONNECT_S", 0.5)
    address = f"tcp://127.0.0.1:{free_port()}"
    with (
        pytest.raises(Problem, match=rf"no Dask scheduler answers at {address}: .*; expected the address that"),
        cluster.connected(address, 1),
    ):
        pass


@pytest.mark.parametrize("address", ["nowhere", "carrier-pigeon://host:1", "tcp://"])
def test_what_is_no_address(monkeypatch: pytest.MonkeyPatch, address: str):
    monkeypatch.setattr(cluster, "CONNECT_S", 0.5)
    with pytest.raises(Problem, match="no Dask scheduler answers at"), cluster.connected(address, 1):
        pass


def test_no_worker_declares_an_engine(monkeypatch: pytest.MonkeyPatch, job: Job):
    monkeypatch.setattr(cluster, "SEAT_S", 0.2)
    with (
        LocalCluster(n_workers=1, processes=False, dashboard_address="127.0.0.1:0") as local,
        Client(local, set_as_default=False) as client,
        pytest.raises(Problem, match=r"none of the 1 workers .* declares the resource `engine`.*dask worker ADDRESS"),
    ):
        cluster.first_seats(client, job)


def test_a_worker_without_this_library(monkeypatch: pytest.MonkeyPatch, client: Client, job: Job):
    def lacks(job):
        raise ModuleNotFoundError("No module named 'analysis'")

    monkeypatch.setattr(cluster, "seat_of", lacks)
    with pytest.raises(Problem, match=r"worker \S+ cannot run the measurement: ModuleNotFoundError: No module named"):
        cluster.first_seats(client, job)


@pytest.mark.engine
def test_a_worker_with_another_build(client: Client, job: Job, local_target):
    other = replace(job, engine=replace(job.engine, version="b1234", commit="abcdef0"))
    with pytest.raises(Problem, match=r"worker \S+: llama.cpp is \S+ 0c1e570; expected b1234 abcdef0, as where the"):
        cluster.first_seats(client, other)


@pytest.mark.engine
def test_a_worker_with_other_files_or_another_commit(client: Client, job: Job, local_target):
    with pytest.raises(Problem, match="the pair's files there are others"):
        cluster.first_seats(client, replace(job, files=frozenset({"0" * 64})))
    with pytest.raises(Problem, match="the checkout is .*; expected 0123456789ab"):
        cluster.first_seats(client, replace(job, commit="0123456789abcdef"))


@pytest.mark.engine
def test_a_seat_says_how_each_leg_would_be_served(client: Client, job: Job, local_target):
    (seat,) = cluster.first_seats(client, job).values()
    assert [leg.leg for leg in seat.legs] == [RAW, DRAFTED]
    assert seat.legs[0].config.model == local_target
    assert seat.host == client.submit(lambda job: seat_of(job).host, job, pure=False).result()
