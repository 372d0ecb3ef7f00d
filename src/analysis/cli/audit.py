"""`specbook audit`: every derived statement of the two published cards, recomputed."""

import json
from collections import Counter
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from analysis.cli import app
from analysis.cli.show import console, harmless
from analysis.evidence.audit import VERDICTS, Audited
from analysis.evidence.audit import audit as audit_cards
from analysis.evidence.completeness import check_quotes, check_repeats, coverage
from analysis.evidence.consistency import Finding, check_all

STYLES = {"reproduces": "green", "rounding": "cyan", "fails": "red", "underdetermined": "yellow"}


class Card(StrEnum):
    """The two published cards."""

    A = "A"
    B = "B"


@app.command()
def audit(
    card: Annotated[Card | None, typer.Option(help="Only this card.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print a list of objects.")] = False,
    checks: Annotated[bool, typer.Option("--checks", help="Print the consistency checks instead.")] = False,
    texts: Annotated[
        Path | None, typer.Option(help="Folder with card-a.txt and card-b.txt: also check quotes and completeness.")
    ] = None,
) -> None:
    """Recompute every derived statement of the published cards from the values that they print."""
    chosen = None if card is None else card.value
    if checks:
        _print_findings([found for found in check_all() if chosen in (None, found.card)])
        return
    results = audit_cards(chosen)
    if as_json:
        print(json.dumps([result.plain() for result in results], ensure_ascii=False, indent=1))
    else:
        _print_table(results)
    if texts is not None:
        _check_texts(texts, chosen, quiet=as_json)


def _print_table(results: list[Audited]) -> None:
    table = Table("card", "printed", "verdict", "low", "high", "note", box=None)
    for result in results:
        bounds = ["–" if bound is None else f"{float(bound):.4g}" for bound in (result.low, result.high)]
        verdict = f"[{STYLES[result.verdict]}]{result.verdict}[/]"
        table.add_row(result.claim.card, harmless(result.claim.printed), verdict, *bounds, harmless(result.note, 400))
    console.print(table)
    counts = Counter(result.verdict for result in results)
    console.print(f"{len(results)} statements: " + ", ".join(f"{counts[v]} {v}" for v in VERDICTS))
    console.print("low and high bound the recomputed number; for a word, the margin by which it holds.")


def _print_findings(findings: list[Finding]) -> None:
    table = Table("check", "card", "outcome", "subject", "what was found", "what would settle it", box=None)
    for found in findings:
        outcome = f"[{STYLES.get(found.outcome, 'green')}]{found.outcome}[/]"
        texts = (harmless(text, 400) for text in (found.subject, found.note, found.ask))
        table.add_row(found.check, found.card, outcome, *texts)
    console.print(table)


def _check_texts(texts: Path, card: str | None, *, quiet: bool) -> None:
    check_repeats()
    check_quotes(texts)
    for name in ("A", "B") if card is None else (card,):
        found = coverage(texts, name)
        found.raise_if_open()
        if not quiet:
            counts = ", ".join(f"{count} {kind}" for kind, count in found.counts.most_common())
            console.print(f"card {name}: {found.counts.total()} numbers accounted for: {counts}")
