"""The chapter of the consistency checks: do the numbers of a card fit together?"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from analysis.evidence.consistency import CHECKS, OUTCOMES, Finding, Outcome, check_all
from analysis.publish.cards.marks import counts
from analysis.publish.chart import Chart
from analysis.publish.cited import Cell, cited_table, cited_text, cites, use_data
from analysis.publish.tables import Html

CONTRASTS = "one_factor_contrasts"


@dataclass(frozen=True)
class ConsistencyPage:
    """The tables and charts of the chapter."""

    findings: Sequence[Finding]

    def sentence(self) -> Html:
        """Return the counts in words."""
        found = Counter(finding.outcome for finding in self.findings)
        parts = ", ".join(f"{found[outcome]} {_WORDS[outcome]}" for outcome in OUTCOMES)
        return cited_text(
            f"{len(CHECKS)} checks make {len(self.findings)} findings: {parts}.", name="consistency-sentence"
        )

    def counts_chart(self) -> Chart:
        """Return how many findings of each check have which outcome."""
        found = Counter((_name(f.check), f.outcome) for f in self.findings)
        frame = pd.DataFrame(
            [
                {"check": _name(check.__name__), "outcome": outcome, "count": found[_name(check.__name__), outcome]}
                for check in CHECKS
                for outcome in OUTCOMES
            ]
        )
        frame = frame[frame["count"] > 0]
        words = "; ".join(f"{check}: {count} {outcome}" for check, outcome, count in frame.itertuples(index=False))
        return Chart(
            counts(frame, group="check", part="outcome", order=OUTCOMES, title="findings"),
            title="Findings by check",
            alt=f"Findings by check and outcome: {words}.",
            name="consistency-counts",
        )

    def reasons_table(self) -> Html:
        """Return why each check must hold."""
        lines: list[list[Cell]] = [
            [_name(check.__name__), (check.__doc__ or "").partition("\n")[0]] for check in CHECKS
        ]
        return cited_table(
            lines, ["check", "why it must hold"], "The checks", "consistency-reasons", wide=["why it must hold"]
        )

    def table(self, outcome: Outcome) -> Html:
        """Return the findings of one outcome, contrasts apart."""
        found = [f for f in self.findings if f.outcome == outcome and f.check != CONTRASTS]
        asked = ["what would settle it"] * (outcome != "holds")
        lines: list[list[Cell]] = [
            [f"{f.card}: {_name(f.check)}", f.subject, f.note, *([f.ask] * len(asked)), cites(f.rows)] for f in found
        ]
        headings = ["check", "about", "what was found", *asked, "rows"]
        return cited_table(
            lines,
            headings,
            f"{_WORDS[outcome].capitalize()} ({len(found)} findings)",
            f"consistency-{outcome}",
            wide=["about", "what was found", *asked],
        )

    def contrasts_table(self) -> Html:
        """Return the comparisons in which more than one factor moves, or in which a factor is not stated."""
        found = [f for f in self.findings if f.check == CONTRASTS and f.outcome != "holds"]
        held = sum(f.check == CONTRASTS and f.outcome == "holds" for f in self.findings)
        lines: list[list[Cell]] = [
            [cites(f.rows[:1]), f"\N{LEFT DOUBLE QUOTATION MARK}{f.subject}\N{RIGHT DOUBLE QUOTATION MARK}", f.note]
            for f in found
        ]
        return cited_table(
            lines,
            ["statement", "quote", "factors"],
            f"Comparisons in which more than one factor moves, or one is not stated; in {held} others one factor moves",
            "consistency-contrasts",
            wide=["quote", "factors"],
        )


_WORDS = {"holds": "hold", "fails": "fail", "underdetermined": "cannot be settled from what is printed"}


def consistency(data: str = "") -> ConsistencyPage:
    """Return the chapter's page; `data` is another folder of data than the checkout's.

    Raises:
        Problem: a published table has a bad row (file, line, reason).
    """
    use_data(data)
    return ConsistencyPage(check_all())


def _name(check: str) -> str:
    return check.replace("_", " ")
