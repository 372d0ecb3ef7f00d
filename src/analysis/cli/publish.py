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
    *,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Check all of it, and say what would be written.")] = False,
) -> None:
    """Promote local chapters, and the runs they show, into the committed book, after checking them.

    Chapters go to book/chapters and runs to data/runs of the checkout; git is not touched, so `git checkout` and
    `git clean` undo it. All is refused where a chapter failed, where a chapter or a run names this machine's folders,
    its host or a key, or where a run is too large, has a cell with too few prompts, or is committed already and
    differs.
    """
    written = promote(
        local_book(),
        committed_book(),
        local_runs=local_dir() / "runs",
        runs=data_dir() / "runs",
        names=names or None,
        dry_run=dry_run,
    )
    here = Path.cwd()
    for path in written:
        shown = path.relative_to(here) if path.is_relative_to(here) else path
        console.print(f"{'would write' if dry_run else 'wrote'} {harmless(str(shown))}", soft_wrap=True)
