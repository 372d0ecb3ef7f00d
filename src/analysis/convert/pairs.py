"""What can be measured, and how published rows were served: `data/pairs` and `data/profiles` as records."""

import difflib
import tomllib
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from analysis.records import Pair, Problem, Profile, Source
from analysis.records.model import parse
from analysis.records.places import data_dir

T = TypeVar("T", Pair, Profile)


def load_pair(name_or_path: str | Path) -> Pair:
    """Return a pair by its name in `data/pairs`, or from a TOML file of the user's.

    Raises:
        Problem: there is no such pair or file, or the file is not a valid pair.
    """
    return _load(Pair, name_or_path, data_dir() / "pairs")


def list_pairs() -> tuple[Pair, ...]:
    """Return every pair of `data/pairs`, by name."""
    return _all(Pair, data_dir() / "pairs")


def load_profile(name_or_path: str | Path) -> Profile:
    """Return a profile by its name in `data/profiles`, or from a TOML file of the user's.

    Raises:
        Problem: there is no such profile or file, or the file is not a valid profile.
    """
    return _load(Profile, name_or_path, data_dir() / "profiles")


def list_profiles() -> tuple[Profile, ...]:
    """Return every profile of `data/profiles`, by name."""
    return _all(Profile, data_dir() / "profiles")


def with_files(pair: Pair, *, target: Path | None = None, drafter: Path | None = None) -> Pair:
    """Return a pair that reads its target or drafter from files of this machine.

    For publications that do not name a file, and for owners who have it already.
    """
    changes: dict[str, Source] = {}
    if target is not None:
        changes["target"] = Source(kind="path", file=str(target))
    if drafter is not None:
        changes["drafter"] = Source(kind="path", file=str(drafter))
    return replace(pair, **changes)  # type: ignore[arg-type]  # mypy checks ** against every field's type


def _all(kind: type[T], folder: Path) -> tuple[T, ...]:
    return tuple(sorted((_read(kind, path) for path in folder.glob("*.toml")), key=lambda item: item.name))


def _load(kind: type[T], name_or_path: str | Path, folder: Path) -> T:
    text = str(name_or_path)
    if text.endswith(".toml"):
        path = Path(text)
        if not path.is_file():
            raise Problem(f"no file {text}", expected=f"a {kind.__name__.lower()} as TOML")
        return _read(kind, path, named=False)
    known = [path.stem for path in sorted(folder.glob("*.toml"))]
    if text not in known:
        raise Problem(
            f"unknown {kind.__name__.lower()} {text!r}{_close(text, known)}",
            expected=f"one of {', '.join(known)}" if known else f"a TOML file in {folder}",
        )
    return _read(kind, folder / f"{text}.toml")


def _close(text: str, known: Iterable[str]) -> str:
    matches = difflib.get_close_matches(text, known, n=3, cutoff=0.5)
    return f" (did you mean {' or '.join(matches)}?)" if matches else ""


def _read(kind: type[T], path: Path, *, named: bool = True) -> T:
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise Problem(f"{path} is not readable TOML: {error}", remedy="correct the file") from None
    item = parse(kind, data, where=str(path))
    if named and item.name != path.stem:
        raise Problem(f"{path} says name = {item.name!r}", expected=f"name = {path.stem!r}, like the file")
    return item
