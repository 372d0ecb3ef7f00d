"""Records that ship as one TOML file each and are asked for by name."""

import difflib
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Protocol, TypeVar

from analysis.records import Problem
from analysis.records.model import parse
from analysis.records.places import data_dir


class Named(Protocol):
    """A record with a name, which is also that of its file."""

    @property
    def name(self) -> str:
        """Return the name."""
        ...


T = TypeVar("T", bound=Named)


def load_named(kind: type[T], name_or_path: str | Path, folder: str, what: str) -> T:
    """Return a record by its name, or from a TOML file of the user's.

    Args:
        kind: the record's class.
        name_or_path: a name, or a path that ends in `.toml`.
        folder: the folder of `data/` with the shipped ones.
        what: what it is called in a message.

    Raises:
        Problem: there is none of that name, or the file is missing or not valid.
    """
    text, shipped = str(name_or_path), data_dir() / folder
    if text.endswith(".toml"):
        path = Path(text)
        if not path.is_file():
            raise Problem(f"no file {text}", expected=f"a {what} as TOML")
        return _read(kind, path)
    known = [path.stem for path in sorted(shipped.glob("*.toml"))]
    if text not in known:
        raise Problem(
            f"unknown {what} {text!r}{_close(text, known)}",
            expected=f"one of {', '.join(known)}" if known else f"a TOML file in {shipped}",
        )
    return _named_like_its_file(_read(kind, shipped / f"{text}.toml"), text)


def list_named(kind: type[T], folder: str) -> tuple[T, ...]:
    """Return every record of a folder of `data/`, by name.

    Raises:
        Problem: one of the files is not valid.
    """
    found = [_named_like_its_file(_read(kind, path), path.stem) for path in (data_dir() / folder).glob("*.toml")]
    return tuple(sorted(found, key=lambda item: item.name))


def _close(text: str, known: Iterable[str]) -> str:
    matches = difflib.get_close_matches(text, known, n=3, cutoff=0.5)
    return f" (did you mean {' or '.join(matches)}?)" if matches else ""


def read_toml(path: Path) -> dict[str, Any]:
    """Return what a TOML file holds.

    Raises:
        Problem: it cannot be read, or is no TOML.
    """
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise Problem(f"{path} is not readable TOML: {error}", remedy="correct the file") from None


def _read(kind: type[T], path: Path) -> T:
    return parse(kind, read_toml(path), where=str(path))


def _named_like_its_file(item: T, stem: str) -> T:
    if item.name != stem:
        raise Problem(f"{stem}.toml says name = {item.name!r}", expected=f"name = {stem!r}, like the file")
    return item
