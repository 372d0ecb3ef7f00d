"""`specbook chapter NAME`: rerun one chapter into this machine's own copy of the book."""

from typing import Annotated

import typer

from analysis.cli import app
from analysis.cli.book import PASSED_ON, Profile, notebook_parameters, run_and_build


@app.command("chapter", context_settings=PASSED_ON)
def chapter(
    context: typer.Context,
    name: Annotated[str, typer.Argument(help="The chapter: 04_depth_regime, or its number.")],
    *,
    profile: Profile = "",
) -> None:
    """Rerun one chapter into local/book, rebuild it and print the page to open.

    Notebook parameters may follow as papermill takes them: `-p NAME VALUE`, several times.
    """
    run_and_build([name], notebook_parameters(context.args), {"profile": profile} if profile else {})
