"""`specbook quantize SOURCE TARGET --recipe NAME` and `specbook recipes`: quantizing by recipes that are data."""

from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from analysis.cli import app
from analysis.cli.show import console, harmless, size
from analysis.convert.compare import Change, compare_models
from analysis.convert.gguf import read_gguf
from analysis.convert.quantize import quantize as run_quantize
from analysis.convert.recipes import list_recipes, load_recipe
from analysis.convert.widen import widen
from analysis.records import Problem


@app.command()
def quantize(
    source: Annotated[Path, typer.Argument(help="A GGUF file.")],
    target: Annotated[Path, typer.Argument(help="The GGUF file to write.")],
    *,
    recipe: Annotated[str, typer.Option(help="A name from `specbook recipes`, or a TOML file of your own.")],
    imatrix: Annotated[Path | None, typer.Option(help="A file of llama-imatrix, for types that ask for it.")] = None,
    via_f16: Annotated[bool, typer.Option("--via-f16", help="For engines that refuse MXFP4; loses nothing.")] = False,
    threads: Annotated[int | None, typer.Option(min=1, help="Default: one a core.")] = None,
    compare: Annotated[bool, typer.Option(help="Compare source and result value by value.")] = True,
) -> None:
    """Quantize a model by a recipe; show size, bits per weight and error by group of tensors."""
    chosen = load_recipe(recipe)
    if target.exists() and source.exists() and target.samefile(source):
        raise Problem(f"{target} is the source", expected="another file to write")
    middle = target.with_name(f".{target.name}.f16") if via_f16 else None
    try:
        if middle is not None:
            widen(source, middle)
        after = run_quantize(middle or source, target, chosen, importance=imatrix, threads=threads)
    finally:
        if middle is not None:
            middle.unlink(missing_ok=True)
    before = read_gguf(source)
    if compare:
        console.print(_table(compare_models(before, after)))
    console.print(f"{harmless(str(target), 4096)}: {size(before.size)} -> {size(after.size)}", soft_wrap=True)


@app.command()
def recipes() -> None:
    """List the recipes of quantization."""
    table = Table("recipe", "most tensors", "others", "what it is", box=None)
    for recipe in list_recipes():
        others = ", ".join(f"{pattern} {kind}" for pattern, kind in recipe.types.items())
        table.add_row(recipe.name, recipe.base, harmless(others), harmless(recipe.title))
    console.print(table)


def _table(changes: tuple[Change, ...]) -> Table:
    table = Table("tensors of", "count", "before", "after", "size before", "after", "bits", "bits", "rms", box=None)
    for change in changes:
        table.add_row(
            change.name,
            str(change.tensors),
            " ".join(change.types_before),
            " ".join(change.types_after),
            size(change.bytes_before),
            size(change.bytes_after),
            f"{change.bits_before:.2f}",
            f"{change.bits_after:.2f}",
            f"{change.rms:.2%}" if change.rms else "0",
        )
    return table
