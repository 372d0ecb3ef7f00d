"""`specbook audit`: every derived statement of the two published cards, or every number of a run's card, recomputed."""

import json
from collections import Counter
from enum import StrEnum
from importlib import import_module
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


OUTCOMES = {"follows": "green", "elsewhere": "cyan", "differs": "red", "unknown": "red"}


@app.command()
def audit(
    card_file: Annotated[
        Path | None, typer.Argument(help="A model card, as `specbook card` writes; the two published cards if none.")
    ] = None,
    *,
    run: Annotated[str, typer.Option(help="The run that the card is about; else the one its header names.")] = "",
    card: Annotated[Card | None, typer.Option(help="Only this card.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print a list of objects.")] = False,
    checks: Annotated[bool, typer.Option("--checks", help="Print the consistency checks instead.")] = False,
    texts: Annotated[
        Path | None, typer.Option(help="Folder with card-a.txt and card-b.txt: also check quotes and completeness.")
    ] = None,
) -> None:
    """Recompute every derived statement of the published cards, or hold the numbers of CARD_FILE against its run.

    With CARD_FILE it exits with 1 if a number does not follow from the run.
    """
    if card_file is not None:
        _audit_file(card_file, run, as_json=as_json)
        return
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


def _audit_file(path: Path, run: str, *, as_json: bool) -> None:
    of_runs = import_module("analysis.publish.card_audit")  # it brings pandas, which the published cards do not need
    found = of_runs.audit_card(path, run)
    wrong = of_runs.failures(found)
    if as_json:
        print(json.dumps([one.plain() for one in found], ensure_ascii=False, indent=1))
    else:
        samples = of_runs.written_of(path, run)
        if samples and samples[0] != samples[1]:
            console.print(
                f"The run has {samples[1]} samples now and the card was written of {samples[0]}: its numbers may "
                "differ for that alone. `specbook card` writes it anew.",
                soft_wrap=True,
            )
        table = Table("line", "printed", "outcome", "the run gives", box=None)
        for one in wrong:
            printed, expected = (harmless(text, 400) for text in (one.printed, one.expected))
            table.add_row(str(one.line), printed, f"[{OUTCOMES[one.outcome]}]{one.outcome}[/]", expected)
        if wrong:
            console.print(table)
        counts = Counter(one.outcome for one in found)
        console.print(f"{len(found)} numbers: " + ", ".join(f"{counts[name]} {name}" for name in OUTCOMES))
    if wrong:
        raise typer.Exit(1)


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
