"""`specbook archive RUN`: a run as one file for Zenodo, the same bytes wherever it is made."""

from pathlib import Path
from typing import Annotated

import typer

from analysis.cli import app
from analysis.cli.show import console, harmless, size
from analysis.publish.archive import write_archive


@app.command("archive")
def archive(
    run: Annotated[str, typer.Argument(help="A run's id, or the path of its directory.")],
    *,
    out: Annotated[Path, typer.Option("--out", "-o", help="The file to write, or a directory.")] = Path(),
    creator: Annotated[list[str] | None, typer.Option(help="Who measured it: Family, Given. Several times.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Write over another file of that name.")] = False,
) -> None:
    """Pack a run with its card, checksums, Zenodo metadata and licence. A run that is not fit is refused.

    Without -o it is written into the current folder, by the run's name.
    """
    written = write_archive(run, out, creators=tuple(creator or ()), force=force)
    console.print(f"wrote {harmless(str(written), 4096)} ({size(written.stat().st_size)})", soft_wrap=True)
