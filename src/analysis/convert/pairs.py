"""What can be measured, and how published rows were served: `data/pairs` and `data/profiles` as records."""

from dataclasses import replace
from pathlib import Path

from analysis.convert.named import list_named, load_named
from analysis.records import Pair, Profile, Source

DEFAULT_PAIR = "smollm2-dspark"
"""What the book and its notebooks measure where no pair is named."""

_FETCHED = ("wheel", "hub")


def load_pair(name_or_path: str | Path) -> Pair:
    """Return a pair by its name in `data/pairs`, or from a TOML file of the user's.

    Raises:
        Problem: there is no such pair or file, or the file is not a valid pair.
    """
    return load_named(Pair, name_or_path, "pairs", "pair")


def list_pairs() -> tuple[Pair, ...]:
    """Return every pair of `data/pairs`, by name."""
    return list_named(Pair, "pairs")


def load_profile(name_or_path: str | Path) -> Profile:
    """Return a profile by its name in `data/profiles`, or from a TOML file of the user's.

    Raises:
        Problem: there is no such profile or file, or the file is not a valid profile.
    """
    return load_named(Profile, name_or_path, "profiles", "profile")


def list_profiles() -> tuple[Profile, ...]:
    """Return every profile of `data/profiles`, by name."""
    return list_named(Profile, "profiles")


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


def fetched(pair: Pair) -> tuple[int, tuple[str, ...]]:
    """Return what fetching a pair brings: bytes that are known, and sizes that are only stated, or `not stated`.

    What lies in the checkout, on a path of the user's, or is made on this machine is not fetched.
    """
    known, stated = 0, []
    for source in filter(None, (_first(pair.target), _first(pair.drafter))):
        if source.kind not in _FETCHED:
            continue
        if source.size is not None:
            known += source.size
        else:
            stated.append(source.stated_size or "not stated")
    return known, tuple(stated)


def _first(source: Source | None) -> Source | None:
    """Return what a file is made from in the end, or the file's own source."""
    return source if source is None or source.made_from is None else _first(source.made_from)
