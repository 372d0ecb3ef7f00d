"""Create `.venv` with the locked requirements and the engine (`make env`). Standard library only.

It runs before anything is installed, so it says in one line what an empty machine lacks. A stamp with the hash of
both locks and of the engine's options makes a second run return at once.
"""

import hashlib
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LOCKS = ("requirements-build.lock", "requirements.lock")
ENGINE = "llama-cpp-python"
OLDEST = (3, 11)
COMPILERS = ("c++", "g++", "clang++")


def main() -> int:
    """Bring `.venv` up to date with the locks; return the exit status."""
    environment = Path(os.environ.get("SPECBOOK_VENV", ROOT / ".venv"))
    stamp = environment / "specbook.stamp"
    wanted = fingerprint()
    if stamp.exists() and stamp.read_text() == wanted:
        return 0
    complaint = missing_tools()
    if complaint:
        return _stop(complaint)
    started = time.monotonic()
    if not (environment / "bin" / "python").exists():
        venv.create(environment, with_pip=True)
    drop_engine_built_otherwise(environment)
    for note, arguments in install_steps(environment):
        print(f"== {note}", flush=True)
        began = time.monotonic()
        if not run_pip(environment, arguments):
            return _stop(
                f"{note} failed (pip's last lines are above); expected a reachable package index and a working "
                "compiler; check the network, then run `make env` again: finished steps are kept"
            )
        with (environment / "make_env.log").open("a") as log:
            log.write(f"{note}: {time.monotonic() - began:.1f} s\n")
    stamp.write_text(wanted)
    print(f"== environment ready in {time.monotonic() - started:.0f} s; to use its commands:", flush=True)
    print(f"   source {shlex.quote(str(environment / 'bin' / 'activate'))}", flush=True)
    return 0


def fingerprint() -> str:
    """Return a hash over the locks, the engine's options and the running Python."""
    digest = hashlib.sha256()
    for name in LOCKS:
        digest.update((ROOT / name).read_bytes())
    digest.update((ROOT / "tools" / "engine.cmake").read_bytes())
    digest.update(os.environ.get("CMAKE_ARGS", "").encode())
    digest.update(f"{sys.version_info[:2]} {ROOT}".encode())
    return digest.hexdigest()


def missing_tools() -> str:
    """Return one line that names what this machine lacks, or an empty string."""
    if sys.version_info < OLDEST:
        return f"this is Python {sys.version.split()[0]}; expected 3.11 or newer; set PYTHON=python3.12, for example"
    named = os.environ.get("CXX")
    if named and not shutil.which(named.split()[0]):
        return f"CXX names {named}, which is not there; expected a C++ compiler; unset CXX or install it"
    if not named and not any(map(shutil.which, COMPILERS)):
        return f"no C++ compiler ({', '.join(COMPILERS)}) on the PATH; the engine is built from source; install g++"
    for tool, package in (("cmake", "cmake"), ("git", "git")):
        if not shutil.which(tool):
            return f"no {tool} on the PATH; the engine's build needs it; install the package {package}"
    return ""


def install_steps(work: Path) -> list[tuple[str, list[str]]]:
    """Return what pip is to install, in order, after writing the lock's two parts into `work`.

    The build tools come first and build isolation is off, so that what compiles the engine is locked as well.
    The engine comes by itself, and anew where it is there: with CMAKE_ARGS it must not be taken from pip's cache, which
    knows nothing of them, and with other options in tools/engine.cmake not from the environment.
    """
    engine, others = split_lock((ROOT / "requirements.lock").read_text())
    (work / "engine.txt").write_text(engine)
    (work / "others.txt").write_text(others)
    locked = ["--require-hashes", "--no-deps"]
    fresh = ["--force-reinstall", *(["--no-cache-dir"] if os.environ.get("CMAKE_ARGS") else [])]
    return [
        ("build tools", [*locked, "-r", "requirements-build.lock"]),
        ("requirements", [*locked, "--only-binary", ":all:", "-r", str(work / "others.txt")]),
        (
            "the engine, which compiles for several minutes unless pip has kept it from before",
            [*locked, *fresh, "--no-build-isolation", "-r", str(work / "engine.txt")],
        ),
        ("this library", ["--no-deps", "--no-build-isolation", "--editable", "."]),
    ]


def drop_engine_built_otherwise(environment: Path) -> bool:
    """Take the engine out of pip's cache if it may have been built with another tools/engine.cmake; say whether it was.

    pip finds what it has built by the source alone. A mark beside its cache says which options the engine in it had.
    """
    pip = [str(environment / "bin" / "python"), "-m", "pip", "cache"]
    found = subprocess.run([*pip, "dir"], capture_output=True, text=True, check=False)
    if found.returncode or not found.stdout.strip():
        return False  # without a cache there is nothing in it
    mark = Path(found.stdout.strip()) / "specbook-engine"
    wanted = hashlib.sha256((ROOT / "tools" / "engine.cmake").read_bytes()).hexdigest()
    if mark.is_file() and mark.read_text() == wanted:
        return False
    subprocess.run([*pip, "remove", ENGINE.replace("-", "_")], capture_output=True, check=False)
    mark.parent.mkdir(parents=True, exist_ok=True)
    mark.write_text(wanted)
    return True


def split_lock(lock: str) -> tuple[str, str]:
    """Return the engine's entry of the lock, and all the others."""
    entries = re.split(r"(?m)^(?=\S)", lock)
    engine = [entry for entry in entries if entry.startswith(f"{ENGINE}==")]
    others = [entry for entry in entries if not entry.startswith((f"{ENGINE}==", "#"))]
    return "".join(engine), "".join(others)


def run_pip(environment: Path, arguments: list[str]) -> bool:
    """Run pip in the environment; on failure show the end of its log."""
    log = environment / "pip.log"
    command = [str(environment / "bin" / "python"), "-m", "pip", "install", "--progress-bar=off", *arguments]
    with log.open("a") as out:
        started = time.monotonic()
        process = subprocess.Popen(command, cwd=ROOT, stdout=out, stderr=subprocess.STDOUT, env=_build_environment())
        while True:
            try:
                status = process.wait(timeout=30)
                break
            except subprocess.TimeoutExpired:
                print(f"   ... {time.monotonic() - started:.0f} s (log: {log})", flush=True)
            except KeyboardInterrupt:
                process.terminate()
                process.wait()
                raise
    if status:
        print("".join(log.read_text(errors="replace").splitlines(keepends=True)[-25:]), file=sys.stderr)
    return status == 0


def _build_environment() -> dict[str, str]:
    jobs = str(os.cpu_count() or 1)
    include = shlex.quote(f"-DCMAKE_PROJECT_INCLUDE={ROOT / 'tools' / 'engine.cmake'}")
    options = f"{include} {os.environ.get('CMAKE_ARGS', '')}".strip()
    return {"CMAKE_BUILD_PARALLEL_LEVEL": jobs, **os.environ, "CMAKE_ARGS": options}


def _stop(message: str) -> int:
    print(f"make env: {message}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        print("make env: interrupted; finished steps are kept", file=sys.stderr)
        sys.exit(130)
