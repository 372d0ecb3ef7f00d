"""The chapter of the cards' economics: verdicts, break-even, the step as a law and as bytes that must move."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import altair as alt
import pandas as pd

from analysis.evidence import cells, published, step_law, step_model
from analysis.evidence.consistency.steps import step_points
from analysis.evidence.frames import break_even_grid
from analysis.evidence.published import Row
from analysis.evidence.step_law import Law
from analysis.evidence.step_model import Predicted
from analysis.publish.cards.lines import bounds, cell_name, law_lines, model_line, ratio, text, verdict, verdict_line
from analysis.publish.cards.marks import BARS, CLICK, NAMES, bars_and_points, equal_line
from analysis.publish.chart import Chart
from analysis.publish.cited import Cell, Cite, chart_columns, cite, cited_table, cited_text, corrected, use_data
from analysis.publish.frames import VERDICTS
from analysis.publish.marks import sentences
from analysis.publish.style import BLACK, BLUE, GREY, HEIGHT
from analysis.publish.tables import Html

MANY = 3  # tokens drafted, from which on card B's steps grow faster than their bytes
LAW_TOKENS = {"A": "mean accepted length (tokens)", "B": "drafted tokens"}


@dataclass(frozen=True)
class PublishedEconomicsPage:
    """The tables and charts of the chapter."""

    rows: Mapping[str, Row]
    drafted: list[cells.Drafted]

    def sentence(self) -> Html:
        """Return how many published cells have which verdict."""
        found = [verdict(cell) for cell in self._with_raw()]
        words = ", ".join(f"{name} in {found.count(name)}" for name in VERDICTS)
        machines = " and ".join(
            sorted({row.factors["machine"] for row in self.rows.values() if "machine" in row.factors})
        )
        return cited_text(
            f"Of {len(found)} published cells with a raw rate beside them, drafting {words}. Here an interval is what "
            f"the printed digits leave open: single measurements on {machines}, most without repeats.",
            name="economics-sentence",
        )

    def verdict_chart(self) -> Chart:
        """Return drafted over raw decode rate of every published cell that has both."""
        frame = chart_columns(pd.DataFrame(verdict_line(cell) for cell in self._with_raw()))
        drawing = bars_and_points(
            frame,
            series="verdict",
            order=[name for name in VERDICTS if name in set(frame["verdict"])],
            along=alt.Y("cell:N", title=None, sort=list(frame["cell"]), axis=NAMES),
            across=alt.X(
                "centre:Q", title="drafted / raw (1 = as fast as raw)", scale=alt.Scale(zero=False, padding=12)
            ),
            vertical=False,
        )
        words = "; ".join(f"{r.cell} {r.centre:.2f}, {r.verdict}" for r in frame.itertuples())
        return Chart(
            alt.layer(equal_line(1.0, "x"), drawing).properties(height=19 * len(frame) + 20),
            title="Drafted against raw decoding in every published cell",
            alt=f"Ratio of drafted to raw decode rate: {words}.",
            name="published-verdicts",
            note=sentences("The dashed line is raw decoding.", BARS, CLICK, corrected(frame["id"])),
        )

    def verdict_table(self) -> Html:
        """Return the same as a table, with the length that a cell needs and the one it has."""
        lines: list[list[Cell]] = []
        for cell in self._with_raw():
            assert cell.raw is not None
            line = verdict_line(cell)
            lines.append(
                [
                    cell_name(cell),
                    cite(cell.raw.id),
                    cite(cell.row.id),
                    text(ratio(cell), 2),
                    line["verdict"],
                    text(cell.raw_steps, 2),
                    text(cell.length, 2),
                ]
            )
        headings = ["cell", "raw", "drafted", "drafted / raw", "verdict", "length needed", "length"]
        caption = "Does it pay? Decode rates (tokens/s), and mean accepted length where the card prints an acceptance"
        return cited_table(lines, headings, caption, "published-verdicts-table")

    def break_even_chart(self) -> Chart:
        """Return card A's break-even acceptance by step, beside the acceptance that it prints at each step."""
        grid = break_even_grid()
        measured = chart_columns(pd.DataFrame(self._at_steps()))
        low, high = grid["acceptance"].min(), grid["acceptance"].max()
        words = "; ".join(f"{r.step_ms:g} ms {r.printed}" for r in measured.itertuples())
        return Chart(
            alt.layer(_needed_lines(grid), *_printed_squares(measured)).properties(height=HEIGHT),
            title="Card A at its greatest depth: acceptance needed (lines) and printed (squares)",
            alt=f"The acceptance needed lies between {low:.2f} and {high:.2f}. Printed by step: {words}.",
            name="published-break-even",
            note=sentences(
                f"The envelope of the lines runs from {low:.2f} to {high:.2f}.",
                "A square above both lines would pay; one between them is undecided.",
                f"Machine: {self.rows['a_step_054'].factors['machine']}.",
                BARS,
            ),
        )

    def break_even_table(self) -> Html:
        """Return the published grid rebuilt: break-even acceptance for each step and either end of the raw rate."""
        grid = break_even_grid()
        rates = sorted(set(grid["raw"]))
        lines: list[list[Cell]] = []
        for name, group in grid.groupby("step", sort=False):
            by_rate = group.set_index("raw")
            beside = f"{name}_acceptance"
            lines.append(
                [
                    cite(str(name)),
                    *(
                        Cite(
                            f"{by_rate.loc[rate, 'acceptance']:.3f} ({by_rate.loc[rate, 'acceptance_low']:.3f} to "
                            f"{by_rate.loc[rate, 'acceptance_high']:.3f})",
                            (str(name), "a_raw176", "a_n_max_176k"),
                        )
                        for rate in rates
                    ),
                    cite(beside) if beside in self.rows else None,
                ]
            )
        lines.append(
            [
                "envelope",
                *(f"{g.min():.3f} to {g.max():.3f}" for _, g in grid.groupby("raw")["acceptance"]),
                cite("a_c_break_even"),
            ]
        )
        headings = ["step", *(f"at raw {rate:g} tokens/s" for rate in rates), "printed acceptance"]
        return cited_table(
            lines, headings, "Card A, break-even acceptance (raw x step - 1) / n", "published-break-even-table"
        )

    def law_chart(self, card: str) -> Chart:
        """Return a card's steps by tokens with the line that fits them best."""
        law = self._law(card)
        frame = chart_columns(pd.DataFrame(law_lines(law)))
        ends = (frame["tokens"].min(), frame["tokens"].max())
        line = pd.DataFrame({"tokens": ends, "ms": [float(law.fixed) + float(law.per_token) * t for t in ends]})
        scale = alt.Scale(zero=False, padding=16)
        x = alt.X("tokens:Q", title=LAW_TOKENS[card], scale=scale)
        base = alt.Chart(frame).encode(x=x)
        y = alt.Y("ms:Q", title="step (ms)", scale=scale)
        drawing = alt.layer(
            alt.Chart(line).mark_line(color=GREY, strokeDash=[5, 4]).encode(x=x, y=y),
            base.mark_rule(color=BLUE).encode(y=alt.Y("low:Q", title="step (ms)"), y2="high:Q"),
            alt.Chart(frame)
            .mark_rule(color=BLUE)
            .encode(x=alt.X("tokens_low:Q", title=x["title"]), x2="tokens_high:Q", y=y),
            base.mark_point(color=BLUE, cursor="pointer").encode(
                y=y, href="href:N", tooltip=[alt.Tooltip("id:N"), alt.Tooltip("shown:N")]
            ),
        )
        words = "; ".join(f"{r.tokens:.3g} tokens {r.ms:.4g} ms" for r in frame.itertuples())
        return Chart(
            drawing.properties(height=HEIGHT),
            title=f"Card {card}: {_LAW_TITLES[card]}",
            alt=f"Milliseconds a step by {LAW_TOKENS[card]}: {words}.",
            name=f"step-law-{card.lower()}",
            note=sentences("The dashed line fits the points best.", BARS, CLICK, corrected(frame["id"])),
        )

    def law_sentence(self, card: str) -> Html:
        """Return what a card's digits allow one to say of the law, and what they do not."""
        law = self._law(card)
        said = (
            "No straight line passes through all points, so that the law does not hold for what is printed. "
            if law.slopes is None
            else f"Lines with {text(law.slopes, 1)} ms a token pass through all points. "
        )
        between = [float(slope.centre) for slope in law.between]
        worst = max(abs(float(residual)) for residual in law.residuals)
        return cited_text(
            f"The line that fits best has a fixed part of {float(law.fixed):.0f} ms and {float(law.per_token):.1f} ms "
            f"for each {_LAW_TOKEN[card]} token, and misses a point by up to {worst:.1f} ms. {said}From one point to "
            f"the next, a token adds between {min(between):.1f} and {max(between):.1f} ms. {_LAW_LIMITS[card]}",
            name=f"step-law-{card.lower()}-sentence",
        )

    def law_table(self, card: str) -> Html:
        """Return a card's steps by tokens, and what a token adds from one to the next."""
        law = self._law(card)
        added = [None, *law.between]
        lines: list[list[Cell]] = [
            [
                Cite(text(point.tokens, 2), point.ids),
                Cite(text(point.ms, 1), point.ids),
                None if slope is None else text(slope, 1),
                f"{float(residual):+.1f}",
            ]
            for point, slope, residual in zip(law.points, added, law.residuals, strict=True)
        ]
        headings = [LAW_TOKENS[card], "step (ms)", "added by a token (ms)", "above the line (ms)"]
        return cited_table(lines, headings, f"Card {card}, {_LAW_TITLES[card]}", f"step-law-{card.lower()}-table")

    def model_chart(self) -> Chart:
        """Return the step that bytes over bandwidth predict beside the step that each card implies."""
        frame = chart_columns(pd.DataFrame(model_line(p) for p in self._predicted()))
        order = list(frame["cell"])
        y = alt.Y("cell:N", title=None, sort=order, axis=NAMES)
        title = "drafted step in raw steps"
        base = alt.Chart(frame).encode(y=y)
        drawing = alt.layer(
            base.mark_bar(color=GREY, opacity=0.35, height=10).encode(x=alt.X("low:Q", title=title), x2="high:Q"),
            base.mark_point(color=BLUE, cursor="pointer").encode(
                x=alt.X("measured:Q", title=title), href="href:N", tooltip=[alt.Tooltip("id:N"), alt.Tooltip("shown:N")]
            ),
        )
        words = "; ".join(
            f"{r.cell} measured {r.measured:.2f}, model {r.low:.2f} to {r.high:.2f}" for r in frame.itertuples()
        )
        return Chart(
            drawing.properties(height=19 * len(frame) + 20),
            title="The drafted step as bytes over bandwidth, and as the cards imply it",
            alt=f"Drafted steps in raw steps: {words}.",
            name="step-model",
            note=sentences(
                "A grey bar runs from rows that all need the same experts to rows that are routed independently;",
                "points are what the cards imply.",
                CLICK,
            ),
        )

    def model_sentence(self) -> Html:
        """Return how far the model is off."""
        found = self._predicted()
        factor = step_model.missed_by(found)
        deep = [p for p in found if (p.cell.n or 0) >= MANY and p.cell.row.card == "B"]
        return cited_text(
            f"Held against {len(found)} published cells, the measured step is {float(factor.low):.2f} to "
            f"{float(factor.high):.2f} times that of rows routed independently. The model is furthest off where many "
            f"rows are verified ({len(deep)} cells of card B with n_max {MANY} or more): it knows the bytes, not the "
            "kernels. Two things it does not know: which drafter file most rows were measured with, and how alike the "
            "rows of a draft are routed.",
            name="step-model-sentence",
        )

    def model_table(self) -> Html:
        """Return the same as a table, with the model's error and the bandwidth that each raw rate asks for."""
        lines: list[list[Cell]] = [
            [
                cell_name(p.cell),
                Cite(text(p.measured, 2), (p.cell.row.id,)),
                f"{float(p.raw_steps.low):.2f} to {float(p.raw_steps.high):.2f}",
                f"{float(p.error.low):+.0f} to {float(p.error.high):+.0f} %",
                f"{float(p.bandwidth.centre):.0f}",
                "stated" if p.drafter_stated else "assumed",
            ]
            for p in self._predicted()
        ]
        headings = [
            "cell",
            "measured (raw steps)",
            "model (raw steps)",
            "model's error",
            "bandwidth needed (GB/s)",
            "drafter file",
        ]
        return cited_table(lines, headings, "The step model beside the published cells", "step-model-table")

    def _with_raw(self) -> list[cells.Drafted]:
        return [cell for cell in self.drafted if cell.raw is not None]

    def _at_steps(self) -> list[dict[str, Any]]:
        lines = []
        for _, ms, name in step_points(self.rows, "A"):
            row = self.rows[f"{name}_acceptance"]
            line = {"id": row.id, "printed": row.printed.text, "step_ms": float(ms.centre)}
            lines.append(line | bounds(row.printed.interval))
        return lines

    def _law(self, card: str) -> Law:
        return step_law.by_accepted(self.rows) if card == "A" else step_law.by_drafted(self.rows)

    def _predicted(self) -> list[Predicted]:
        return step_model.compare(self.rows)


def _needed_lines(grid: pd.DataFrame) -> Any:
    """Return break-even acceptance by step, one line a raw rate."""
    rates = grid.assign(rate=[f"raw {rate:g} t/s" for rate in grid["raw"]])
    return (
        alt.Chart(rates)
        .mark_line(point=True)
        .encode(
            x=alt.X("step_ms:Q", title="step (ms)", scale=alt.Scale(zero=False)),
            y=alt.Y("acceptance:Q", title="acceptance", scale=alt.Scale(domain=[0, 1])),
            color=alt.Color("rate:N", scale=alt.Scale(range=[BLUE, GREY])),
            tooltip=[alt.Tooltip(f"{name}:N") for name in ("step", "rate")],
        )
    )


def _printed_squares(measured: pd.DataFrame) -> tuple[Any, Any]:
    """Return the bars and the squares of printed acceptances by step."""
    base = alt.Chart(measured)
    bars = base.mark_rule(color=BLACK).encode(x="step_ms:Q", y=alt.Y("low:Q", title="acceptance"), y2="high:Q")
    points = base.mark_point(color=BLACK, shape="square", cursor="pointer").encode(
        x="step_ms:Q",
        y=alt.Y("centre:Q", title="acceptance"),
        href="href:N",
        tooltip=[alt.Tooltip("printed:N")],
    )
    return bars, points


_LAW_TITLES = {"A": "the step by accepted length, one depth and n_max", "B": "the step by n_max, short prompt"}
_LAW_TOKEN = {"A": "accepted", "B": "drafted"}
_LAW_LIMITS = {
    "A": "What the card does not print, and a law would need: the duration of single steps with what each accepted, "
    "and which of the points share a prompt.",
    "B": "Accepted and drafted tokens rise together in this table, so that the two parts cannot be told apart; "
    "the steps are implied by rate and acceptance, not measured.",
}


def published_economics(data: str = "") -> PublishedEconomicsPage:
    """Return the chapter's page; `data` is another folder of data than the checkout's.

    Raises:
        Problem: a published table has a bad row (file, line, reason).
    """
    use_data(data)
    rows = published.rows()
    return PublishedEconomicsPage(rows, cells.drafted(rows))
