"""Starting and ending a process for certain."""

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from analysis.launch import process, registry
from analysis.records import Problem


def wait_for(condition, seconds=10.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.02)


def test_a_polite_process_is_asked(tmp_path):
    child = process.spawn(["/bin/sleep", "60"], tmp_path / "log")
    assert process.end(child, 5) == -signal.SIGTERM


def test_a_stubborn_process_is_killed(tmp_path):
    body = "import signal, time; signal.signal(15, signal.SIG_IGN); print('deaf', flush=True); time.sleep(60)"
    child = process.spawn([sys.executable, "-c", body], tmp_path / "log")
    wait_for(lambda: "deaf" in (tmp_path / "log").read_text())
    assert process.end(child, 0.2) == -signal.SIGKILL


def test_an_interrupt_while_waiting_still_kills(tmp_path, monkeypatch):
    child = process.spawn(["/bin/sleep", "60"], tmp_path / "log")
    waiting = child.wait

    def interrupted(timeout=None):
        if timeout is not None:
            raise KeyboardInterrupt
        return waiting()

    monkeypatch.setattr(child, "wait", interrupted)
    with pytest.raises(KeyboardInterrupt):
        process.end(child, 5)
    assert child.poll() is not None


def test_what_it_prints_goes_to_the_log(tmp_path):
    child = process.spawn(["/bin/sh", "-c", "echo out; echo err >&2"], tmp_path / "log")
    assert child.wait(10) == 0
    assert (tmp_path / "log").read_text() == "out\nerr\n"


def test_it_has_a_group_of_its_own_so_that_ctrl_c_does_not_reach_it(tmp_path):
    child = process.spawn(["/bin/sleep", "60"], tmp_path / "log")
    assert os.getpgid(child.pid) == child.pid != os.getpgid(0)
    process.end(child, 5)


def test_a_program_that_is_none(tmp_path):
    caught = []

    def start() -> None:  # away from the main thread the program is run directly
        try:
            process.spawn([str(tmp_path)], tmp_path / "log")
        except Problem as problem:
            caught.append(str(problem))

    thread = threading.Thread(target=start)
    thread.start()
    thread.join()
    assert "cannot be run" in caught[0]


def test_it_dies_with_the_program_that_started_it(tmp_path):
    """Also when that program is killed and can clean up nothing."""
    body = f"""
import sys, time
from pathlib import Path
from analysis.launch.process import spawn
print(spawn(["/bin/sleep", "60"], Path({str(tmp_path / "log")!r})).pid, flush=True)
time.sleep(60)
"""
    parent = subprocess.Popen([sys.executable, "-c", body], stdout=subprocess.PIPE, env=python_environment())
    pid = int(parent.stdout.readline())
    wait_for(lambda: registry.program_of(pid, Path()).name != Path(sys.executable).resolve().name)
    parent.kill()
    parent.communicate()
    wait_for(lambda: registry.started_at(pid) is None)


def python_environment() -> dict[str, str]:
    return os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}


def test_a_taken_port_is_refused():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(Problem, match=r"port \d+ cannot be used: Address already in use; expected a free port"):
            process.check_port(taken.getsockname()[1])


@pytest.mark.parametrize("port", [-1, 70000])
def test_a_number_that_is_no_port_is_refused(port):
    with pytest.raises(Problem, match="cannot be used"):
        process.check_port(port)


@pytest.mark.parametrize(("status", "words"), [(1, "exit status 1"), (-9, "signal 9 (SIGKILL)"), (-250, "signal 250")])
def test_an_exit_status_in_words(status, words):
    assert process.describe_exit(status) == words


def test_resident_memory_of_a_process_and_of_none():
    now, peak = process.resident_memory(os.getpid())
    assert 0 < now <= peak
    assert process.resident_memory(2**22 + 1) == (None, None)
