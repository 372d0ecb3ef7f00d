"""The chapter of the corrections: what was claimed, what replaced it, how it was found."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import get_args

import pandas as pd

from analysis.evidence.corrections import Correction, Kind
from analysis.evidence.corrections import corrections as ledger
from analysis.publish.cards.marks import counts
from analysis.publish.chart import Chart
from analysis.publish.cited import Anchor, Cell, cited_table, cited_text, cites, use_data
from analysis.publish.tables import Html

KINDS: tuple[Kind, ...] = get_args(Kind)
WORDS = {
    "declared": "declared by the card itself",
    "audit": "found by recomputing",
    "later fact": "from what became public since",
    "book": "of this book",
}


@dataclass(frozen=True)
class CorrectionsPage:
    """The tables and charts of the chapter."""

    entries: Sequence[Correction]

    def sentence(self) -> Html:
        """Return the counts in words."""
        found = Counter(entry.kind for entry in self.entries)
        parts = ", ".join(f"{found[kind]} {WORDS[kind]}" for kind in KINDS)
        return cited_text(f"The ledger has {len(self.entries)} entries: {parts}.", name="corrections-sentence")

    def counts_chart(self) -> Chart:
        """Return how many corrections of each kind each card has."""
        found = Counter((_card(entry), entry.kind) for entry in self.entries)
        frame = pd.DataFrame(
            [{"card": card, "kind": kind, "count": count} for (card, kind), count in sorted(found.items())]
        )
        words = "; ".join(f"{card}: {count} {kind}" for card, kind, count in frame.itertuples(index=False))
        return Chart(
            counts(frame, group="card", part="kind", order=KINDS, title="corrections"),
            title="Corrections by card and by who found them",
            alt=f"Corrections by card and kind: {words}.",
            name="corrections-counts",
        )

    def table(self, kind: Kind) -> Html:
        """Return the corrections of one kind, each with the numbers it applies to."""
        if all(entry.kind != kind for entry in self.entries):
            return cited_text("None so far.", name=f"corrections-{kind.replace(' ', '-')}")
        lines: list[list[Cell]] = [
            [
                Anchor(_card(entry), f"correction-{entry.id}"),
                entry.claimed,
                entry.replaced_by,
                f"{entry.found} {f'({entry.source})' if entry.source else ''}".strip(),
                cites(entry.applies_to),
            ]
            for entry in self.entries
            if entry.kind == kind
        ]
        return cited_table(
            lines,
            ["card", "claimed", "replaced by", "how it was found", "applies to"],
            f"Corrections {WORDS[kind]}",
            f"corrections-{kind.replace(' ', '-')}",
            wide=["claimed", "replaced by", "how it was found"],
            notes=False,
        )


def corrections(data: str = "") -> CorrectionsPage:
    """Return the chapter's page; `data` is another folder of data than the checkout's.

    Raises:
        Problem: a published table has a bad row (file, line, reason).
    """
    use_data(data)
    return CorrectionsPage(list(ledger().values()))


def _card(entry: Correction) -> str:
    return f"card {entry.card}" if entry.card else "this book"
