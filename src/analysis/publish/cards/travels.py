"""The chapter of what travels: which published numbers may be carried to other hardware, and which may not."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import altair as alt
import pandas as pd

from analysis.evidence import published
from analysis.evidence.choices import Choice, choices
from analysis.evidence.published import Row
from analysis.publish.cards.marks import BARS, CLICK, NAMES, bars_and_points, short_label
from analysis.publish.chart import Chart
from analysis.publish.cited import (
    Cell,
    Cite,
    Several,
    chart_columns,
    cite,
    cited_table,
    cited_text,
    corrected,
    use_data,
)
from analysis.publish.marks import sentences
from analysis.publish.style import BLACK
from analysis.publish.tables import Html


@dataclass(frozen=True)
class Kind:
    """A kind of published quantity: does it travel, and what decides it."""

    travels: str
    quantities: tuple[str, ...]
    why: str


KINDS = (
    Kind(
        "with the pair and the text",
        ("acceptance", "mean_accepted_length", "accepted_tokens", "identical_output", "drafted_tokens"),
        "Decided by target, drafter, text, depth and quantization. Not by how fast a machine is; kernels that round "
        "differently can move it a little.",
    ),
    Kind(
        "with the file",
        (
            "file_size",
            "parameters",
            "tensors",
            "blocks",
            "block_size",
            "vocabulary",
            "layers",
            "compression_ratio",
            "perplexity",
            "chunks",
            "logit_difference",
        ),
        "A property of the model or of its file.",
    ),
    Kind(
        "not: it is the machine's",
        ("decode", "derived_decode", "step", "transfer_time", "cpu_load", "memory_used", "memory_free", "memory"),
        "Decided by bandwidth, kernels, backend and build. A verdict built on it stays on that machine.",
    ),
    Kind(
        "with the build",
        ("reads", "transfer_size", "column_limit", "bad_indices", "columns", "evictions"),
        "A property of the program that ran; another version has another.",
    ),
    Kind(
        "a setting, not a result",
        ("depth", "distance", "n_max", "p_min", "context_size"),
        "Chosen by whoever measured.",
    ),
)


@dataclass(frozen=True)
class TravelsPage:
    """The tables and charts of the chapter."""

    rows: Mapping[str, Row]
    choices: list[Choice]

    def sentence(self) -> Html:
        """Return how far the cards can show what travels."""
        machines = sorted({row.factors["machine"] for row in self.rows.values() if "machine" in row.factors})
        return cited_text(
            f"The rows that name a machine name {len(machines)}: {'; '.join(machines)}. Both are the same kind, so "
            "that the cards cannot show that an acceptance travels; they can show how much a verdict moves when the "
            "step does.",
            name="travels-sentence",
        )

    def chart(self) -> Chart:
        """Return the length that each acceptance means beside the length that each published economy needs."""
        lengths = chart_columns(pd.DataFrame(_length_line(c) for c in self._plain()))
        needed = pd.DataFrame(self._needed())
        title = "tokens a step: accepted (points), needed (lines)"
        drawing = bars_and_points(
            lengths,
            series="card",
            order=["card A", "card B"],
            along=alt.Y("row:N", title=None, sort=list(lengths["row"]), axis=NAMES),
            across=alt.X("centre:Q", title=title, scale=alt.Scale(zero=False, padding=12)),
            vertical=False,
        )
        rules = alt.Chart(needed).mark_rule(strokeDash=[5, 4], color=BLACK).encode(x=alt.X("needed:Q", title=title))
        middle = (lengths["centre"].min() + lengths["centre"].max()) / 2
        left, right = needed["needed"] <= middle, needed["needed"] > middle
        labels = [_labels(needed[left], title, "left", 3), _labels(needed[right], title, "right", -3)]
        words = "; ".join(f"{r.row} {r.centre:.2f}" for r in lengths.itertuples())
        bars = "; ".join(f"{r.label} {r.needed:.2f}" for r in needed.itertuples())
        return Chart(
            alt.layer(rules, drawing, *labels).properties(height=20 * len(lengths) + 40),
            title="The same acceptance under two economies of one kind of machine",
            alt=f"Mean accepted length by row: {words}. Needed: {bars}.",
            name="travels",
            note=sentences(
                "A point to the right of a line would pay there, if drafter, target and n were those of the line.",
                BARS,
                CLICK,
                corrected(lengths["id"]),
            ),
        )

    def table(self) -> Html:
        """Return which quantities travel, why, and the rows that each card has of them."""
        lines: list[list[Cell]] = []
        for kind in KINDS:
            found = [row for row in self.rows.values() if row.quantity in kind.quantities]
            lines.append(
                [
                    kind.travels,
                    Several(tuple(_first(found, quantity) for quantity in kind.quantities)),
                    kind.why,
                    len(found),
                ]
            )
        headings = ["travels", "quantities", "why", "rows"]
        return cited_table(
            lines, headings, "What travels to other hardware", "travels-table", wide=["quantities", "why"]
        )

    def _plain(self) -> list[Choice]:
        return [c for c in self.choices if not c.row.id.startswith("a_step_")]

    def _needed(self) -> list[dict[str, object]]:
        by_id = {c.row.id: c for c in self.choices}
        lines: list[dict[str, object]] = []
        for name, label in (("a_code176_acceptance", "card A, deep"), ("a_vision_acceptance", "card A, short")):
            choice = by_id[name]
            if choice.raw is not None and choice.step is not None:
                lines.append({"label": label, "needed": float((choice.raw * choice.step / 1000).centre)})
        return lines


def _labels(needed: pd.DataFrame, title: str, align: Literal["left", "right"], dx: int) -> alt.Chart:
    """Return the names of lines, on the side of each that has room in a narrow plot."""
    made: alt.Chart = (
        alt.Chart(needed)
        .mark_text(align=align, baseline="top", dx=dx, dy=2, fontSize=11)
        .encode(x=alt.X("needed:Q", title=title), y=alt.value(0), text="label:N")
    )
    return made


def travels(data: str = "") -> TravelsPage:
    """Return the chapter's page; `data` is another folder of data than the checkout's.

    Raises:
        Problem: a published table has a bad row (file, line, reason).
    """
    use_data(data)
    rows = published.rows()
    return TravelsPage(rows, choices(rows))


def _length_line(choice: Choice) -> dict[str, object]:
    """Return one acceptance as the chart's row: what it is of, and the mean accepted length that it means."""
    length = choice.length
    row = choice.row
    return {
        "id": row.id,
        "row": short_label(row),
        "card": f"card {row.card}",
        "printed": row.printed.text,
        "low": float(length.low),
        "centre": float(length.centre),
        "high": float(length.high),
    }


def _first(rows: list[Row], quantity: str) -> Cite:
    """Return a quantity with how many rows have it, leading to the first of them."""
    found = [row for row in rows if row.quantity == quantity]
    return cite(found[0].id, f"{quantity.replace('_', ' ')} ({len(found)})")
