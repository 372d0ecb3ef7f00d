"""`specbook calibrate`: how often this instrument's intervals hold the truth, on a real server."""

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from analysis.cli import app
from analysis.cli.show import console, harmless
from analysis.launch import resolve_engine
from analysis.measure.calibration.coverage import Coverage, Stopping
from analysis.measure.calibration.result import (
    Journals,
    calibration_of,
    population_of,
    read_journals,
    write_calibration,
)
from analysis.measure.calibration.selfduels import SelfDuels, fight
from analysis.measure.calibration.synthetic import Campaign, measure_cells, read_cells
from analysis.measure.study import open_study


@app.command()
def calibrate(
    *,
    cells: Annotated[int, typer.Option(min=0, help="Cells of known acceptance, in all.")] = 100,
    requests: Annotated[int, typer.Option(min=3, help="Requests a cell.")] = 8,
    emitted: Annotated[int, typer.Option(min=8, help="Tokens a request.")] = 24,
    duels: Annotated[int, typer.Option(min=0, help="Duels of a server against itself, in all.")] = 0,
    minutes: Annotated[float, typer.Option(min=0, help="Stop each part after so long; the next call goes on.")] = 0.0,
    servers: Annotated[int, typer.Option(min=1, help="Cells measured at once, each on a server; duels never are.")] = 1,
    recorded: Annotated[
        Path | None, typer.Option("--from", help="Count over this `calibration` folder, measured elsewhere.")
    ] = None,
    population: Annotated[str, typer.Option(help="A run whose largest drafted cell is taken as a population.")] = "",
    write: Annotated[bool, typer.Option("--write", help="Write the result to data/, for the book.")] = False,
) -> None:
    """Measure cells whose acceptance is known; count how often intervals hold it. It goes on where it stopped."""
    journals = read_journals(recorded) if recorded else _measured(cells, requests, emitted, duels, servers, minutes)
    drawn = population_of(open_study(population)) if population else None
    result = calibration_of(journals, drawn)
    if result.cells:
        title = f"{result.cells} cells of {result.requests} requests of {result.emitted} tokens"
        console.print(_coverage(title, result.coverage))
        console.print(_stopping(result.stopping))
    if result.duels:
        console.print(_coverage("duels of a server against itself; prompts are blocks", [result.duels]))
    if drawn:
        console.print(_coverage(f"cells drawn from {drawn.prompts} prompts of {drawn.run}", drawn.coverage))
    if write:
        console.print(f"Written to {harmless(str(write_calibration(result)))}.")


def _measured(cells: int, requests: int, emitted: int, duels: int, servers: int, minutes: float) -> Journals:
    found = resolve_engine()
    campaign = Campaign(requests=requests, emitted=emitted)
    budget = 60 * minutes or None
    measure_cells(campaign, found, cells, budget_s=budget, servers=servers)
    fought = fight(SelfDuels(), found, duels, budget_s=budget) if duels else []
    made = campaign.made(found)
    return Journals(made, tuple(read_cells(campaign, found)), tuple(fought), made.machine)


def _coverage(title: str, rows: Iterable[Coverage]) -> Table:
    table = Table("quantity", "prompts", "cells", "shown", "held the truth", "median width", title=harmless(title))
    for row in rows:
        share = row.share.format(decimals=1, percent=True) if row.shown else "-"
        table.add_row(row.quantity, str(row.prompts), str(row.cells), str(row.shown), share, f"{row.width:.3f}")
    return table


def _stopping(rows: Iterable[Stopping]) -> Table:
    table = Table(
        "until", "cells", "valid held", "at every look", "plain held", "prompts", "plain", "price", title="stopping"
    )
    for row in rows:
        counts = (f"{value / row.cells:.1%}" for value in (row.covered, row.held, row.fixed_covered))
        table.add_row(
            f"{row.width:g}",
            str(row.cells),
            *counts,
            f"{row.prompts:.1f}",
            f"{row.fixed_prompts:.1f}",
            f"{row.price:.2f}",
        )
    return table
