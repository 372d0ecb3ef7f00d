"""`specbook diagnose`: what may be wrong with a drafter, from its curve of acceptance along the draft."""

import json
from dataclasses import replace
from enum import StrEnum
from math import isnan
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from analysis.cli import app
from analysis.cli.show import console, harmless
from analysis.ingest.curve import MEANINGS, Curve, report_curves, run_curves, typed_curve
from analysis.ingest.diagnose import SIGNS, Diagnosis, favoured, rows
from analysis.ingest.diagnose import diagnose as diagnose_curve
from analysis.ingest.gather import ingest
from analysis.ingest.recorded import recorded
from analysis.ingest.simulate import confused_falls, confusion, matrix
from analysis.measure.study import open_study
from analysis.records import Problem


class Meaning(StrEnum):
    """What the numbers of a typed curve are."""

    SURVIVAL = "survival"
    CONDITIONAL = "conditional"
    PROPOSAL = "proposal"


@app.command()
def diagnose(
    source: Annotated[str, typer.Argument(help="A run, or a file that `specbook ingest` reads.")] = "",
    *,
    curve: Annotated[str, typer.Option(help="A typed curve: 0.8,0.6,0.4 or 80%,60%,40%.")] = "",
    meaning: Annotated[Meaning, typer.Option(help="Which acceptance the typed numbers are.")] = Meaning.SURVIVAL,
    steps: Annotated[int | None, typer.Option(min=1, help="Verification steps behind a typed curve.")] = None,
    spec_type: Annotated[str, typer.Option(help="How the server was told to draft.")] = "",
    block: Annotated[int | None, typer.Option(min=1, help="The block length the drafter was trained with.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print a list of objects.")] = False,
    simulated: Annotated[
        bool, typer.Option("--confusion", help="How often the right sign is named; takes a minute.")
    ] = False,
) -> None:
    """Say which sign a curve shows, what may cause it, and what would tell the causes apart."""
    if simulated:
        _confusion()
        return
    if bool(source) == bool(curve):
        raise Problem("a source and a curve" if source else "neither a source nor a curve", expected="one of them")
    of = next(name for name in MEANINGS if name == meaning.value)
    curves = [typed_curve(curve, meaning=of, steps=steps)] if curve else _curves(source)
    known = {name: value for name, value in (("spec_type", spec_type), ("block", block)) if value}
    found = [diagnose_curve(replace(one, **known)) for one in curves]  # type: ignore[arg-type]  # names of its fields
    if as_json:
        text = json.dumps([plain(one) for one in found], indent=1, allow_nan=False)
        print(text.replace("<", "\\u003c").replace(">", "\\u003e"))
        return
    for one in found:
        _show(one)


def _curves(source: str) -> list[Curve]:
    path = Path(source)
    if path.is_file():
        curves = report_curves(ingest([path]))
    else:
        study = open_study(source)
        curves = run_curves(study.directory, study.refusals)
    if not curves:
        raise Problem(
            f"no curve along positions in {source}",
            expected="reports with acceptance per position and their steps",
            remedy="start llama-server with -lv 4, or read its /metrics page, which always has them",
        )
    return curves


def plain(found: Diagnosis) -> dict[str, Any]:
    """Return a diagnosis as data that JSON can hold."""
    return {
        "curve": found.curve.title,
        "verdict": found.verdict,
        "sign": found.named.sign if found.named else None,
        "evidence": [{"sign": e.sign, "share": e.share, "position": e.position or None} for e in found.evidence],
        "also": [{"sign": e.sign, "share": e.share} for e in found.also],
        "positions": rows(found.curve),
        "causes": [
            {"id": c.id, "sign": c.sign, "title": c.title, "evidence": c.evidence, "apart": c.apart,
             "seen": list(c.seen), "favoured": favoured(c, found.curve)}
            for c in found.causes
        ],
        "notes": list(found.notes),
    }  # fmt: skip


def _show(found: Diagnosis) -> None:
    console.print(f"\n[bold]{harmless(found.curve.title)}[/]", soft_wrap=True)
    values = ["–" if isnan(value) else f"{value:.2f}" for value in found.curve.conditional[:16]]
    if values:
        console.print(f"conditional acceptance: {' '.join(values)}", soft_wrap=True)
    console.print(f"sign: [bold]{found.verdict}[/]", soft_wrap=True)
    if found.curve.groups:
        shares = ", ".join(f"{SIGNS[e.sign]} {e.share:.0%}" for e in found.evidence[:3])
        console.print(f"curves that fit the counts: {shares or 'too few steps'}", soft_wrap=True)
    for one in found.also:
        console.print(f"also: {SIGNS[one.sign]} ({one.share:.0%})", soft_wrap=True)
    for note in found.notes:
        console.print(f"note: {note}", soft_wrap=True)
    if not found.causes:
        return
    table = Table("may be", "because", "what would tell it apart", "seen", box=None, padding=(0, 2, 1, 0))
    for cause in found.causes:
        mark = "[green]setup agrees:[/] " if favoured(cause, found.curve) else ""
        table.add_row(
            mark + harmless(cause.title), *map(harmless, (cause.evidence, cause.apart, "; ".join(cause.seen)))
        )
    console.print(table)


def _confusion() -> None:
    console.print("Recorded with real servers; the cause is known:")
    shown = Table("what", "cause", "its sign", "named", "conditional acceptance", "steps", box=None)
    for row in recorded().to_dict("records"):
        colour = "green" if row["named"] == row["sign"] else "yellow" if row["named"] == "undecided" else "red"
        cells = (harmless(row["what"]), row["cause"], row["sign"], f"[{colour}]{row['named']}[/]")
        shown.add_row(*cells, row["conditional"], str(row["steps"]))
    console.print(shown)
    console.print("\nSimulated drafters with known faults, on other seeds than the thresholds were set on:")
    table = confusion()
    for steps in sorted(table["steps"].unique()):
        wide = matrix(table, int(steps))
        shown = Table(f"{steps} steps", *map(str, wide.columns), box=None)
        for truth, shares in wide.iterrows():
            shown.add_row(str(truth), *("·" if share == 0 else f"{share:.2f}" for share in shares))
        console.print(shown)
    falls = Table("fall with depth", "named", "of", box=None)
    for row in confused_falls().to_dict("records"):
        falls.add_row(row["truth"], f"{row['named']:.2f}", str(row["n"]))
    console.print(falls)
