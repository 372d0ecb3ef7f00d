"""Write requirements.lock and requirements-build.lock from pyproject.toml (`make lock`).

The engine is the one package built from source. Its line carries the CMake options that make one build
yield `llama-server`, the command-line tools and the Python binding, so that all of them come from one commit.
"""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ENGINE = "llama-cpp-python"
ENGINE_OPTIONS = {
    "LLAMA_BUILD_TOOLS": "ON",
    "LLAMA_BUILD_SERVER": "ON",
    "LLAMA_TOOLS_INSTALL": "ON",
    "LLAMA_OPENSSL": "OFF",
    # tools/mtmd is otherwise added twice and CMake stops
    "LLAVA_BUILD": "OFF",
    # the installed programs find their libraries beside them
    "CMAKE_INSTALL_RPATH": "$ORIGIN/../lib",
}
BUILD_REQUIREMENTS = ("pip", "scikit-build-core>=0.11", "ninja", "pathspec", "hatchling>=1.27", "editables")


def compile_lock(*arguments: str, stdin: str | None = None) -> str:
    """Resolve for every supported Python at once; return the lock's text with hashes and no addresses."""
    command = [
        *(sys.executable, "-m", "uv", "pip", "compile", *arguments),
        *("--universal", "--python-version", "3.11", "--generate-hashes"),
        *("--no-annotate", "--no-header", "--quiet"),
    ]
    return subprocess.run(command, cwd=ROOT, input=stdin, text=True, check=True, capture_output=True).stdout


def with_engine_options(lock: str) -> str:
    """Add the CMake options to the engine's line, the only one that is compiled here."""
    options = "".join(
        f'    --config-settings="cmake.define.{name}={value}" \\\n' for name, value in ENGINE_OPTIONS.items()
    )
    changed, count = re.subn(rf"^({ENGINE}==\S+ \\\n)", lambda m: m[1] + options, lock, flags=re.MULTILINE)
    if count != 1:
        raise SystemExit(f"{ENGINE} stands {count} times in the resolved lock; expected once")
    return changed


def main() -> None:
    """Write both lock files beside pyproject.toml."""
    note = "# Written by `make lock` from pyproject.toml; do not edit.\n"
    lock = with_engine_options(compile_lock("pyproject.toml", "--extra", "test"))
    (ROOT / "requirements.lock").write_text(note + lock)
    build = compile_lock("-", stdin="\n".join(BUILD_REQUIREMENTS))
    (ROOT / "requirements-build.lock").write_text(note + build)


if __name__ == "__main__":
    main()
