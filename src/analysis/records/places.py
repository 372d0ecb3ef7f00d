"""Where things lie: the checkout, its data, the user's cache, and what is written on this machine only.

Recorded paths are relative to `$REPO` and `$CACHE`, so that a run can be read on another machine and says
nothing of the one it was made on.
"""

import getpass
import os
import re
import socket
from pathlib import Path

from platformdirs import user_cache_path

from analysis.records.errors import Problem


def repo_dir() -> Path:
    """Return the checkout that holds this library's `data/`.

    Raises:
        Problem: the library was installed away from its checkout and `SPECBOOK_DATA` is not set.
    """
    here = Path(__file__).resolve().parents[3]
    if (here / "pyproject.toml").is_file() and (here / "data").is_dir():
        return here
    named = os.environ.get("SPECBOOK_DATA")
    if named:
        return Path(named).resolve().parent
    raise Problem(
        f"no data/ folder beside {here}",
        expected="a checkout of the book",
        remedy="run from a checkout (pip install -e .) or set SPECBOOK_DATA to its data folder",
    )


def data_dir() -> Path:
    """Return `data/`: `$SPECBOOK_DATA`, else the one of the checkout."""
    named = os.environ.get("SPECBOOK_DATA")
    return Path(named).resolve() if named else repo_dir() / "data"


def local_dir() -> Path:
    """Return the ignored folder for what this machine produces: `$SPECBOOK_LOCAL`, else `local/` of the checkout."""
    named = os.environ.get("SPECBOOK_LOCAL")
    return Path(named).resolve() if named else repo_dir() / "local"


def cache_dir() -> Path:
    """Return the user's cache for model files: `$SPECBOOK_CACHE`, else the platform's cache directory."""
    named = os.environ.get("SPECBOOK_CACHE")
    return Path(named).resolve() if named else user_cache_path("specbook")


def replaceable(path: Path) -> Path:
    """Return the regular file that a new one of this name takes the place of; links are followed.

    A file that is renamed onto a device, `/dev/null` or `/dev/stdout`, would take that away from the whole machine.

    Raises:
        Problem: a folder, a device or a pipe bears the name.
    """
    target = path.resolve()
    if target.exists() and not target.is_file():
        raise Problem(f"{path} is no regular file", expected="the name of a file to write", remedy="name another")
    return target


def portable(path: Path | str) -> str:
    """Return a path as it is recorded: relative to `$REPO` or `$CACHE` where it lies in one of them."""
    absolute = Path(path).resolve()
    for name, root in (("$REPO", repo_dir()), ("$CACHE", cache_dir())):
        if absolute.is_relative_to(root.resolve()):
            inner = absolute.relative_to(root.resolve()).as_posix()
            return name if inner == "." else f"{name}/{inner}"
    return redact(absolute.name)


def located(recorded: str) -> Path:
    """Return the path on this machine that a recorded path names."""
    for name, root in (("$REPO", repo_dir), ("$CACHE", cache_dir)):
        if recorded == name or recorded.startswith(f"{name}/"):
            return root() / recorded[len(name) + 1 :]
    return Path(recorded)


_ADDRESS = re.compile(r"\b[a-z][a-z0-9+.-]*://[^\s\"'<>]+", re.IGNORECASE)
_KEY_OPTION = re.compile(r"(--(?:api|drafted)-key(?:-file)?[ =])\S+|\b(bearer\s+)\S+", re.IGNORECASE)


def redact(text: str) -> str:
    """Return text without the addresses, keys, home directory, user and host name of this machine."""
    text = _ADDRESS.sub("$URL", text)
    text = _KEY_OPTION.sub(lambda m: (m[1] or m[2]) + "$KEY", text)
    for name, root in (("$REPO", repo_dir()), ("$CACHE", cache_dir()), ("$HOME", Path.home())):
        text = text.replace(str(root.resolve()), name)
    for name, word in (("$HOST", socket.gethostname()), ("$USER", _user())):
        if len(word) > 1:
            text = re.sub(rf"(?<![\w-]){re.escape(word)}(?![\w-])", name, text)
    return text


def redact_word(word: str) -> str:
    """Return one word of a command line as it is recorded: redacted, and a path elsewhere by its last part alone."""
    shown = redact(word)
    return Path(shown).name if shown.startswith("/") else shown


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return ""
