"""`specbook train-drafter DIR`: train a DSpark drafter for the local target, stage by stage."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from analysis.cli import app
from analysis.cli.show import console, harmless
from analysis.convert.fetch import fetch
from analysis.convert.pairs import load_pair
from analysis.drafter import recipe, shapes
from analysis.records import Problem

Size = Literal["gpu", "cpu"]


@app.command()
def train_drafter(
    directory: Annotated[Path, typer.Argument(help="Where every stage leaves what it made; run again to go on.")],
    *,
    size: Annotated[Size, typer.Option(help="gpu: the shipped drafter; cpu: a poor one that shows the way.")] = "gpu",
    stage: Annotated[str, typer.Option(help="prompts, write, train or evaluate; default: all in turn.")] = "",
    target: Annotated[Path | None, typer.Option(help="A GGUF file of a Llama; default: the local target.")] = None,
    seed: Annotated[int, typer.Option(help="Decides prompts, texts and the order of training.")] = 1,
) -> None:
    """Train a DSpark drafter on text that the target writes itself. Needs torch, which the book does not."""
    if stage and stage not in recipe.STAGES:
        raise Problem(f"unknown stage {stage!r}", expected=f"one of {', '.join(recipe.STAGES)}")
    chosen = shapes.recipe_for(size, seed)
    file = target or fetch(load_pair("smollm2-raw").target)

    def say(text: str) -> None:
        console.print(harmless(text, 4096), soft_wrap=True, highlight=False)

    for name in [stage] if stage else recipe.STAGES:
        say(f"stage {name}")
        recipe.run_stage(name, file, chosen, directory, say)
    say(f"checkpoint for llama.cpp's converter: {directory / 'hf'}; what it is given as target: {directory / 'target'}")
