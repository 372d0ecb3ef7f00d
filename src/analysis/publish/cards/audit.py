"""The chapter of the audit: every derived statement of the cards, recomputed from the values that they print."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import altair as alt
import pandas as pd

from analysis.evidence.audit import VERDICTS, Audited, Verdict
from analysis.evidence.audit import audit as audit_cards
from analysis.publish.cards.marks import CLICK, PART_COLOURS, counts
from analysis.publish.chart import Chart
from analysis.publish.cited import Cell, Cite, chart_columns, cited_table, cited_text, use_data
from analysis.publish.marks import sentences
from analysis.publish.style import BLACK
from analysis.publish.tables import Html

WORDS: Mapping[Verdict, str] = {
    "reproduces": "the printed digits give what is printed",
    "rounding": "they do not, but some values that round to them would",
    "fails": "no values that round to them would",
    "underdetermined": "the card does not print what the statement rests on",
}
PLURAL: Mapping[Verdict, str] = {
    "reproduces": "reproduce",
    "rounding": "hold within rounding only",
    "fails": "fail",
    "underdetermined": "cannot be settled",
}
MOST_APART = 4.0


@dataclass(frozen=True)
class AuditPage:
    """The tables and charts of the chapter."""

    results: Sequence[Audited]

    def sentence(self) -> Html:
        """Return the counts in words."""
        found = Counter(result.verdict for result in self.results)
        parts = "; ".join(f"{found[verdict]} {PLURAL[verdict]} ({WORDS[verdict]})" for verdict in VERDICTS)
        return cited_text(f"Of {len(self.results)} derived statements: {parts}.", name="audit-sentence")

    def counts_chart(self) -> Chart:
        """Return how many statements of each card have which verdict."""
        found = Counter((f"card {r.claim.card}", r.verdict) for r in self.results)
        frame = pd.DataFrame(
            [
                {"card": card, "verdict": verdict, "count": found[card, verdict]}
                for card in ("card A", "card B")
                for verdict in VERDICTS
            ]
        )
        words = "; ".join(f"{row.card} {row.count} {row.verdict}" for row in frame.itertuples(index=False, name="Row"))
        return Chart(
            counts(frame, group="card", part="verdict", order=VERDICTS, title="derived statements"),
            title="Verdicts by card",
            alt=f"Derived statements by card and verdict: {words}.",
            name="audit-counts",
        )

    def distance_chart(self) -> Chart:
        """Return how far each recomputed number lies from the printed one, in units of what its digits leave open."""
        frame = chart_columns(_distances(self.results))
        order = [verdict for verdict in VERDICTS if verdict in set(frame["verdict"])]
        scale = alt.Scale(domain=order, range=[PART_COLOURS[verdict] for verdict in order])
        base = alt.Chart(frame).encode(
            y=alt.Y("verdict:N", title=None, sort=order),
            x=alt.X("distance:Q", title="distance from the printed number, in half-widths of what it may mean"),
        )
        points = base.mark_tick(thickness=3, size=22, cursor="pointer").encode(
            color=alt.Color("verdict:N", scale=scale, legend=None),
            href="href:N",
            tooltip=[alt.Tooltip(f"{name}:N") for name in ("id", "printed", "recomputed", "verdict")],
        )
        edges = alt.Chart(pd.DataFrame({"at": [-1.0, 1.0]})).mark_rule(strokeDash=[5, 4], color=BLACK)
        words = "; ".join(f"{verdict} {int((frame['verdict'] == verdict).sum())}" for verdict in order)
        return Chart(
            alt.layer(edges.encode(x="at:Q"), points).properties(height=40 * len(order) + 20),
            title="Recomputed numbers beside the printed ones",
            alt=f"Distance of each recomputed number from the printed one, by verdict. Numbers: {words}.",
            name="audit-distance",
            note=sentences(
                "Between the dashed lines a recomputed number prints as the card prints it.",
                f"Distances beyond {MOST_APART:g} are drawn at {MOST_APART:g}.",
                CLICK.replace("point", "mark"),
            ),
        )

    def table(self, verdict: Verdict) -> Html:
        """Return the statements that have one verdict."""
        lines: list[list[Cell]] = [
            [
                Cite(f"{result.claim.card}: {result.claim.printed}", (result.claim.id,)),
                f"\N{LEFT DOUBLE QUOTATION MARK}{result.claim.quote}\N{RIGHT DOUBLE QUOTATION MARK}",
                _bounds(result),
                result.note,
            ]
            for result in self.results
            if result.verdict == verdict
        ]
        caption = f"{verdict}: {WORDS[verdict]} ({len(lines)} statements)"
        headings = ["printed", "quote", "recomputed", "finding"]
        return cited_table(lines, headings, caption, f"audit-{verdict}", wide=["quote", "finding"])


def audit(data: str = "") -> AuditPage:
    """Return the chapter's page; `data` is another folder of data than the checkout's.

    Raises:
        Problem: a published table has a bad row (file, line, reason).
    """
    use_data(data)
    return AuditPage(audit_cards())


def _bounds(result: Audited) -> Cell:
    if result.low is None or result.high is None:
        return None
    low, high = f"{float(result.low):.4g}", f"{float(result.high):.4g}"
    text = low if low == high else f"{low} to {high}"
    return f"margin {text}" if result.claim.kind == "word" else text


def _distances(results: Sequence[Audited]) -> pd.DataFrame:
    lines = []
    for result in results:
        number = result.claim.number
        if number is None or result.claim.kind != "number" or result.low is None or result.high is None:
            continue
        if result.verdict == "underdetermined" or number.interval.width == 0:
            continue
        centre = (result.low + result.high) / 2
        distance = float(2 * (centre - (number.interval.low + number.interval.high) / 2) / number.interval.width)
        lines.append(
            {
                "id": result.claim.id,
                "verdict": result.verdict,
                "printed": result.claim.printed,
                "recomputed": _bounds(result),
                "distance": max(-MOST_APART, min(MOST_APART, distance)),
            }
        )
    return pd.DataFrame(lines)
