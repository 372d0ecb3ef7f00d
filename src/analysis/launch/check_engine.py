"""What about a llama-server would make a measurement with it untrustworthy."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

from analysis.launch.client import Client
from analysis.launch.engine import FoundEngine
from analysis.launch.errors import ServerFailed
from analysis.launch.finding import Finding
from analysis.records.builds import FIRST_SOUND, counts_soundly

# Came to upstream after that pull request, so a build that lists it has both.
NEWER_OPTION = "--spec-synth-rates"
NEEDED_OPTIONS = ("--spec-type", "--metrics", "--slots", "--api-key-file", "--flash-attn")

_FAST = re.compile(rb"(?<![\w-])-ffast-math(?![\w-])")
_SLOW = re.compile(rb"(?<![\w-])-fno-fast-math(?![\w-])")
_SELF_CHECK = (
    "run this build's `test-backend-ops test -o ARGSORT` and `-o TOP_K`: every size above 1024 must pass; "
    "if not, compile argsort.cu and top-k.cu with -fno-fast-math"
)
_SORT_MATTERS = (
    "with -ffast-math the radix sort was miscompiled on gfx1151: top-k above 1024 columns picks wrong "
    "tokens, and text and acceptance are no longer the model's"
)


def examine_engine(found: FoundEngine) -> Iterator[Finding]:
    """Yield what was found about the engine."""
    yield _identity(found)
    yield _devices(found)
    yield from _options(found)
    yield from _in_use(found)
    yield _counter_faults(found)
    yield from _fast_math(found)


def _identity(found: FoundEngine) -> Finding:
    engine = found.engine
    where = {"bundled": "the bundled build", "path": f"your build {engine.path}", "url": "a running server"}
    build = f" (build {engine.build}, commit {engine.commit})" if engine.build is not None else ""
    seen = f"llama-server {engine.version}{build}, {where[engine.source]}"
    if engine.commit:
        return Finding("ok", "engine", seen)
    return Finding(
        "warning",
        "engine",
        f"{seen}; it does not say its commit",
        matters="numbers of unknown builds cannot be compared or repeated",
        remedy="measure with a build that knows its commit",
    )


def _devices(found: FoundEngine) -> Finding:
    engine = found.engine
    if engine.source == "url":
        return Finding(
            "note",
            "devices",
            "a running server does not say its backend and devices",
            matters="what is found below is about this machine, which may not be the server's",
            remedy="run `specbook doctor` there, with LLAMA_SERVER set to that build",
        )
    seen = f"{engine.backend}: {', '.join(engine.devices)}" if engine.devices else f"{engine.backend}, no device"
    return Finding("ok", "devices", seen)


def _options(found: FoundEngine) -> Iterator[Finding]:
    missing = [option for option in NEEDED_OPTIONS if option not in found.options]
    if found.server is not None and missing:
        yield Finding(
            "bad",
            "options",
            f"this build does not know {', '.join(missing)}",
            matters="it cannot be started or measured as the book does it",
            remedy="update it, or unset LLAMA_SERVER to use the bundled build",
        )


def _in_use(found: FoundEngine) -> Iterator[Finding]:
    """Ask a running server whether somebody else uses it, and whether its counters can be read."""
    if found.url is None:
        return
    with Client(found.url, found.api_key) as client:
        try:
            busy = sum(bool(slot.get("is_processing")) for slot in client.slots())
            counters = client.metrics()
        except ServerFailed as failure:
            yield Finding("note", "use", str(failure), matters="whether others use that server cannot be told")
            return
    if busy:
        yield Finding(
            "warning",
            "use",
            f"{busy} slots of that server are at work",
            matters="requests of others share its evaluations: steps take longer and drafts are verified together",
            remedy="measure when nobody else uses it",
        )
    if counters is None:
        yield Finding(
            "note",
            "use",
            "that server offers no /metrics",
            matters="the counts from its stream cannot be held against its own",
            remedy="start it with --metrics",
        )


def _counter_faults(found: FoundEngine) -> Finding:
    """Decide from what a build says of itself whether it has the counter faults of pull requests 26320 and 25682."""
    engine = found.engine
    verdict = counts_soundly(engine)
    if verdict == "sound":
        return Finding("ok", "counters", f"commit {engine.commit or engine.build} counts accepted tokens rightly")
    if verdict == "unknown" and NEWER_OPTION in found.options:
        return Finding("ok", "counters", f"newer than pull request 26320: it knows {NEWER_OPTION}")
    matters = (
        "a target that cannot roll back (recurrent, sliding-window) restores a checkpoint, and a build without "
        "that request counts one accepted token too many each time; its stream does not show it"
    )
    if verdict == "faulty":
        return Finding(
            "bad",
            "counters",
            f"build {engine.build} is older than pull request 26320 (b{FIRST_SOUND})",
            matters=matters,
            remedy="update the build; do not publish acceptance from this one",
        )
    return Finding(
        "warning",
        "counters",
        "this build does not say whether it has pull request 26320",
        matters=matters,
        remedy=f"look for the commit 000547513 in its history, or use upstream b{FIRST_SOUND} or newer",
    )


def _fast_math(found: FoundEngine) -> Iterator[Finding]:
    if found.engine.source == "url":
        yield Finding(
            "note",
            "fast-math",
            "whether that server is a ROCm build compiled with -ffast-math cannot be told from here",
            matters=_SORT_MATTERS,
            remedy=f"if it is a ROCm build, {_SELF_CHECK}",
        )
        return
    libraries = hip_libraries(found.server) if found.server else []
    if "ROCm" not in found.engine.backend and not libraries:
        yield Finding("ok", "fast-math", "no ROCm in this build: the miscompiled sort cannot act")
        return
    verdict, evidence = compiled_with_fast_math(found.server, libraries) if found.server else (None, "")
    if verdict:
        yield Finding(
            "bad",
            "fast-math",
            f"ROCm compiled with -ffast-math ({evidence})",
            matters=_SORT_MATTERS,
            remedy=_SELF_CHECK,
        )
    elif verdict is False:
        yield Finding("ok", "fast-math", f"ROCm compiled without -ffast-math ({evidence})")
    else:
        yield Finding(
            "warning",
            "fast-math",
            "whether this ROCm build was compiled with -ffast-math cannot be told: it kept no record of its flags",
            matters=_SORT_MATTERS,
            remedy=_SELF_CHECK,
        )


def hip_libraries(server: Path) -> list[Path]:
    """Return the ROCm backends that lie beside a server or in the `lib` folder next to it."""
    places = (server.parent, server.parent.parent / "lib", server.parent.parent / "lib64")
    return sorted({path.resolve() for place in places for path in place.glob("libggml-hip*.so*")})


def compiled_with_fast_math(server: Path, libraries: list[Path]) -> tuple[bool | None, str]:
    """Return whether the ROCm backend was compiled with `-ffast-math`, and what that was read from.

    A build folder tells both ways: the commands of the sort's own files decide. A library tells only if its
    compiler recorded its command line; that it does not hold the flag proves nothing. None: it cannot be told.
    """
    for folder in list(server.parents)[:3]:
        for read in (_from_commands, _from_flags_files):
            verdict = read(folder)
            if verdict is not None:
                return verdict
    for path in [*libraries, server]:
        content = path.read_bytes()
        if _is_fast(content):
            return True, f"recorded in {path.name}"
    return None, ""


def _from_commands(folder: Path) -> tuple[bool, str] | None:
    path = folder / "compile_commands.json"
    try:
        entries = json.loads(path.read_text(encoding="utf-8", errors="replace"))
        commands = [
            str(entry.get("command") or " ".join(entry.get("arguments", ())))
            for entry in entries
            if re.search(r"(argsort|top-k)\.cu$", str(entry["file"]))
        ]
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
    if not any("hip" in command.lower() for command in commands):
        return None
    return any(_is_fast(command.encode()) for command in commands), path.name


def _from_flags_files(folder: Path) -> tuple[bool, str] | None:
    flags = folder / "ggml" / "src" / "ggml-hip" / "CMakeFiles" / "ggml-hip.dir" / "flags.make"
    cache = folder / "CMakeCache.txt"
    if flags.is_file():
        return _is_fast(flags.read_bytes()), flags.name
    if cache.is_file():
        lines = [line for line in cache.read_bytes().splitlines() if re.match(rb"CMAKE_(HIP|CXX)_FLAGS", line)]
        if any(_is_fast(line) for line in lines):
            return True, cache.name  # without it the project's own files may still have set it
    return None


def _is_fast(content: bytes) -> bool:
    """Return whether `-ffast-math` is in force: the last of the two flags counts."""
    fast = [match.start() for match in _FAST.finditer(content)]
    slow = [match.start() for match in _SLOW.finditer(content)]
    return bool(fast) and max(fast) > max(slow, default=-1)
