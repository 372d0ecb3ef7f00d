"""`specbook corpus FILE`: the text that prompts are cut from, in one file for another machine."""

from pathlib import Path
from typing import Annotated

import typer

from analysis.cli import app
from analysis.cli.show import console, harmless
from analysis.measure.access import corpus_of


@app.command()
def corpus(
    file: Annotated[Path, typer.Argument(help="Where to write it: text.json.gz, say.")],
    *,
    source: Annotated[str, typer.Option("--from", help="Directory with text; default: Python's library.")] = "",
) -> None:
    """Save the text that prompts are cut from. Give the file as `corpus` where the same prompts are to be measured."""
    found = corpus_of(source)
    found.save(file)
    console.print(harmless(f"{len(found.texts)} texts of {found.title}, SHA-256 {found.sha256}: {file}", limit=2000))
