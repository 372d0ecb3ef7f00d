"""`specbook crossing PAIR`: the acceptance at which drafting begins to pay, measured at chosen acceptances."""

from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from analysis.cli import app
from analysis.cli.options import CorpusOption
from analysis.cli.show import console, harmless
from analysis.measure.crossing import (
    ACCEPTANCES,
    crossing_frame,
    crossing_of,
    plan_crossing,
    record_crossing,
    save_crossing,
)


@app.command("crossing")
def crossing_command(
    pair: Annotated[str, typer.Argument(help="A pair that drafts, by name or path.")],
    *,
    acceptance: Annotated[
        list[float] | None, typer.Option(min=0, max=1, help="Chance of each drafted token. May be repeated.")
    ] = None,
    depth: Annotated[int | None, typer.Option(min=1, help="Tokens in the cache; default: the profile's first.")] = None,
    prompts: Annotated[int, typer.Option(min=3, help="Prompts, each on every leg.")] = 6,
    n_predict: Annotated[int | None, typer.Option(min=8, help="Tokens to generate; default: the profile's.")] = None,
    profile: Annotated[str, typer.Option(help="A grid of data/grids for the sizes that are not given.")] = "quick",
    corpus: CorpusOption = "",
    write: Annotated[Path | None, typer.Option(help="Also record it in this JSON file.")] = None,
) -> None:
    """Decode at chosen acceptances beside raw, and show where they are equally fast. It goes on where it stopped."""
    size = {"depths": [depth] if depth else None, "regimes": ["prose"], "prompts": prompts, "n_predict": n_predict}
    plan = plan_crossing(pair, profile=profile, size=size, corpus=corpus, acceptances=acceptance or ACCEPTANCES)
    recorded = record_crossing(plan)
    table = Table("chance a token", "accepted a step", "tokens/s", "prompts")
    for row in crossing_frame(recorded.samples).to_dict("records"):
        raw = row["acceptance"] != row["acceptance"]
        limits = "" if row["low"] != row["low"] else f" [{row['low']:.1f}, {row['high']:.1f}]"
        name, accepted = ("raw", "") if raw else (f"{row['acceptance']:g}", f"{row['accepted']:.2f}")
        table.add_row(name, accepted, f"{row['estimate']:.1f}{limits}", str(row["n"]))
    console.print(table)
    found = crossing_of(recorded.samples)
    where = f"depth {recorded.depth}, n_max {recorded.n_max}, {recorded.machine.cpu}"
    said = found.format(decimals=2) if found.shown else f"none: {found.note}"
    console.print(harmless(f"As fast as raw at {said} accepted tokens a step ({where})."))
    if write is not None:
        save_crossing(recorded, write)
        console.print(f"recorded in {harmless(str(write))}", soft_wrap=True)
