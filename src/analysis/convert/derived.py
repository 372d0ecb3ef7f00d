"""Files that are not fetched but made here: another file quantized by a recipe, kept in the user's cache."""

import hashlib
from pathlib import Path

from analysis.convert.fetch import fetch, models_dir
from analysis.convert.files import file_sha256, whole_file
from analysis.convert.quantize import ENGINE_VERSION, quantize
from analysis.convert.recipes import load_recipe
from analysis.records import Problem, Source


def derived(source: Source, *, progress: bool = True) -> Path:
    """Return the file that a source of kind `quantized` describes, from the cache or made now.

    Its place in the cache follows from the bytes it is made from, the recipe, and the engine that quantizes. Its hash
    is written beside it when it is made, and compared ever after: a pair need not state one, because the engine's
    search for the scales of K-quants rounds as its compiler does.

    Raises:
        Problem: what it is made from cannot be had, there is no such recipe, the engine refuses, or the file in the
            cache is not the one that was made.
    """
    if source.made_from is None:
        raise Problem(f"{source.file} is not made from another file", expected="a source of kind quantized")
    recipe = load_recipe(source.recipe)
    origin = fetch(source.made_from, progress=progress)
    made_of = (file_sha256(origin, progress=progress), recipe.base, sorted(recipe.types.items()), ENGINE_VERSION)
    key = hashlib.sha256(repr(made_of).encode()).hexdigest()
    final = models_dir() / f"{key[:16]}-{Path(source.file).name}"
    note = final.with_name(f"{final.name}.sha256")
    if not (final.is_file() and note.is_file()):
        quantize(origin, final, recipe, progress=progress)
        with whole_file(note) as unfinished:
            unfinished.write_text(file_sha256(final, fresh=True, progress=progress), encoding="ascii")
    if file_sha256(final, progress=progress) != note.read_text(encoding="ascii"):
        raise Problem(f"{final} is not the file that was made here", remedy=f"remove {final} and fetch it again")
    return final
