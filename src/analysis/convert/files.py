"""Files that are whole or not there, and hashes that are taken once."""

import errno
import hashlib
import json
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
from tqdm import tqdm

from analysis.records import Problem
from analysis.records.places import cache_dir, replaceable

CHUNK = 1 << 20
FULL = (errno.ENOSPC, errno.EDQUOT)


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """Give a temporary path to write; it gets its final name only when the block ends without an error.

    What a killed process left of the same file is removed first.

    Raises:
        Problem: the disk is full, or the name is that of a folder or a device; nothing is left of the new file.
    """
    path = replaceable(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    remove_leftovers(path.parent, rf"\.{re.escape(path.name)}\.(\d+)\.partial")
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        with disk_full_said(path):
            yield partial
            partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def remove_leftovers(folder: Path, pattern: str) -> None:
    """Remove the files and folders of processes that are gone; group 1 of the pattern is the process id in the name.

    A number that another process bears by now keeps its leftover until that process ends, too.
    """
    for path in folder.iterdir():
        found = re.fullmatch(pattern, path.name)
        if found is None or psutil.pid_exists(int(found[1])):
            continue
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


@contextmanager
def disk_full_said(path: Path) -> Iterator[None]:
    """Say in one line that the disk is full.

    Raises:
        Problem: an operation in the block failed because there is no room left.
    """
    try:
        yield
    except OSError as error:
        if error.errno in FULL:
            raise Problem(
                f"the disk is full while writing {path}",
                remedy="free some space and run again: nothing half is left",
            ) from None
        raise


def file_sha256(path: Path, *, fresh: bool = False, progress: bool = True) -> str:
    """Return the SHA-256 of a file in hexadecimal, read once and remembered while size and time stay the same.

    Args:
        path: the file.
        fresh: read the file even where its hash is remembered.
        progress: show a bar; it appears only where reading takes longer than two seconds.

    Raises:
        Problem: there is no such file.
    """
    try:
        status = path.stat()
    except OSError as error:
        raise Problem(f"{path} cannot be read: {error.strerror}", expected="a file") from None
    seen = {"path": str(path.resolve()), "size": status.st_size, "mtime_ns": status.st_mtime_ns}
    stamp = cache_dir() / "hashes" / f"{hashlib.sha256(str(seen['path']).encode()).hexdigest()[:32]}.json"
    if not fresh and (known := _read_stamp(stamp, seen)):
        return known
    digest = hashlib.sha256()
    with path.open("rb") as source, bar(status.st_size, f"hashing {path.name}", progress=progress) as shown:
        while chunk := source.read(CHUNK):
            digest.update(chunk)
            shown.update(len(chunk))
    with whole_file(stamp) as partial:
        partial.write_text(json.dumps({**seen, "sha256": digest.hexdigest()}), encoding="utf-8")
    return digest.hexdigest()


def bar(total: int | None, what: str, *, progress: bool = True, delay: float = 2.0) -> "tqdm[None]":
    """Return a progress bar over bytes that appears when the work takes longer than `delay` seconds."""
    return tqdm(
        total=total,
        desc=what,
        unit="B",
        unit_scale=True,
        unit_divisor=1024,
        delay=delay,
        disable=not progress,
    )


def _read_stamp(stamp: Path, seen: dict[str, object]) -> str:
    try:
        data = json.loads(stamp.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return ""
    if not isinstance(data, dict):
        return ""
    same = all(data.get(key) == value for key, value in seen.items())
    return str(data.get("sha256", "")) if same else ""
