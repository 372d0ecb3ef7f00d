"""`specbook unpack ARCHIVE`: read a run's archive, trusting nothing in it."""

from pathlib import Path
from typing import Annotated

import typer

from analysis.cli import app
from analysis.cli.show import console, harmless
from analysis.publish.archive import read_archive
from analysis.records.places import local_dir


@app.command("unpack")
def unpack(
    archive: Annotated[Path, typer.Argument(help="A file that `specbook archive` wrote.")],
    *,
    into: Annotated[Path | None, typer.Option(help="The folder of runs; local/runs if none.")] = None,
) -> None:
    """Unpack a run after checking its paths and checksums; `specbook validate` says what to make of it."""
    directory = read_archive(archive, into or local_dir() / "runs")
    console.print(f"{harmless(directory.run.id)} lies in {harmless(str(directory.path), 4096)}", soft_wrap=True)
