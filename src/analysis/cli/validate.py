"""`specbook validate RUN`: is a run fit to be contributed?"""

from typing import Annotated

import typer
from rich.table import Table

from analysis.cli import app
from analysis.cli.show import console, harmless
from analysis.publish.validate import Level, validate_run

_COLOURS: dict[Level, str] = {"ok": "green", "note": "yellow", "bad": "red"}


@app.command("validate")
def validate(
    run: Annotated[str, typer.Argument(help="A run's id under data/runs or local/runs, or the path of its directory.")],
) -> None:
    """Check that a run is whole, true to its journal, anonymous and small enough. Exits with 1 if it is not."""
    found = validate_run(run)
    table = Table("level", "check", "saw", box=None)
    for check in found:
        table.add_row(f"[{_COLOURS[check.level]}]{check.level}[/]", check.name, harmless(check.saw, 600))
    console.print(table)
    if any(check.level == "bad" for check in found):
        console.print("It cannot be contributed as it is.")
        raise typer.Exit(1)
    console.print("It can be contributed: `specbook publish`, then open a pull request.")
