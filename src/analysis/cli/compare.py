"""`specbook compare RUN RUN`: what the one factor in which two runs differ did to them."""

import json
from typing import Annotated

import typer
from rich.table import Table

from analysis.cli import app
from analysis.cli.show import console, harmless
from analysis.measure.contrasts import Difference, compare_studies, plain_difference
from analysis.measure.study import open_study
from analysis.stats import Interval


@app.command("compare")
def compare(
    first: Annotated[str, typer.Argument(help="A run's id, or the path of its directory.")],
    second: Annotated[str, typer.Argument(help="Another run.")],
    *,
    as_json: Annotated[bool, typer.Option("--json", help="Print an object.")] = False,
) -> None:
    """Set two runs against each other, cell by cell. Refused where more than one factor differs."""
    found = compare_studies(open_study(first), open_study(second))
    if as_json:
        rows = {name: [plain_difference(d) for d in getattr(found, name)] for name in ("changes", "controls")}
        content = {"factor": found.factor, "paired": found.paired, "refused": found.refused}
        print(json.dumps(content | rows, ensure_ascii=False, indent=1))
        return
    console.print(f"{harmless(found.first.run.id)} | {harmless(found.second.run.id)}: they differ in {found.factor}.")
    if found.changes:
        console.print(_table(found.changes))
    else:
        console.print("No cell of the factor that differs is left to compare on both sides.")
    for said in found.refused:
        console.print(f"[yellow]left out[/]: {harmless(said, 400)}", soft_wrap=True)
    if found.controls:
        console.print("Control: cells that do not differ. A change here is drift between the two sessions.")
        console.print(_table(found.controls))
    how = "prompt by prompt" if found.paired else "not at all, because the texts differ"
    console.print(f"Changes are taken {how}; 95 % intervals over prompts. A rate's change is second over first.")
    console.print("Two runs are two sessions: what drifted between them is in no interval.")


def _table(rows: tuple[Difference, ...]) -> Table:
    table = Table("regime", "depth", "leg", "quantity", "first", "second", "change", box=None)
    for row in rows:
        change = "–" if row.change is None else ("x " if row.is_ratio else "") + _text(row.change)
        table.add_row(row.regime, row.depth, row.leg, row.quantity, _text(row.first), _text(row.second), change)
    return table


def _text(interval: Interval) -> str:
    if interval.low is None:
        return harmless(f"{interval.format(decimals=2).removesuffix(' (no interval)')} (no interval: {interval.note})")
    return harmless(f"{interval.format(decimals=2)} (n = {interval.n})")
