"""`specbook gates RUN`: what the gates refuse or warn about in a recorded run, and on what evidence."""

from collections import Counter
from typing import Annotated

import typer
from rich.table import Table

from analysis.cli import app
from analysis.cli.show import console, harmless, table_with_whole
from analysis.gates import Evidence, Finding, Level, check_all, publishable
from analysis.gates.grouped import grouped, places
from analysis.measure.study import raw_beside_drafted
from analysis.records.store import find_run

_COLOURS: dict[Level, str] = {"refuse": "red", "warn": "yellow", "unchecked": "blue", "pass": "green"}


@app.command("gates")
def gates(
    run: Annotated[str, typer.Argument(help="A run's id under data/runs or local/runs, or the path of its directory.")],
    *,
    everything: Annotated[
        bool, typer.Option("--all", help="Every finding by itself, also what was found in order.")
    ] = False,
) -> None:
    """Show what is refused or warned about in a run, and on what evidence. Exits with 1 if anything is refused."""
    directory = find_run(run)
    evidence = Evidence(
        run=directory.run,
        samples=directory.samples(),
        lives=directory.lives(),
        contrasts=raw_beside_drafted(directory.run),
        blocks=directory.blocks(),
    )
    findings = check_all(evidence)
    levels = Counter(found.level for found in findings)
    counts = ", ".join(f"{levels[level]} {level}" for level in _COLOURS)
    fit = len(publishable(evidence.samples, findings, evidence.blocks))
    console.print(
        f"{harmless(evidence.run.id)}: {counts}; {fit} of {len(evidence.samples)} samples fit to publish",
        soft_wrap=True,
    )
    if everything:
        console.print(_table(evidence, findings), crop=False)
    else:
        _groups(evidence, findings)
    if levels["refuse"]:
        raise typer.Exit(1)


def _groups(evidence: Evidence, findings: list[Finding]) -> None:
    groups = grouped(evidence, (found for found in findings if found.level != "pass"))
    for group in groups:
        colour = f"[{_COLOURS[group.level]}]{group.level}[/]"
        console.print(f"{colour} {group.gate}: {harmless(group.saw, 400)}", soft_wrap=True)
        console.print(f"  [dim]{harmless(places(evidence, group), 400)}[/]", soft_wrap=True)
        if group.level != "unchecked":
            console.print(f"  [dim]expected {harmless(group.expected, 400)}[/]", soft_wrap=True)
    if any(len(group.findings) > 1 for group in groups):
        console.print(
            "What says the same stands together, under what was seen most often; --all shows each.", soft_wrap=True
        )


def _table(evidence: Evidence, findings: list[Finding]) -> Table:
    names = [found.gate for found in findings]
    table = table_with_whole("gate", names, ("level", "where"), ("saw", "expected"))
    order = list(_COLOURS)
    for found in sorted(findings, key=lambda found: order.index(found.level)):
        colour = _COLOURS[found.level]
        table.add_row(
            f"[{colour}]{found.level}[/]",
            harmless(_place(evidence, found)),
            found.gate,
            harmless(found.saw),
            harmless(found.expected),
        )
    return table


def _place(evidence: Evidence, found: Finding) -> str:
    cell = evidence.cell(found.where.id) if found.where.kind == "cell" else None
    return str(found.where) if cell is None else f"{found.where} ({cell.regime} at {cell.depth}, {cell.spec_type})"
