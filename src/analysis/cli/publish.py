"""`specbook publish`: promote local chapters and the runs they show into the committed book."""

from pathlib import Path
from typing import Annotated

import typer

from analysis.cli import app
from analysis.cli.show import console, harmless
from analysis.publish.build import committed_book, local_book
from analysis.publish.promote import promote
from analysis.records.places import data_dir, local_dir


@app.command("publish")
def publish(
    names: Annotated[list[str] | None, typer.Argument(help="The chapters to promote; all by default.")] = None,
) -> None:
    """Promote local chapters, and the runs they show, into the committed book, after checking them."""
    written = promote(
        local_book(), committed_book(), local_runs=local_dir() / "runs", runs=data_dir() / "runs", names=names or None
    )
    here = Path.cwd()
    for path in written:
        shown = path.relative_to(here) if path.is_relative_to(here) else path
        console.print(f"wrote {harmless(str(shown))}", soft_wrap=True)
