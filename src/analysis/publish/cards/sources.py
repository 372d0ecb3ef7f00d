"""The chapter of the sources: every published value and statement with its quote, where links from numbers lead."""

from collections.abc import Mapping
from dataclasses import dataclass

from analysis.evidence import claims, published
from analysis.evidence.claims import Claim
from analysis.evidence.published import Row
from analysis.publish.cited import Anchor, Cell, Noted, cited_table, cited_text, cites, use_data
from analysis.publish.tables import Html


@dataclass(frozen=True)
class SourcesPage:
    """The tables of the chapter."""

    rows: Mapping[str, Row]
    statements: Mapping[str, Claim]

    def sentence(self) -> Html:
        """Return what the page holds, in words."""
        return cited_text(
            f"{len(self.rows)} measured values and {len(self.statements)} derived statements. The quotes are the "
            "cards' words; a factor that a card does not state is left out, never guessed.",
            name="sources-sentence",
        )

    def values_table(self, card: str) -> Html:
        """Return the measured values of a card."""
        lines: list[list[Cell]] = [
            [
                Anchor(row.id, row.id),
                Noted(row.printed.text, row.id),
                f"{row.quantity.replace('_', ' ')}{f' ({row.unit})' if row.unit != '1' else ''}",
                f"\N{LEFT DOUBLE QUOTATION MARK}{row.quote}\N{RIGHT DOUBLE QUOTATION MARK} ({row.section})",
                "; ".join(f"{name.replace('_', ' ')}: {value}" for name, value in row.factors.items()) or None,
                row.note or None,
            ]
            for row in self.rows.values()
            if row.card == card
        ]
        return cited_table(
            lines,
            ["id", "printed", "quantity", "quote (section)", "stated factors", "note"],
            f"Measured values of card {card}",
            f"values-{card.lower()}",
            wide=["quote (section)", "stated factors", "note"],
        )

    def statements_table(self, card: str) -> Html:
        """Return the derived statements of a card, with the formula and the rows that each rests on."""
        lines: list[list[Cell]] = [
            [
                Anchor(claim.id, claim.id),
                Noted(claim.printed, claim.id),
                f"\N{LEFT DOUBLE QUOTATION MARK}{claim.quote}\N{RIGHT DOUBLE QUOTATION MARK} ({claim.section})",
                "; ".join(formula.text for formula in claim.formulas) or f"none: {claim.missing}",
                cites(sorted(claim.names), page=""),
            ]
            for claim in self.statements.values()
            if claim.card == card
        ]
        return cited_table(
            lines,
            ["id", "printed", "quote (section)", "formula", "rests on"],
            f"Derived statements of card {card}",
            f"said-{card.lower()}",
            wide=["quote (section)", "formula"],
        )


def sources(data: str = "") -> SourcesPage:
    """Return the chapter's page; `data` is another folder of data than the checkout's.

    Raises:
        Problem: a published table has a bad row (file, line, reason).
    """
    use_data(data)
    return SourcesPage(published.rows(), claims.claims())
