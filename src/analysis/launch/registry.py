"""A note of every server that is running, so that one left behind by a killed run is found and ended.

A note names the server and the program that started it, each by process id and start time: a process id alone
may by now belong to somebody else. Nothing is ended unless it is that very process and its owner is gone.
"""

import contextlib
import json
import os
import signal
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from analysis.records.places import cache_dir

_GRACE_S = 5.0


@dataclass(frozen=True)
class Note:
    """One running server. Start times are clock ticks since boot; `world` names the boot and the process space."""

    pid: int
    started: int
    exe: str
    owner_pid: int
    owner_started: int
    world: str


def folder() -> Path:
    """Return the private folder of notes, keys and logs, and create it."""
    path = cache_dir() / "servers"
    path.mkdir(parents=True, exist_ok=True)
    path.chmod(0o700)
    return path


def world() -> str:
    """Return what must be equal for process ids and start times to be comparable."""
    boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    return f"{boot} {Path('/proc/self/ns/pid').readlink()}"


def started_at(pid: int) -> int | None:
    """Return the start time of a process in clock ticks since boot; None if it is gone or only awaits its parent."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    state, *rest = stat.rpartition(")")[2].split()
    return None if state in ("Z", "X") else int(rest[18])


def write_note(path: Path, pid: int, exe: Path) -> None:
    """Note a server that this process has just started."""
    note = Note(
        pid=pid,
        started=started_at(pid) or 0,
        exe=str(exe),
        owner_pid=os.getpid(),
        owner_started=started_at(os.getpid()) or 0,
        world=world(),
    )
    partial = path.with_suffix(".partial")
    partial.write_text(json.dumps(asdict(note)), encoding="utf-8")
    partial.replace(path)


def program_of(pid: int, otherwise: Path) -> Path:
    """Return the program that a process runs: what was started may have been a script that became another."""
    try:
        return Path(f"/proc/{pid}/exe").readlink()
    except OSError:
        return otherwise


def end_orphans() -> list[int]:
    """End the servers whose owner is gone, remove their notes, and return their process ids."""
    ended = []
    for path, note in _notes():
        if note.world != world():
            if note.world.split()[0] != world().split()[0]:  # from before the last boot
                forget(path)
            continue
        if started_at(note.owner_pid) == note.owner_started:
            continue  # another run of ours, alive
        if _is_it(note):
            _end(note)
            ended.append(note.pid)
        forget(path)
    return ended


def living_servers() -> set[int]:
    """Return the process ids of noted servers whose owner is alive."""
    return {
        note.pid
        for _, note in _notes()
        if note.world == world() and started_at(note.owner_pid) == note.owner_started and _is_it(note)
    }


def forget(path: Path) -> None:
    """Remove a note and the key beside it."""
    path.unlink(missing_ok=True)
    path.with_suffix(".key").unlink(missing_ok=True)


def _notes() -> Iterator[tuple[Path, Note]]:
    for path in sorted(folder().glob("*.json")):
        try:
            yield path, Note(**json.loads(path.read_text(encoding="utf-8")))
        except FileNotFoundError:
            continue  # its owner was quicker
        except (OSError, ValueError, TypeError):
            forget(path)


def _is_it(note: Note) -> bool:
    if started_at(note.pid) != note.started:
        return False
    return str(program_of(note.pid, Path())).removesuffix(" (deleted)") == note.exe


def _end(note: Note) -> None:
    for sign in (signal.SIGTERM, signal.SIGKILL):
        if not _is_it(note):
            return
        with contextlib.suppress(ProcessLookupError):
            os.kill(note.pid, sign)
        deadline = time.monotonic() + _GRACE_S
        while _is_it(note) and time.monotonic() < deadline:
            time.sleep(0.05)
