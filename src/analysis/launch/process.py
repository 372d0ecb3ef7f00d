"""The process of a llama-server: started in a group of its own, tied to this program's life, ended for certain."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

from analysis.launch.engine import engine_environment
from analysis.records import Problem

# Run between this program and the server: asks Linux to kill the process when its parent dies, then becomes the
# server. (`preexec_fn` would do it between fork and exec, which is not safe in a program with threads.)
_TIED = """
import ctypes, os, signal, sys
ctypes.CDLL(None).prctl(1, int(signal.SIGKILL))
if os.getppid() == int(sys.argv[1]):
    os.execv(sys.argv[2], sys.argv[2:])
"""


def spawn(argv: Sequence[str], log: Path) -> subprocess.Popen[bytes]:
    """Start a server in a process group of its own, with both channels written to `log`.

    The group keeps a Ctrl-C at the terminal away from it: this program stops it in its own time. Linux ties a
    process to the *thread* that started it, so a server started by a thread that may end before the program is
    not tied; if the program is then killed, the next start finds the server by its note.

    Raises:
        Problem: the binary cannot be run.
    """
    tie = [sys.executable, "-I", "-S", "-c", _TIED, str(os.getpid())]
    tied = threading.current_thread() is threading.main_thread()
    try:
        with log.open("wb") as out:
            return subprocess.Popen(
                [*tie, *argv] if tied else list(argv),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                env=engine_environment(),
                start_new_session=True,
            )
    except OSError as error:
        raise Problem(f"{argv[0]} cannot be run: {error.strerror}", expected="a llama-server binary") from None


def end(process: subprocess.Popen[bytes], patience_s: float) -> int:
    """End a server and what it started: ask first, kill after `patience_s` or when interrupted meanwhile.

    Returns:
        its exit status, negative for a signal.
    """
    try:
        _signal(process, signal.SIGTERM)
        return process.wait(patience_s)
    except subprocess.TimeoutExpired:
        pass
    finally:
        if process.poll() is None:
            _signal(process, signal.SIGKILL)
            process.wait()
    return process.wait()


def free_port() -> int:
    """Return a port on the loopback address that was free a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def check_port(port: int) -> None:
    """Refuse a port that is taken.

    Raises:
        Problem: another program listens there, or the port may not be used.
    """
    try:
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as the server does
            probe.bind(("127.0.0.1", port))
    except (OSError, OverflowError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise Problem(
            f"port {port} cannot be used: {reason}", expected="a free port", remedy="name another, or none"
        ) from None


def resident_memory(pid: int) -> tuple[int | None, int | None]:
    """Return the resident memory of a process now and at its highest, in bytes; None where it is gone."""
    found: dict[str, int] = {}
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text(encoding="utf-8", errors="replace").splitlines():
            name, _, value = line.partition(":")
            if name in ("VmRSS", "VmHWM"):
                found[name] = int(value.split()[0]) * 1024
    return found.get("VmRSS"), found.get("VmHWM")


def describe_exit(status: int) -> str:
    """Return an exit status in words."""
    if status >= 0:
        return f"exit status {status}"
    try:
        return f"signal {-status} ({signal.Signals(-status).name})"
    except ValueError:
        return f"signal {-status}"


def _signal(process: subprocess.Popen[bytes], sign: signal.Signals) -> None:
    if process.poll() is None:  # not reaped, so its id and its group's are still its own
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, sign)
