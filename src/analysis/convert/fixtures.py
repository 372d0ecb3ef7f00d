"""Model files that are made on this machine by a recipe, so that a pair can name them like any other."""

import hashlib
import shutil
import tempfile
from pathlib import Path
from typing import Any

from analysis.convert.dsv4 import TINY, Recipe, write_checkpoint, write_gguf
from analysis.records import Problem, Source

PARTS = {"target.gguf": "target", "drafter.gguf": "drafter"}
SETTINGS: dict[str, type[Any]] = {"seed": int, "mode": str, "agree": float, "margin": float}


def make_fixture(source: Source, folder: Path, *, progress: bool = True) -> Path:
    """Return the file a fixture names, made if it is not there yet.

    Args:
        source: of kind `fixture`.
        folder: where made files are kept.
        progress: show bars for what takes longer than two seconds.

    Raises:
        Problem: no such fixture, file or setting, or the disk is full.
    """
    if source.package != "dsv4" or source.file not in PARTS:
        raise Problem(
            f"no fixture {source.package!r} with a file {source.file!r}",
            expected=f"dsv4 with {' or '.join(PARTS)}",
            remedy="correct `package` or `file` in the pair",
        )
    recipe = fixture_recipe(source.revision)
    name = hashlib.sha256(repr((TINY, recipe)).encode()).hexdigest()[:12]
    final = folder / f"dsv4-tiny-{name}"
    if not all((final / file).is_file() for file in PARTS):
        folder.mkdir(parents=True, exist_ok=True)
        _make(final, recipe, progress=progress)
    return final / source.file


def fixture_recipe(settings: str) -> Recipe:
    """Return the recipe of settings such as `seed=1 agree=0.8 margin=0.1`; what is not named has its default.

    Raises:
        Problem: there is no such setting, or its value cannot be read.
    """
    values: dict[str, Any] = {}
    for word in settings.split():
        key, _, value = word.partition("=")
        try:
            values[key] = SETTINGS[key](value)
        except (KeyError, ValueError):
            raise Problem(f"cannot read {word!r} of a fixture", expected=f"{', '.join(SETTINGS)}, as seed=1") from None
    return Recipe(**values)


def _make(final: Path, recipe: Recipe, *, progress: bool) -> None:
    """Make all files, then give them their place at once: two that make the same do not disturb each other."""
    with tempfile.TemporaryDirectory(prefix=".fixture-", dir=final.parent) as scratch:
        made = Path(scratch) / final.name
        write_checkpoint(made, TINY, recipe, progress=progress)
        write_gguf(made, "target", made / "target.gguf")
        write_gguf(made, "drafter", made / "drafter.gguf")
        try:
            made.rename(final)
        except OSError:
            if not (final / "target.gguf").is_file():
                shutil.rmtree(final, ignore_errors=True)
                made.rename(final)
