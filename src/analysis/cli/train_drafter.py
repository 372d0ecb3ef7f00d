"""`specbook train-drafter DIR`: train a DSpark drafter for the local target, stage by stage."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from analysis.cli import app
from analysis.cli.show import console, harmless
from analysis.convert.fetch import fetch
from analysis.convert.pairs import load_pair
from analysis.drafter import export, recipe, shapes
from analysis.records import Problem

Size = Literal["gpu", "cpu"]


@app.command()
def train_drafter(
    directory: Annotated[Path, typer.Argument(help="Where every stage leaves what it made; run again to go on.")],
    *,
    size: Annotated[Size, typer.Option(help="gpu: the shipped drafter; cpu: a poor one that shows the way.")] = "gpu",
    stage: Annotated[str, typer.Option(help="prompts, write, train or evaluate; default: all in turn.")] = "",
    target: Annotated[Path | None, typer.Option(help="A GGUF file of a Llama; default: the local target.")] = None,
    start: Annotated[
        Path | None, typer.Option("--from", help="An exported drafter (DIR/hf) of the same shape to begin with.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Decides prompts, texts and the order of training.")] = 1,
    layers: Annotated[
        int | None, typer.Option(min=1, help="Layers of the drafter; default: those of the size.")
    ] = None,
    block: Annotated[
        int | None, typer.Option(min=2, help="Tokens drafted at once; default: those of the size.")
    ] = None,
) -> None:
    """Train a DSpark drafter on text that the target writes itself. Needs torch, which the book does not."""
    if stage and stage not in recipe.STAGES:
        raise Problem(f"unknown stage {stage!r}", expected=f"one of {', '.join(recipe.STAGES)}")
    chosen = shapes.recipe_for(size, seed, layers=layers, block=block)
    if start is not None:
        export.load_fitting(start, chosen.shape)  # said now, not after the target has written for minutes
    file = target or fetch(load_pair("smollm2-raw").target)

    def say(text: str) -> None:
        console.print(harmless(text, 4096), soft_wrap=True, highlight=False)

    for name in [stage] if stage else recipe.STAGES:
        say(f"stage {name}")
        recipe.run_stage(name, file, chosen, directory, say, start=start)
    if (directory / "hf").is_dir():
        say(f"GGUF files of it: specbook convert-drafter {directory}")
