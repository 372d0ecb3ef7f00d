"""`specbook card RUN`: a Hugging Face model card from a recorded run."""

from pathlib import Path
from typing import Annotated

import typer

from analysis.cli import app
from analysis.cli.show import console, harmless
from analysis.measure.study import open_study
from analysis.publish.card import CardOptions, card_text
from analysis.records import Problem
from analysis.records.store import write_atomically


@app.command("card")
def card(
    run: Annotated[str, typer.Argument(help="A run's id under data/runs or local/runs, or the path of its directory.")],
    *,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="The file to write; standard output if none.")] = None,
    name: Annotated[str, typer.Option(help="The model's name; the pair's if none.")] = "",
    base_model: Annotated[str, typer.Option(help="The target on the Hub, owner/name.")] = "",
    licence: Annotated[str, typer.Option("--license", help="An identifier such as apache-2.0.")] = "",
) -> None:
    """Write a model card whose every number is the run's, with intervals, gates and commands. Validated offline."""
    if out is not None:
        _keep_what_is_no_card(out)
    text = card_text(open_study(run), CardOptions(model_name=name, base_model=base_model, licence=licence))
    if out is None:
        typer.echo(text, nl=False)
        return
    write_atomically(out, text)
    console.print(
        f"wrote {harmless(str(out), 4096)}; `specbook audit {harmless(str(out), 4096)}` holds it against the run",
        soft_wrap=True,
    )


def _keep_what_is_no_card(path: Path) -> None:
    """Refuse to write over anything but an earlier card: in a clone, README.md is somebody's text."""
    if path.exists() and "\nspecbook:\n" not in path.read_text(encoding="utf-8", errors="replace"):
        raise Problem(f"{path.name} exists and is no card of a run", expected="a new name, or an earlier card's")
