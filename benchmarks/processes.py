"""Run a command and watch its time and the memory of everything it starts."""

import subprocess
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

PERIOD_S = 0.2


@dataclass(frozen=True)
class Outcome:
    """What a command took: seconds of wall clock, and the highest resident memory of its process tree in bytes.

    Memory that processes share is counted once a process, so the figure is an upper bound.
    """

    seconds: float
    peak: int


def watched(command: Sequence[str], *, cwd: Path, env: dict[str, str]) -> Outcome:
    """Run a command to its end and return what it took.

    Raises:
        SystemExit: it failed; its output is shown.
    """
    started = time.monotonic()
    process = subprocess.Popen(command, cwd=cwd, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    peak = [0]
    watcher = threading.Thread(target=_watch, args=(process.pid, peak), daemon=True)
    watcher.start()
    output, _ = process.communicate()
    seconds = time.monotonic() - started
    watcher.join()
    if process.returncode:
        raise SystemExit(f"{' '.join(command)} exited with {process.returncode}:\n{output[-4000:]}")
    return Outcome(seconds, peak[0])


def _watch(pid: int, peak: list[int]) -> None:
    try:
        root = psutil.Process(pid)
        while root.is_running() and root.status() != psutil.STATUS_ZOMBIE:
            peak[0] = max(peak[0], _resident(root))
            time.sleep(PERIOD_S)
    except psutil.NoSuchProcess:
        return


def _resident(root: psutil.Process) -> int:
    total = 0
    for process in [root, *root.children(recursive=True)]:
        try:
            total += process.memory_info().rss
        except psutil.NoSuchProcess:
            continue
    return total
