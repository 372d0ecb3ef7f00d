"""A run on disk: `run.json`, the journals `samples.jsonl`, `servers.jsonl` and (of a duel) `blocks.jsonl`, and
`steps.parquet`.

A line of a journal is written, flushed and synced before the next sample begins, so a run that is killed loses
at most the sample it was measuring; of several that are measured at once, those that were not yet written.
`steps.parquet` is derived from the journal when the run ends.
"""

import errno
import fcntl
import json
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Self, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

from analysis.records.blocks import Block
from analysis.records.errors import Problem
from analysis.records.model import SCHEMA, Run, Sample, ServerLife, parse, plain
from analysis.records.places import data_dir, local_dir, replaceable

T = TypeVar("T")

STEPS_SCHEMA = pa.schema(
    [
        ("sample", pa.int32()),
        ("index", pa.int32()),
        ("drafted", pa.int16()),
        ("accepted", pa.int16()),
        ("ms", pa.float64()),
    ],
    metadata={"schema": str(SCHEMA)},
)


class RunDir:
    """A run's directory, open for reading; `writing()` opens it for one writer."""

    def __init__(self, path: Path, run: Run) -> None:
        self.path = path
        self.run = run

    @classmethod
    def create(cls, path: Path, run: Run) -> Self:
        """Create the directory of a new run.

        Raises:
            Problem: a run is there already, or the disk is full.
        """
        if (path / "run.json").exists():
            raise Problem(f"{path} already holds a run", expected="a new run directory", remedy="resume or rename it")
        path.mkdir(parents=True, exist_ok=True)
        write_atomically(path / "run.json", _dumps(plain(run), indent=1) + "\n")
        return cls(path, run)

    @classmethod
    def open(cls, path: Path) -> Self:
        """Open a run.

        Raises:
            Problem: there is no run, it is damaged, or its schema is newer than this version reads.
        """
        file = path / "run.json"
        try:
            data = json.loads(file.read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise Problem(
                f"no run.json in {path}",
                expected="a run directory",
                remedy="`specbook runs` lists what is there",
            ) from None
        except (OSError, ValueError, RecursionError) as error:
            raise Problem(
                f"{file} cannot be read: {error}", expected="a run's record", remedy="restore the file from its source"
            ) from None
        return cls(path, parse(Run, data, where=str(file)))

    @property
    def samples_file(self) -> Path:
        """Return the journal of samples."""
        return self.path / "samples.jsonl"

    @property
    def servers_file(self) -> Path:
        """Return the journal of servers' lives."""
        return self.path / "servers.jsonl"

    @property
    def blocks_file(self) -> Path:
        """Return the journal of a duel's blocks."""
        return self.path / "blocks.jsonl"

    def samples(self) -> list[Sample]:
        """Return the recorded samples, in order. A line torn by a kill at the very end is left out."""
        return list(read_lines(self.samples_file, Sample))

    def lives(self) -> list[ServerLife]:
        """Return the recorded lives of servers, in order."""
        return list(read_lines(self.servers_file, ServerLife))

    def blocks(self) -> list[Block]:
        """Return the finished blocks of a duel, in order; a block that was cut off has no record."""
        return list(read_lines(self.blocks_file, Block))

    @contextmanager
    def writing(self) -> Iterator["RunWriter"]:
        """Open the run for one writer at a time.

        Raises:
            Problem: another process is writing this run.
        """
        with one_writer(self.path):
            for journal in (self.samples_file, self.servers_file, self.blocks_file):
                drop_torn_line(journal)
            yield RunWriter(self)


@contextmanager
def one_writer(path: Path) -> Iterator[None]:
    """Keep other processes from writing a run's directory, or a journal, while the block runs.

    Raises:
        Problem: another process is writing it.
    """
    lock = path / ".lock" if path.is_dir() else path.with_name(f".{path.name}.lock")
    with lock.open("w") as held:
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Problem(
                f"another process is writing {path}", expected="one at a time", remedy="wait for it, or end it"
            ) from None
        yield


@contextmanager
def journal_writing(path: Path) -> Iterator[None]:
    """Open a journal that belongs to no run for one writer: its folder is made, what a kill tore is cut off.

    Raises:
        Problem: another process is writing it.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with one_writer(path):
        drop_torn_line(path)
        yield


def set_aside(folder: Path, at: str) -> None:
    """Rename the directory of a run by a moment, so that it is measured anew and the old one kept.

    Raises:
        Problem: another process is writing it: what that one adds next would end up in the new run.
    """
    with one_writer(folder):
        folder.rename(folder.with_name(f"{folder.name}.{at.replace(':', '')}"))


def run_roots() -> tuple[Path, Path]:
    """Return the folders that hold runs: those of this machine, and the published ones."""
    return local_dir() / "runs", data_dir() / "runs"


def list_runs() -> list[RunDir]:
    """Return every run of this machine and every published one."""
    files = (file for root in run_roots() for file in sorted(root.glob("*/run.json")))
    return [RunDir.open(file.parent) for file in files]


def find_run(name: str) -> RunDir:
    """Return a run by its id (runs of this machine first, then published ones) or by its path.

    Raises:
        Problem: there is none, it is damaged or too new.
    """
    for folder in (*(root / name for root in run_roots()), Path(name)):
        if (folder / "run.json").exists():
            return RunDir.open(folder)
    if name and Path(name).is_dir():
        return RunDir.open(Path(name))
    known = [file.parent.name for root in run_roots() for file in sorted(root.glob("*/run.json"))]
    close = get_close_matches(name, known, n=1)
    raise Problem(
        f"no run {name!r}",
        expected="the name of a run, or its directory",
        remedy=f"did you mean {close[0]}?" if close else "`specbook runs` lists them",
    )


class RunWriter:
    """The one writer of a run."""

    def __init__(self, directory: RunDir) -> None:
        self.directory = directory
        self.next_index = 1 + max((sample.index for sample in directory.samples()), default=-1)

    def append(self, sample: Sample) -> Sample:
        """Add a sample to the journal and return it with its index in the run."""
        indexed = replace(sample, index=self.next_index)
        append_line(self.directory.samples_file, indexed)
        self.next_index += 1
        return indexed

    def append_life(self, life: ServerLife) -> None:
        """Add the life of a server to its journal."""
        append_line(self.directory.servers_file, life)

    def append_block(self, block: Block) -> None:
        """Add a finished block of a duel to its journal."""
        append_line(self.directory.blocks_file, block)

    def update(self, **changes: Any) -> Run:
        """Replace fields of `run.json` and return the run."""
        run = replace(self.directory.run, **changes)
        write_atomically(self.directory.path / "run.json", _dumps(plain(run), indent=1) + "\n")
        self.directory.run = run
        return run

    def write_steps(self) -> None:
        """Derive `steps.parquet` from the journal."""
        write_steps(self.directory.path / "steps.parquet", self.directory.samples())


def write_steps(path: Path, samples: Iterable[Sample]) -> None:
    """Write the steps of samples as one parquet table, under its final name only when it is whole."""
    columns: dict[str, list[Any]] = {name: [] for name in STEPS_SCHEMA.names}
    for sample in samples:
        count = len(sample.drafted)
        columns["sample"] += [sample.index] * count
        columns["index"] += range(count)
        columns["drafted"] += sample.drafted
        columns["accepted"] += sample.accepted
        columns["ms"] += sample.step_ms
    partial = path.with_suffix(".partial")
    with _disk_full_said(path):
        pq.write_table(pa.table(columns, schema=STEPS_SCHEMA), partial, compression="zstd")
        partial.replace(path)


def write_atomically(path: Path, text: str) -> None:
    """Write a file so that its final name never holds half of it.

    Raises:
        Problem: the disk is full, or the name is that of a folder or a device; what was there is untouched.
    """
    path = replaceable(path)
    partial = path.with_name(f".{path.name}.partial")
    try:
        with _disk_full_said(path), partial.open("w", encoding="utf-8") as out:
            out.write(text)
            out.flush()
            os.fsync(out.fileno())
        partial.replace(path)
    except (OSError, UnicodeError, Problem):
        partial.unlink(missing_ok=True)
        raise


def append_line(path: Path, item: Any) -> None:
    """Add one record to a journal, flushed and synced.

    Raises:
        Problem: the disk is full; the journal holds what it held before.
    """
    left = memoryview((_dumps(plain(item)) + "\n").encode())
    with path.open("ab", buffering=0) as out:  # a buffer would write its rest at closing, behind the cut
        whole = out.tell()
        try:
            with _disk_full_said(path):
                while left:
                    left = left[out.write(left) :]
                os.fsync(out.fileno())
        except BaseException:
            os.ftruncate(out.fileno(), whole)
            raise


def read_lines(path: Path, kind: type[T]) -> Iterator[T]:
    """Yield the records of a journal; what follows the last newline was never finished and is left out.

    Raises:
        Problem: a line is damaged or holds another record.
    """
    if not path.exists():
        return
    if not path.is_file():
        raise Problem(f"{path} is no regular file", expected="a journal", remedy="restore the file from its source")
    lines = path.read_bytes().split(b"\n")
    for number, line in enumerate(lines[:-1], 1):
        where = f"{path}:{number}"
        try:
            data = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise Problem(
                f"{where} is not JSON: {error}",
                expected="one record a line",
                remedy="restore the file from its source",
            ) from None
        yield parse(kind, data, where=where)


def drop_torn_line(path: Path) -> None:
    """Cut off what follows a journal's last newline: the record that a kill tore."""
    if not path.exists():
        return
    content = path.read_bytes()
    whole = content.rfind(b"\n") + 1
    if whole != len(content):
        os.truncate(path, whole)


@contextmanager
def _disk_full_said(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise Problem(
                f"the disk is full while writing {path}",
                expected="room for the next record",
                remedy="free some space and run again: what was recorded is whole, and the run resumes there",
            ) from None
        raise


def _dumps(data: Any, indent: int | None = None) -> str:
    separators = (",", ":") if indent is None else None
    return json.dumps(data, ensure_ascii=False, indent=indent, separators=separators, allow_nan=False)
