"""`specbook doctor`: what would make a measurement on this machine untrustworthy."""

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Group, RenderableType
from rich.table import Table

from analysis.cli import app
from analysis.cli.show import console, harmless
from analysis.launch import Finding, FoundEngine, Report, examine, read_key, resolve_engine
from analysis.launch.finding import FindingLevel
from analysis.records import Problem

_COLOURS: dict[FindingLevel, str] = {"bad": "red", "warning": "yellow", "note": "blue", "ok": "green"}


@app.command("doctor")
def doctor(
    *,
    server_url: Annotated[str, typer.Option(help="Examine a server that somebody runs at this address.")] = "",
    api_key_file: Annotated[Path | None, typer.Option(help="A file that holds that server's key.")] = None,
    target: Annotated[Path | None, typer.Option(help="A model file: does it fit into memory?")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
) -> None:
    """Say what would make a measurement here untrustworthy. Exits with 1 if nothing should be measured here."""
    report = examine(_find(server_url, read_key(api_key_file) if api_key_file else ""), target)
    if as_json:
        typer.echo(json.dumps(report.plain(), ensure_ascii=False, indent=1))
    else:
        _print(report)
    if not report.trusted:
        raise typer.Exit(1)


def _find(server_url: str, api_key: str) -> FoundEngine | Problem:
    try:
        return resolve_engine(server_url or None, api_key)
    except Problem as problem:
        return problem


def _print(report: Report) -> None:
    table = Table.grid(padding=(0, 2))
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for finding in report.findings:
        table.add_row(f"[{_COLOURS[finding.level]}]{finding.level}[/]", finding.topic, _said(finding))
    console.print(table)
    console.print()
    console.print(_verdict(report))


def _said(finding: Finding) -> RenderableType:
    reasons = Table.grid(padding=(0, 1))
    reasons.add_column(no_wrap=True, style="dim")
    reasons.add_column(overflow="fold")
    for word, text in (("why:", finding.matters), ("do:", finding.remedy)):
        if text:
            reasons.add_row(word, harmless(text, 600))
    return Group(harmless(finding.seen, 600), reasons) if reasons.row_count else harmless(finding.seen, 600)


def _verdict(report: Report) -> str:
    if not report.trusted:
        return f"[red]Do not measure here[/]: {', '.join(finding.topic for finding in report.at('bad'))}."
    warnings = report.at("warning")
    if warnings:
        return f"[yellow]Measure with care[/]: {', '.join(finding.topic for finding in warnings)}."
    return "[green]Nothing was found that would make a measurement here untrustworthy.[/]"
