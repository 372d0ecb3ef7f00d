"""An orphaned server is found and ended; nothing else ever is."""

import json
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from analysis.launch import registry

GONE = 2**22 + 1  # above the highest process id of Linux


@pytest.fixture
def process():
    """A process that stands for a server."""
    child = subprocess.Popen(["/bin/sleep", "60"])
    while registry.program_of(child.pid, Path()).name not in ("sleep", "coreutils", "busybox"):
        time.sleep(0.01)
    yield child
    child.kill()
    child.wait()


@pytest.fixture
def note(cache, process):
    """Where the note of that process lies, and what it says: its owner is gone."""
    path = registry.folder() / "one.json"
    registry.write_note(path, process.pid, registry.program_of(process.pid, Path()))
    said = replace(registry.Note(**json.loads(path.read_text())), owner_pid=GONE)

    def write(**changes) -> Path:
        path.write_text(json.dumps(vars(replace(said, **changes))))
        return path

    write()
    return write


def test_an_orphan_is_ended_and_its_note_removed(note, process):
    path = note()
    assert registry.end_orphans() == [process.pid]
    assert process.wait(5) == -15
    assert not path.exists()


def test_a_server_whose_owner_lives_is_left_alone(note, process):
    import os

    path = note(owner_pid=os.getpid(), owner_started=registry.started_at(os.getpid()))
    assert registry.end_orphans() == []
    assert process.poll() is None
    assert path.exists()


@pytest.mark.parametrize("field", ["started", "exe"])
def test_a_process_that_took_over_the_id_is_left_alone(note, process, field):
    path = note(**{field: {"started": 1, "exe": "/usr/bin/other"}[field]})
    assert registry.end_orphans() == []
    assert process.poll() is None
    assert not path.exists()


def test_a_note_of_another_process_space_is_left_alone(note, process):
    path = note(world=f"{registry.world().split()[0]} pid:[1]")
    assert registry.end_orphans() == []
    assert process.poll() is None
    assert path.exists()


def test_a_note_from_before_the_last_boot_is_removed(note, process):
    path = note(world="another-boot pid:[1]")
    assert registry.end_orphans() == []
    assert process.poll() is None
    assert not path.exists()


@pytest.mark.parametrize("content", ["", "{", "[]", '{"pid": 1}', "\x00"])
def test_a_damaged_note_is_removed(cache, content):
    path = registry.folder() / "torn.json"
    path.write_text(content)
    assert registry.end_orphans() == []
    assert not path.exists()


def test_a_process_that_only_awaits_its_parent_counts_as_gone():
    child = subprocess.Popen([sys.executable, "-c", ""])
    while registry.started_at(child.pid) is not None:
        time.sleep(0.01)
    child.wait()
    assert registry.started_at(GONE) is None


def test_notes_and_keys_lie_in_a_private_folder(cache):
    assert registry.folder().stat().st_mode & 0o777 == 0o700
