"""llama.cpp's converter in an environment of its own, at the commit of the bundled engine, and running it.

It needs torch and brings a `gguf` package that would replace the book's; so it lives in the user's cache.
"""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil
from tqdm import tqdm

from analysis.convert import converter_run
from analysis.convert.checkpoint import BESIDE, Plan, is_single
from analysis.convert.files import file_sha256, remove_leftovers, whole_file
from analysis.convert.gguf import GGUFFile, read_gguf
from analysis.convert.safetensors import INDEX
from analysis.records import Problem
from analysis.records.places import cache_dir, data_dir, repo_dir

ENGINE = "llama-cpp-python"
# Of the engine's source: the converter, its libraries, and the chat templates it adds to models without one.
WANTED = ("convert_hf_to_gguf.py", "conversion/", "gguf-py/", "models/templates/", "LICENSE")
OWN_PYTHON = "SPECBOOK_CONVERTER_PYTHON"
INSTALLED = "1.2 GB with torch for the CPU and several times that with its CUDA build, which takes minutes"


@dataclass(frozen=True)
class Converter:
    """A converter that can be run: an interpreter with torch, and the script."""

    python: Path
    script: Path


@dataclass(frozen=True)
class Conversion:
    """A finished conversion: the file, how long it took, and the most memory of its own the converter had."""

    file: GGUFFile
    seconds: float
    peak_memory: int


def find_converter() -> Converter | None:
    """Return the converter if it has been set up, else None."""
    folder = _folder()
    found = Converter(_python(folder), folder / "llama.cpp" / "convert_hf_to_gguf.py")
    return found if (folder / "ready.json").is_file() and found.python.exists() and found.script.is_file() else None


def set_up_converter(*, progress: bool = True) -> Converter:
    """Set up the converter, unless it is there: its source from the engine's own archive, its packages with pip.

    `SPECBOOK_CONVERTER_PYTHON` names an interpreter that has torch and transformers already; then only the source is
    fetched.

    Raises:
        Problem: no network, a wrong hash, a full disk, a package that cannot be installed, or the interpreter that
            `SPECBOOK_CONVERTER_PYTHON` names is not there.
    """
    found = find_converter()
    if found:
        return found
    folder = _folder()
    if not _python(folder).exists() and os.environ.get(OWN_PYTHON):
        raise Problem(f"{OWN_PYTHON} names {_python(folder)}, which is not there", expected="a Python with torch")
    folder.mkdir(parents=True, exist_ok=True)
    steps = [("fetching the converter's source", lambda: _unpack_source(folder))]
    if not os.environ.get(OWN_PYTHON):
        what = f"installing torch and transformers, {INSTALLED}, into {folder}"
        steps.append((what, lambda: _install(folder)))
    for name, step in tqdm(steps, desc="setting up the converter", disable=not progress):
        if progress:
            tqdm.write(name)
        step()
    with whole_file(folder / "ready.json") as unfinished:
        unfinished.write_text(json.dumps({"at": time.time()}), encoding="utf-8")
    ready = find_converter()
    if ready is None:
        raise Problem(f"the converter in {folder} is not whole", remedy=f"remove {folder} and set it up again")
    return ready


def convert(plan: Plan, target: Path, converter: Converter, *, progress: bool = True) -> Conversion:
    """Convert a part of a checkpoint, and return what came of it.

    Tensors go to the disk one at a time, so memory holds the largest and what torch itself takes. A file that is there
    already and whole is not made again; one that was interrupted never gets its name.

    Raises:
        Problem: files are missing, the disk is too small, or the converter fails.
    """
    plan.require_files()
    if target.is_file():
        return Conversion(read_gguf(target), 0.0, 0)
    target.parent.mkdir(parents=True, exist_ok=True)
    _check_room(plan, target.parent)
    with _working_folder(target.parent) as work:
        view = _view(plan, work)
        beside = ("--target-model-dir", str(view)) if "--dspark" in plan.flags else ()
        return run_converter(converter, view, target, (*plan.flags, *beside), tensors=plan.tensors, progress=progress)


def run_converter(
    converter: Converter,
    model: Path,
    target: Path,
    flags: Sequence[str] = (),
    *,
    tensors: int | None = None,
    progress: bool = True,
) -> Conversion:
    """Run the converter over the directory of a model, and return what came of it.

    Args:
        converter: what to run.
        model: configuration, tokenizer and weights as Hugging Face lays them out.
        target: the file to write; it gets its name only when it is whole.
        flags: the converter's own, beside those that name the files.
        tensors: how many there will be, where that is known.
        progress: show them go by.

    Raises:
        Problem: the converter fails, or the disk is full.
    """
    started = time.monotonic()
    target.parent.mkdir(parents=True, exist_ok=True)
    with whole_file(target) as unfinished, _working_folder(target.parent) as work:
        command = [str(converter.python), converter_run.__file__, str(converter.script), str(model)]
        command += ["--outfile", str(unfinished), "--use-temp-file", *flags]
        peak = _run(command, work, tensors, target.name, progress=progress)
        read_gguf(unfinished)
    return Conversion(read_gguf(target), time.monotonic() - started, peak)


def _folder() -> Path:
    """Return where the converter of this engine, with these packages, is set up."""
    version, _ = _source()
    packages = (data_dir() / "converter" / "requirements.txt").read_bytes()
    return cache_dir() / "converter" / f"{version}-{hashlib.sha256(packages).hexdigest()[:12]}"


def _python(folder: Path) -> Path:
    return Path(os.environ.get(OWN_PYTHON) or folder / "venv" / "bin" / "python")


def _source() -> tuple[str, str]:
    """Return version and SHA-256 of the engine's source archive, from the lock."""
    lock = (repo_dir() / "requirements.lock").read_text(encoding="utf-8")
    found = re.search(
        rf"^{ENGINE}==(\S+) \\\n(?:    --config.*\n)*    --hash=sha256:([0-9a-f]{{64}})", lock, re.MULTILINE
    )
    if not found:
        raise Problem(f"requirements.lock does not pin {ENGINE}", expected="one version with one hash")
    return found[1], found[2]


def _unpack_source(folder: Path) -> None:
    """Fetch the engine's source archive, check its hash, and unpack the converter.

    Raises:
        Problem: no network, or another file than the locked one.
    """
    version, digest = _source()
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        arguments = ["download", f"{ENGINE}=={version}", "--no-deps", "--no-binary", ENGINE, "--dest", scratch]
        _pip(Path(sys.executable), arguments, f"{ENGINE} {version}")
        (archive,) = Path(scratch).glob("*.tar.gz")
        found = file_sha256(archive)
        if found != digest:
            raise Problem(f"{archive.name} has SHA-256 {found}", expected=f"{digest} as locked", remedy="try again")
        unpacked = Path(scratch) / "unpacked"
        with tarfile.open(archive) as source:
            for member in source:
                _, _, inner = member.name.partition("/vendor/llama.cpp/")
                if inner.startswith(WANTED):
                    source.extract(member.replace(name=inner), unpacked, filter="data")
        shutil.rmtree(folder / "llama.cpp", ignore_errors=True)
        unpacked.rename(folder / "llama.cpp")


def _install(folder: Path) -> None:
    environment = folder / "venv"
    if not (environment / "bin" / "pip").exists():  # written last: what an interrupt left is made anew
        made = [sys.executable, "-m", "venv", "--clear", str(environment)]
        done = subprocess.run(made, capture_output=True, text=True, errors="replace", check=False)
        if done.returncode:
            lines = (done.stdout + done.stderr).split("\n")
            saw = next((line.strip() for line in lines if line.strip()), "no message")
            raise Problem(f"no environment could be made in {folder}: {saw}", expected="Python's venv with pip")
    packages = data_dir() / "converter" / "requirements.txt"
    _pip(environment / "bin" / "python", ["install", "--requirement", str(packages)], "torch and transformers")


def _pip(python: Path, arguments: list[str], what: str) -> None:
    command = [str(python), "-m", "pip", *arguments, "--quiet", "--disable-pip-version-check", "--no-input"]
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if line.strip()]
        last = next(
            (line for line in reversed(lines) if line.startswith("ERROR")), lines[-1] if lines else "no message"
        )
        raise Problem(f"pip could not bring {what}: {last}", remedy="check network and disk, then run again")


@contextmanager
def _working_folder(beside: Path) -> Iterator[Path]:
    """Give a folder on the target's disk; it is gone afterwards, also after an interrupt.

    What a killed conversion left there goes first: it is as large as the result.
    """
    remove_leftovers(beside, r"\.convert-(\d+)-.*")
    with tempfile.TemporaryDirectory(prefix=f".convert-{os.getpid()}-", dir=beside) as folder:
        yield Path(folder)


def _view(plan: Plan, work: Path) -> Path:
    """Lay a checkpoint of links that holds just the files of the part, with an index to match.

    The converter refuses a checkpoint whose index names files that are not there.
    """
    view = work / plan.checkpoint.path.resolve().name
    view.mkdir()
    for name in (*BESIDE, *plan.files):
        (view / name).symlink_to((plan.checkpoint.path / name).resolve())
    if not is_single(plan.checkpoint):
        kept = {tensor: file for tensor, file in plan.checkpoint.weights.items() if file in plan.files}
        (view / INDEX).write_text(json.dumps({"weight_map": kept}), encoding="utf-8")
    return view


def _check_room(plan: Plan, folder: Path) -> None:
    free = shutil.disk_usage(folder).free
    needed = 2 * (plan.nbytes or 0)
    if needed > free:
        raise Problem(
            f"{folder} has {free} bytes free",
            expected=f"{needed}: the result, and as much while it is made",
            remedy="free some space or name another disk",
        )


def _run(command: list[str], work: Path, tensors: int | None, name: str, *, progress: bool) -> int:
    """Run the converter, show its tensors go by, and return the most private memory it had, in bytes."""
    log = work / "converter.log"
    env = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "NO_LOCAL_GGUF")}
    env |= {"TMPDIR": str(work), "HF_HUB_OFFLINE": "1", "PYTHONUNBUFFERED": "1"}
    peak = 0
    with (
        log.open("wb") as out,
        tqdm(total=tensors, desc=f"converting {name}", unit="tensor", disable=not progress) as shown,
    ):
        process = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT, env=env)
        try:
            while process.poll() is None:
                peak = max(peak, _private_memory(process.pid))
                shown.update(_tensors_in(log) - shown.n)
                time.sleep(0.1)
            shown.update(_tensors_in(log) - shown.n)
        finally:
            process.kill()
            process.wait()
    if process.returncode:
        _explain(process.returncode, log.read_text(errors="replace"))
    return peak


def _tensors_in(log: Path) -> int:
    """Return how many tensors the converter has said it finished."""
    return len(re.findall(rb"^INFO:hf-to-gguf:.*, shape = \{", log.read_bytes(), re.MULTILINE))


def _private_memory(pid: int) -> int:
    """Return the anonymous resident memory of a process; pages of mapped files can be had back and do not count."""
    try:
        memory = psutil.Process(pid).memory_info()
    except psutil.Error:
        return 0
    return int(memory.rss - getattr(memory, "shared", 0))


def _explain(status: int, log: str) -> None:
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    last = lines[-1] if lines else "no message"
    if "No space left on device" in log:
        raise Problem("the disk is full while converting", remedy="free some space and run again: nothing half is left")
    if "BPE pre-tokenizer was not recognized" in log:
        raise Problem("the converter does not know this tokenizer", expected="a released checkpoint's tokenizer files")
    if missing := re.search(r"ModuleNotFoundError: No module named '([\w.]+)'", log):
        raise Problem(
            f"the converter's Python has no {missing[1]}",
            expected="the packages of data/converter/requirements.txt",
            remedy=f"install them there, or unset {OWN_PYTHON}",
        )
    if status < 0:
        raise Problem(f"the converter was killed by signal {-status}", expected="enough memory", remedy="run it again")
    raise Problem(f"the converter failed: {last}", remedy="see whether the checkpoint is whole")
