"""`specbook fixture`: small synthetic models in the layout of large ones."""

from pathlib import Path
from typing import Annotated

import typer

from analysis.cli import app
from analysis.cli.show import console, harmless, size
from analysis.convert.dsv4 import LARGE, TINY, Recipe, write_checkpoint, write_gguf
from analysis.records import Problem

fixtures = typer.Typer(help="Write synthetic checkpoints to try conversion, quantization and serving on.")
app.add_typer(fixtures, name="fixture")


@fixtures.callback()
def fixture() -> None:
    """Keep `dsv4` a subcommand while it is the only one."""


@fixtures.command()
def dsv4(
    directory: Annotated[Path, typer.Argument(help="A new directory. Put 0731 into its name, as the release has.")],
    seed: Annotated[int, typer.Option(help="Equal seeds give equal files.")] = 1,
    random: Annotated[bool, typer.Option("--random", help="Weights without order, in place of successors.")] = False,
    agree: Annotated[float, typer.Option(min=0, max=1, help="Share of successors the drafter knows.")] = 0.8,
    margin: Annotated[float, typer.Option(min=0, help="1: greedy output is safe; 0.1: rounding changes it.")] = 1.0,
    large: Annotated[bool, typer.Option("--large", help="3.5 GB in place of 12 MB.")] = False,
    gguf: Annotated[
        bool, typer.Option("--gguf", help="Also write target.gguf and drafter.gguf, without torch.")
    ] = False,
) -> None:
    """Write a checkpoint in the layout of DeepSeek-V4-Flash-0731 with its three DSpark blocks."""
    recipe = Recipe(seed=seed, mode="random" if random else "successor", agree=agree, margin=margin)
    if large and gguf:
        raise Problem("--large with --gguf", remedy="run `specbook convert` on the checkpoint: it streams")
    write_checkpoint(directory, LARGE if large else TINY, recipe)
    if gguf:
        write_gguf(directory, "target", directory / "target.gguf")
        write_gguf(directory, "drafter", directory / "drafter.gguf")
    files = list(directory.iterdir())
    total = sum(file.stat().st_size for file in files)
    console.print(f"{harmless(str(directory), 4096)}: {len(files)} files, {size(total)}", soft_wrap=True)
