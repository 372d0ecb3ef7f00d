"""The real server's life: ready, watched, stopped; and every way in which it ends early."""

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from analysis.launch import (
    Client,
    Server,
    ServerConfig,
    ServerDied,
    ServerFailed,
    Timeouts,
    attach,
    check_host,
    examine,
    process,
    registry,
    resolve_engine,
    server_argv,
    tool,
)
from analysis.records import Problem

pytestmark = pytest.mark.engine


@pytest.fixture
def config(local_target) -> ServerConfig:
    return ServerConfig(model=local_target, context=256)


def wait_for(condition, seconds=90.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.02)


def test_the_bundled_build_knows_every_option(engine, local_target, tmp_path):
    config = ServerConfig(
        model=local_target, drafter=local_target, spec_type="draft-simple", n_max=3, n_min=1, p_min=0.1,
        gpu_layers=1, drafter_gpu_layers=1, slot_save_path=tmp_path,
    )  # fmt: skip
    words = server_argv(engine.server, config, 1, tmp_path, engine.options)
    assert {word for word in words if word.startswith("--")} <= engine.options
    assert {"--fit", "--cache-ram", "--no-ui", "--offline", "--no-context-shift"} <= set(words)
    assert tool(engine, "llama-quantize").is_file()


def test_a_life(engine, config, cache):
    with Server(engine, config) as server:
        pid = server.pid
        server.client.health()
        assert registry.started_at(pid) is not None
        loaded, peak = server.memory()
        assert 50_000_000 < loaded <= peak < 2**30
        assert list(cache.glob("servers/*.json"))
        assert not list(cache.glob("servers/*.key"))
    assert registry.started_at(pid) is None
    assert server.pid is None
    assert server.memory().peak >= loaded
    assert not list(cache.glob("servers/*.json"))
    assert server.log.stat().st_size > 0


def test_it_listens_on_the_loopback_address_only_and_wants_its_key(engine, config, cache):
    with Server(engine, config) as server:
        port = int(server.url.rpartition(":")[2])
        tables = Path("/proc/net/tcp").read_text() + Path("/proc/net/tcp6").read_text()
        listening = [line.split()[1] for line in tables.splitlines() if line.split()[3] == "0A"]
        assert [address for address in listening if address.endswith(f":{port:04X}")] == [f"0100007F:{port:04X}"]
        with Client(server.url) as stranger, pytest.raises(ServerFailed, match="answered 401"):
            stranger.props()
        command = Path(f"/proc/{server.pid}/cmdline").read_text()
        assert server._key not in command
    assert server._key not in server.log.read_text()


def test_a_server_of_our_own_and_an_attached_one_look_alike(engine, config, cache):
    with Server(engine, config) as server, attach(server.url, server._key) as attached:
        attached.check()
        assert attached.client.complete("one two", n_predict=3, seed=1).predicted_n == 3
        assert attached.pid is None
        assert attached.memory() == (None, None)
        pid = server.pid
        assert registry.started_at(pid) is not None
    assert registry.started_at(pid) is None


def test_a_text_file_named_gguf(engine, cache, tmp_path):
    path = tmp_path / "model.gguf"
    path.write_text("hello")
    with pytest.raises(Problem, match=r"model\.gguf is no GGUF file: it begins with b'hell'"):
        Server(engine, ServerConfig(model=path)).start()


def test_a_file_that_is_not_there(engine, cache, tmp_path):
    with pytest.raises(Problem, match="cannot be read: No such file"):
        Server(engine, ServerConfig(model=tmp_path / "model.gguf")).start()


def test_a_truncated_gguf(engine, cache, tmp_path, local_target):
    path = tmp_path / "model.gguf"
    path.write_bytes(local_target.read_bytes()[:2_000_000])
    with pytest.raises(ServerDied, match=r"while it was starting \(exit status 1\).*corrupted or incomplete") as caught:
        Server(engine, ServerConfig(model=path)).start()
    assert "\n" not in str(caught.value)
    assert not list(cache.glob("servers/*.json"))


def test_a_setting_that_the_server_refuses(engine, config, cache, local_target):
    with pytest.raises(ServerDied, match="invalid argument: --nonsense"):
        Server(engine, ServerConfig(model=local_target, extra_args=("--nonsense",))).start()


def test_a_port_that_is_taken(engine, config, cache):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(Problem, match=f"port {port} cannot be used"):
            Server(engine, config, port=port).start()


def test_a_port_that_is_taken_at_the_last_moment(engine, config, cache, monkeypatch):
    """Between looking for a free port and using it, another program may take it: another port is tried."""
    free = process.free_port
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        ports = [taken.getsockname()[1], free()]
        monkeypatch.setattr(process, "free_port", lambda: ports.pop(0))
        with Server(engine, config) as server:
            assert server.url.endswith(str(server.argv[server.argv.index("--port") + 1]))
            assert ports == []


def test_a_server_that_does_not_get_ready_in_time(engine, config, cache):
    server = Server(engine, config, start_timeout_s=0.0)
    with pytest.raises(Problem, match="was not ready after 0 s"):
        server.start()
    assert server.pid is None
    assert not list(cache.glob("servers/*.json"))


def test_a_server_that_is_killed_while_it_starts(engine, config, cache):
    server = Server(engine, config)

    def kill_early() -> None:
        wait_for(lambda: server.pid is not None)
        os.kill(server.pid, signal.SIGKILL)

    killer = threading.Thread(target=kill_early)
    killer.start()
    with pytest.raises(ServerDied, match=r"while it was starting \(signal 9 \(SIGKILL\)\)"):
        server.start()
    killer.join()
    assert not list(cache.glob("servers/*.json"))


def test_a_server_that_is_killed_during_a_request(engine, config, cache, local_target):
    with Server(engine, ServerConfig(model=local_target, context=8192)) as server:
        threading.Timer(0.3, os.kill, (server.pid, signal.SIGKILL)).start()
        with pytest.raises(ServerDied, match=r"while it was being used \(signal 9 \(SIGKILL\)\)") as caught:
            server.client.complete("one two three " * 40, n_predict=100_000, seed=1, ignore_eos=True)
        assert caught.value.exit_status == -9
        assert caught.value.log_lines


def test_a_server_that_hangs(engine, config, cache):
    with Server(engine, config, timeouts=Timeouts(read_s=0.5)) as server:
        os.kill(server.pid, signal.SIGSTOP)
        try:
            with pytest.raises(ServerFailed, match=r"was silent for 0\.5 s"):
                server.client.complete("one two three", n_predict=20, seed=1)
        finally:
            os.kill(server.pid, signal.SIGCONT)


def test_a_server_that_hangs_is_stopped_all_the_same(engine, config, cache):
    with Server(engine, config, stop_timeout_s=0.2) as server:
        pid = server.pid
        os.kill(pid, signal.SIGSTOP)
    assert registry.started_at(pid) is None


HARNESS = """
import sys, threading, time
from pathlib import Path
from analysis.launch import Server, ServerConfig, resolve_engine

def run():
    with Server(resolve_engine(), ServerConfig(model=Path(sys.argv[1]), context=256)) as server:
        print(server.pid, flush=True)
        time.sleep(60)

if sys.argv[2] == "main":
    run()
else:
    threading.Thread(target=run).start()
"""


def harness(target: Path, where: str) -> tuple[subprocess.Popen, int]:
    """A program that holds a server, and the server's process id."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    program = subprocess.Popen(
        [sys.executable, "-c", HARNESS, str(target), where],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=environment,
    )
    return program, int(program.stdout.readline())


def test_the_doctor_says_what_a_running_server_does_not_tell(engine, config, cache):
    with Server(engine, config) as server:
        report = examine(resolve_engine(server.url, server._key))
        assert report.trusted
        assert report.engine.commit == engine.engine.commit
        topics = {finding.topic: finding for finding in report.findings}
        assert topics["devices"].level == "note"
        assert server.pid not in check_host.other_servers()  # others may run on this machine; ours is none of them
        assert server._key not in str(report.plain())


def test_ctrl_c_stops_the_server(cache, local_target):
    program, pid = harness(local_target, "main")
    program.send_signal(signal.SIGINT)
    program.communicate(timeout=120)
    assert registry.started_at(pid) is None
    assert not list(cache.glob("servers/*.json"))


def test_a_killed_program_leaves_no_server(cache, local_target):
    program, pid = harness(local_target, "main")
    program.kill()
    program.communicate(timeout=120)
    wait_for(lambda: registry.started_at(pid) is None)


def test_a_server_left_behind_is_ended_at_the_next_start(engine, config, cache, local_target):
    """Started by a thread, it is not tied to the program: its note is what finds it."""
    program, orphan = harness(local_target, "thread")
    program.kill()
    program.communicate(timeout=120)
    assert registry.started_at(orphan) is not None
    with Server(engine, config):
        assert registry.started_at(orphan) is None
