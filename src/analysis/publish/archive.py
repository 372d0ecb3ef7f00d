"""A run as one file that Zenodo takes: its records, its card, checksums, metadata, licence.

The same run gives the same bytes everywhere: entries are sorted, stored without compression, and dated by the format's
first day. What comes from somebody else is unpacked only if every entry is one of those that are written here.
"""

import hashlib
import io
import json
import shlex
import shutil
import stat
import zipfile
import zlib
from pathlib import Path
from typing import Any

from analysis.measure.study import open_study
from analysis.publish.card import CardOptions, card_text
from analysis.publish.validate import RUN_FILES, validate_run
from analysis.records import Problem, Run
from analysis.records.model import parse
from analysis.records.places import replaceable, repo_dir
from analysis.records.store import RunDir, find_run

CARD, LICENCE, METADATA, SUMS = "README.md", "LICENSE", ".zenodo.json", "SHA256SUMS"
ENTRIES = frozenset({*RUN_FILES, CARD, LICENCE, METADATA, SUMS})
MOST_UNPACKED = 200_000_000
_FIRST_DAY = (1980, 1, 1, 0, 0, 0)
_FILE_MODE = (stat.S_IFREG | 0o644) << 16


def write_archive(name: str, out: Path, *, creators: tuple[str, ...] = (), force: bool = False) -> Path:
    """Write the archive of a run and return its path.

    A file of that name with the same bytes is left as it is.

    Args:
        name: the run's id or path.
        out: the file to write, or a directory to write `RUN.zip` into.
        creators: who measured it, as `Family, Given`; the book's authors by default.
        force: write over another file of that name.

    Raises:
        Problem: there is no such run, it is not fit to be contributed (see `validate_run`), or another file bears the
            name.
    """
    directory = find_run(name)
    bad = [check for check in validate_run(str(directory.path)) if check.level == "bad"]
    if bad:
        raise Problem(
            f"{directory.run.id} is not fit to be archived: {bad[0].name}: {bad[0].saw}",
            remedy=f"`specbook validate {shlex.quote(str(directory.path))}` lists everything",
        )
    target = replaceable(out / f"{directory.run.id}.zip" if out.is_dir() else out)
    packed = archive_bytes(directory, creators)
    partial = target.with_name(f".{target.name}.partial")
    try:
        if target.exists() and not force and target.read_bytes() != packed:
            raise Problem(
                f"{target} exists and is not this archive", expected="a new name", remedy="name one with -o, or --force"
            )
        partial.write_bytes(packed)
        partial.replace(target)
    except OSError as error:
        partial.unlink(missing_ok=True)
        raise Problem(f"{target} cannot be written: {error.strerror}", remedy="name another file with -o") from None
    return target


def archive_bytes(directory: RunDir, creators: tuple[str, ...] = ()) -> bytes:
    """Return the archive of a run."""
    contents = {name: (directory.path / name).read_bytes() for name in RUN_FILES}
    contents[CARD] = card_text(open_study(str(directory.path)), CardOptions()).encode()
    contents[LICENCE] = (repo_dir() / "LICENSE-text").read_bytes()
    metadata = json.dumps(zenodo_metadata(directory.run, creators), ensure_ascii=False, indent=1, sort_keys=True)
    contents[METADATA] = f"{metadata}\n".encode()
    contents[SUMS] = "".join(f"{_sha256(contents[name])}  {name}\n" for name in sorted(contents)).encode()
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_STORED) as out:
        for name in sorted(contents):
            entry = zipfile.ZipInfo(f"{directory.run.id}/{name}", _FIRST_DAY)
            entry.external_attr, entry.create_system = _FILE_MODE, 3
            out.writestr(entry, contents[name])
    return packed.getvalue()


def zenodo_metadata(run: Run, creators: tuple[str, ...] = ()) -> dict[str, Any]:
    """Return what Zenodo asks of a deposit, as its `.zenodo.json` has it."""
    machine = f"{run.machine.cpu}, {run.machine.cores} cores"
    return {
        "title": f"{run.title} on {machine} (run {run.id})",
        "upload_type": "dataset",
        "description": (
            f"A recorded measurement of speculative decoding with llama.cpp {run.engine.version} "
            f"(commit {run.engine.commit or 'not known'}): every sample with its steps. README.md is its card, "
            "SHA256SUMS its checksums; `specbook unpack` reads the archive."
        ),
        "creators": [{"name": name} for name in creators or ("The authors of Does the Drafter Pay?",)],
        "license": "cc-by-4.0",
        "access_right": "open",
        "publication_date": (run.ended or run.created)[:10],
        "version": run.id,
        "keywords": ["speculative decoding", "llama.cpp", "benchmark"],
    }


def read_archive(path: Path, into: Path) -> RunDir:
    """Unpack an archive into a directory and return the run.

    Nothing is written unless every entry is a plain file of a run, inside one folder named like the run, and has its
    checksum.

    Raises:
        Problem: it is no such archive, a path points elsewhere, it is too large, a checksum is wrong, or the run is
            there already and differs.
    """
    contents = _contents(path)
    _check_sums(path, contents)
    folder = next(iter(contents)).split("/")[0]
    plain = {name.split("/")[1]: data for name, data in contents.items()}
    try:
        run = parse(Run, json.loads(plain["run.json"]), where=f"{path.name}: run.json")
    except (KeyError, ValueError, RecursionError):
        raise Problem(f"{path.name} holds no run", expected="a run.json") from None
    if run.id != folder:
        raise Problem(f"{path.name} holds the run {run.id} in a folder {folder!r}", expected="a folder named like it")
    target = into / run.id
    if target.exists():
        raise Problem(f"{target} is there already", remedy="choose another directory with --into")
    partial = into / f".{run.id}.partial"
    try:
        shutil.rmtree(partial, ignore_errors=True)  # of an unpacking that was killed
        partial.mkdir(parents=True)
        for name in RUN_FILES:
            if name in plain:
                (partial / name).write_bytes(plain[name])
        partial.rename(target)
    except OSError as error:
        shutil.rmtree(partial, ignore_errors=True)
        raise Problem(
            f"{target} cannot be written: {error.strerror}", remedy="name another folder with --into"
        ) from None
    return RunDir.open(target)


def _contents(path: Path) -> dict[str, bytes]:
    try:
        with zipfile.ZipFile(path) as packed:
            entries = packed.infolist()
            total = sum(entry.file_size for entry in entries)
            if total > MOST_UNPACKED:
                raise Problem(f"{path.name} unpacks to {total:,} bytes", expected=f"at most {MOST_UNPACKED:,}")
            for entry in entries:
                _check_entry(path, entry)
            folders = {entry.filename.split("/")[0] for entry in entries}
            if len(folders) != 1 or len({entry.filename for entry in entries}) != len(entries):
                raise Problem(f"{path.name} holds {len(folders)} folders, or a file twice", expected="one run, once")
            return {entry.filename: packed.read(entry) for entry in entries}
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError, zlib.error) as error:
        raise Problem(f"{path.name} is no archive that can be read: {error}", expected="a zip file") from None
    except OSError as error:
        raise Problem(f"{path} cannot be read: {error.strerror}") from None


def _check_entry(path: Path, entry: zipfile.ZipInfo) -> None:
    parts = entry.filename.split("/")
    mode = entry.external_attr >> 16
    inside = len(parts) == 2 and parts[0] not in ("", ".", "..") and parts[1] in ENTRIES and "\\" not in parts[0]
    if not inside or (stat.S_IFMT(mode) not in (0, stat.S_IFREG)):
        raise Problem(
            f"{path.name} holds {entry.filename!r}",
            expected=f"plain files of one run: {', '.join(sorted(ENTRIES))}",
            remedy="nothing was unpacked",
        )


def _check_sums(path: Path, contents: dict[str, bytes]) -> None:
    folder = next(iter(contents)).split("/")[0]
    sums = contents.get(f"{folder}/{SUMS}", b"").decode("ascii", "replace").splitlines()
    stated = {name: digest for digest, _, name in (line.partition("  ") for line in sums)}
    for entry, data in contents.items():
        name = entry.split("/")[1]
        if name != SUMS and stated.get(name) != _sha256(data):
            raise Problem(
                f"{name} in {path.name} is not what {SUMS} says",
                expected="the checksum of its content",
                remedy="fetch the archive again",
            )


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
