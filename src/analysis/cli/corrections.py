"""`specbook corrections`: the ledger of what was claimed, what replaced it and how it was found."""

from typing import Annotated

import typer
from rich.table import Table

from analysis.cli import app
from analysis.cli.audit import Card
from analysis.cli.show import console, harmless
from analysis.evidence.corrections import corrections as ledger


@app.command()
def corrections(card: Annotated[Card | None, typer.Option(help="Only corrections of this card.")] = None) -> None:
    """List the corrections that the cards declare, that the audit and later facts add, and the book's own."""
    table = Table("card", "kind", "claimed", "replaced by", "how it was found", box=None)
    for entry in ledger().values():
        if card is None or entry.card == card.value:
            texts = (harmless(text, 400) for text in (entry.claimed, entry.replaced_by, entry.found))
            table.add_row(entry.card or "–", entry.kind, *texts)
    console.print(table)
