"""A log searched by several processes is read as by one."""

import os
import signal
from concurrent.futures import ProcessPoolExecutor
from io import BytesIO
from pathlib import Path

import psutil
import pytest

from analysis.ingest import ahead
from analysis.ingest.ahead import ALONE
from analysis.ingest.blocks import BLOCK, blocks
from analysis.ingest.endings import endings
from analysis.ingest.read import read_stream

TWENTY = (Path(__file__).parent / "logs" / "bundled-ngram-twenty.log").read_bytes()
LARGE = TWENTY * ((ALONE + 12) * BLOCK // len(TWENTY) + 1)


def read() -> list[str]:
    return [repr(found) for found in read_stream(BytesIO(LARGE), "x")]


def helpers() -> list[psutil.Process]:
    spawned = psutil.Process().children(recursive=True)
    return [process for process in spawned if "spawn_main" in " ".join(process.cmdline())]


@pytest.fixture(scope="module")
def alone() -> list[str]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "sched_getaffinity", lambda pid: {0})
        return read()


@pytest.fixture
def two_cores(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 1})


@pytest.fixture
def pools(monkeypatch):
    """Return the pools of processes that were asked for."""
    made = []

    def make(*arguments):
        made.append(ProcessPoolExecutor(*arguments))
        return made[-1]

    monkeypatch.setattr(ahead, "ProcessPoolExecutor", make)
    return made


def test_another_process_finds_the_same(two_cores, pools, alone):
    assert read() == alone
    assert len(pools) == 1
    assert not helpers(), "it ends with the file"


def test_a_small_file_starts_none(two_cores, pools):
    list(read_stream(BytesIO(TWENTY), "x"))
    assert not pools


def test_a_process_that_is_killed_costs_nothing(two_cores, pools, alone):
    found, killed = [], 0
    for one in read_stream(BytesIO(LARGE), "x"):
        found.append(repr(one))
        for helper in helpers() if pools and len(found) % 1000 == 0 else ():
            os.kill(helper.pid, signal.SIGKILL)
            killed += 1
    assert killed
    assert found == alone


def test_a_system_that_starts_none_reads_alone(two_cores, monkeypatch, alone):
    def refuse(*arguments):
        raise OSError(38, "no semaphores here")

    monkeypatch.setattr(ahead, "ProcessPoolExecutor", refuse)
    assert read() == alone


def test_a_reader_that_leaves_leaves_nothing_behind(two_cores, pools):
    searched = ahead.ahead(blocks(BytesIO(LARGE)), endings)
    for _ in range(ALONE + 3):
        next(searched)
    searched.close()
    assert pools
    assert not helpers()


def test_what_waits_is_bounded(two_cores):
    taken = []

    def counted():
        for block in blocks(BytesIO(LARGE)):
            taken.append(1)
            yield block

    for number, _ in enumerate(ahead.ahead(counted(), endings), 1):
        assert len(taken) - number <= ahead._WAITING
