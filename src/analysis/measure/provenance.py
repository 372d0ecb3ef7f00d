"""Where a run's numbers come from: packages, commit, files. Nothing in it names a user, a host or an address."""

import re
import subprocess
import sys
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from analysis.convert.files import file_sha256
from analysis.records import FileHash
from analysis.records.places import portable, redact_word, repo_dir

_KEY_OPTION = re.compile(r"--[a-z-]*key(-file)?")
PACKAGES = ("llama-cpp-python", "numpy", "scipy", "pandas", "httpx", "papermill", "jupyter-book", "specbook")


def package_versions() -> dict[str, str]:
    """Return the versions of the packages that take part in a measurement."""
    found = {"python": ".".join(map(str, sys.version_info[:3]))}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def commit() -> tuple[str, bool]:
    """Return the checkout's commit and whether tracked files differ from it; ("", False) outside git."""
    try:
        head = _git("rev-parse", "HEAD")
        return head, bool(_git("status", "--porcelain", "--untracked-files=no"))
    except (OSError, subprocess.CalledProcessError):
        return "", False


def command_line() -> tuple[str, ...]:
    """Return how this process was called, without addresses, keys and machine paths."""
    words = (Path(sys.argv[0]).name, *sys.argv[1:])
    before = ("", *words)
    return tuple(
        "$KEY" if _KEY_OPTION.fullmatch(option) else redact_word(word)
        for option, word in zip(before, words, strict=False)
    )


def file_hashes(paths: Sequence[Path]) -> tuple[FileHash, ...]:
    """Return path, SHA-256 and size of each file.

    Raises:
        Problem: one of them cannot be read.
    """
    return tuple(FileHash(path=portable(path), sha256=file_sha256(path), size=path.stat().st_size) for path in paths)


def _git(*arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=repo_dir(), capture_output=True, text=True, check=True, timeout=30)
    return done.stdout.strip()
