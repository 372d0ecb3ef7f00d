"""Which llama-server measures: the user's running one, the user's build, or the bundled one; and what it is."""

import os
import re
import subprocess
import sysconfig
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Literal

from analysis.launch.attached import describe
from analysis.launch.client import Client
from analysis.records import Engine, Problem
from analysis.records.places import portable

SERVER_VARIABLE = "LLAMA_SERVER"
BuiltBy = Literal["bundled", "path"]
_ASK_TIMEOUT_S = 60  # a GPU build may initialise its devices before it answers --version

# 0.5.0-dev (build 1, commit 0c1e570), and the older form 6500 (0c1e570a).
_VERSION = re.compile(r"^version: (?P<version>\S+) \(build (?P<build>\d+), commit (?P<commit>[0-9a-z]+)\)", re.M)
_VERSION_OLD = re.compile(r"^version: (?P<build>\d+) \((?P<commit>[0-9a-z]+)\)", re.M)
# b1-0c1e570 in /props, also with a version in front: 0.5.0-dev-b1-0c1e570.
_BUILD_INFO = re.compile(r"^(?:(?P<version>.+)-)?b(?P<build>\d+)-(?P<commit>[0-9a-z]+)$")
_DEVICE = re.compile(r"^ {2}(?P<name>[A-Za-z]+\d*): (?P<title>.+?)(?: \(\d+ MiB, \d+ MiB free\))?$", re.M)
_COLUMNS = re.compile(r"(?<![, ]) {2,}")  # "-t,    --threads N            description"
_OPTION = re.compile(r"(?<![\w-])-{1,2}[A-Za-z][\w-]*")


@dataclass(frozen=True)
class FoundEngine:
    """A llama-server to measure with: a binary to start (`server`) or a running one to talk to (`url`)."""

    engine: Engine
    server: Path | None
    url: str | None
    api_key: str = field(default="", repr=False)
    options: frozenset[str] = field(default=frozenset(), repr=False)


def resolve_engine(server_url: str | None = None, api_key: str = "") -> FoundEngine:
    """Find the llama-server to measure with.

    The order is: `server_url`, a server that somebody runs; the environment variable `LLAMA_SERVER`, the path of
    a binary; the one that was built into the running environment.

    Args:
        server_url: address of a running server.
        api_key: the key of that server.

    Raises:
        Problem: what was named is no llama-server, cannot be run or reached; or there is none at all.
    """
    if server_url:
        return _running(server_url, api_key)
    named = os.environ.get(SERVER_VARIABLE)
    if named:
        return _binary(Path(named).expanduser(), "path", f"{SERVER_VARIABLE} names {named}")
    bundled = Path(sysconfig.get_path("platlib")) / "bin" / "llama-server"
    if not bundled.exists():
        raise Problem(
            f"no llama-server: nothing at {bundled}",
            expected="the one that `make book` builds",
            remedy=f"run `make book`, or set {SERVER_VARIABLE} to the path of your own build",
        )
    return _binary(bundled, "bundled", str(bundled))


def engine_at(path: Path) -> FoundEngine:
    """Return the llama-server at a path, as `LLAMA_SERVER` would name it.

    Raises:
        Problem: it is no llama-server, or cannot be run.
    """
    return _binary(path, "path", str(path))


def read_key(path: Path) -> str:
    """Return the key that a file holds.

    Raises:
        Problem: it cannot be read, or holds what no header of a request can.
    """
    try:
        key = path.read_text(encoding="utf-8").strip()
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no text"
        raise Problem(f"the key file {path} cannot be read: {reason}") from None
    if not (key.isascii() and key.isprintable()):
        raise Problem(f"the key file {path} holds more than a key", expected="one line of printable ASCII characters")
    return key


def tool(found: FoundEngine, name: str) -> Path:
    """Return another program of the same build, for example `llama-quantize`.

    Raises:
        Problem: the engine is a running server, or the program does not lie beside it.
    """
    if found.server is None:
        raise Problem(f"{name} of a server that somebody else runs is out of reach", expected="a local build")
    path = found.server.with_name(name)
    if not os.access(path, os.X_OK) or path.is_dir():
        raise Problem(
            f"no {name} beside {found.server}",
            expected="the tools of the same build in the same folder",
            remedy=f"build llama.cpp with its tools, or unset {SERVER_VARIABLE} to use the bundled build",
        )
    return path


def ask(program: Path, *arguments: str) -> str:
    """Run a program of the engine and return what it printed, on both channels.

    Raises:
        Problem: it cannot be run, does not end in time, or fails.
    """
    try:
        done = subprocess.run(
            [str(program), *arguments],
            capture_output=True,
            timeout=_ASK_TIMEOUT_S,
            check=False,
            stdin=subprocess.DEVNULL,
            env=engine_environment(),
        )
    except subprocess.TimeoutExpired:
        raise Problem(f"{program} {' '.join(arguments)} did not end within {_ASK_TIMEOUT_S} s") from None
    except OSError as error:
        raise Problem(f"{program} cannot be run: {error.strerror}", expected="a llama-server binary") from None
    printed = (done.stdout + b"\n" + done.stderr).decode(errors="replace")
    if done.returncode:
        last = [line for line in printed.splitlines() if line.strip()][-1:] or ["it printed nothing"]
        raise Problem(f"{program} {' '.join(arguments)} failed with exit status {done.returncode}: {last[0]}")
    return printed


def engine_environment() -> dict[str, str]:
    """Return the environment for the engine: this one, less the variables that would change its settings unseen."""
    hidden = re.compile(r"^(LLAMA_ARG_|LLAMA_API_KEY$|LLAMA_LOG_|LLAMA_SERVER_|HF_TOKEN$)")
    return {name: value for name, value in os.environ.items() if not hidden.match(name)}


def parse_version(printed: str) -> tuple[str, int, str] | None:
    """Return (version, build number, commit) from what `--version` printed; None if that is not llama.cpp's form."""
    match = _VERSION.search(printed)
    if match:
        return match["version"], int(match["build"]), match["commit"]
    match = _VERSION_OLD.search(printed)
    return (f"b{match['build']}", int(match["build"]), match["commit"]) if match else None


def parse_devices(printed: str) -> tuple[tuple[str, str], ...]:
    """Return (name, title) of every device that `--list-devices` printed, such as ("ROCm0", "AMD Radeon 8060S")."""
    after = printed.partition("Available devices:")[2]
    return tuple((match["name"], match["title"].strip()) for match in _DEVICE.finditer(after))


def backend_of(devices: tuple[tuple[str, str], ...]) -> str:
    """Return the backend of the devices, such as `ROCm`; `CPU` without devices, `CUDA+Vulkan` for several."""
    names = {name.rstrip("0123456789") for name, _ in devices}
    return "+".join(sorted(names)) or "CPU"


def parse_options(printed: str) -> frozenset[str]:
    """Return the options that `--help` lists, in all their spellings.

    Only the head of an entry counts: descriptions mention options of other builds.
    """
    heads = (_COLUMNS.split(line, maxsplit=1)[0] for line in printed.splitlines() if line.startswith("-"))
    return frozenset(option for head in heads for option in _OPTION.findall(head))


def _binary(path: Path, source: BuiltBy, said: str) -> FoundEngine:
    if not path.exists():
        raise Problem(f"{said}, which does not exist", expected="the path of a llama-server binary")
    if not path.is_file() or not os.access(path, os.X_OK):
        raise Problem(f"{said}, which is not an executable file", expected="the path of a llama-server binary")
    resolved = path.resolve()
    engine, options = _inspect(resolved, source, resolved.stat().st_mtime_ns)
    return FoundEngine(engine=engine, server=resolved, url=None, options=options)


@lru_cache(maxsize=8)
def _inspect(path: Path, source: BuiltBy, _changed: int) -> tuple[Engine, frozenset[str]]:
    parsed = parse_version(ask(path, "--version"))
    options = parse_options(ask(path, "--help")) if parsed else frozenset()
    if parsed is None or "--api-key-file" not in options:
        raise Problem(
            f"{path} is {'another program of llama.cpp' if parsed else 'no program of llama.cpp'}",
            expected="a llama-server binary",
            remedy=f"set {SERVER_VARIABLE} to one, or unset it to use the bundled build",
        )
    version, build, commit = parsed
    devices = parse_devices(ask(path, "--list-devices"))
    engine = Engine(
        source=source,
        version=version,
        build=build,
        commit=commit,
        backend=backend_of(devices),
        devices=tuple(f"{name}: {title}" for name, title in devices),
        path=portable(path),
    )
    return engine, options


def _running(url: str, api_key: str) -> FoundEngine:
    with Client(url, api_key) as client:
        info = describe(client).build
    match = _BUILD_INFO.match(info)
    build = int(match["build"]) if match else None
    version = (match["version"] or f"b{build}") if match else (info or "unknown")
    engine = Engine(
        source="url",
        version=version,
        build=build,
        commit=match["commit"] if match else "",
        backend="unknown",
        path="$URL",
    )
    return FoundEngine(engine=engine, server=None, url=url.rstrip("/"), api_key=api_key)
