"""What the charts of the cards share: a printed number as a bar as wide as its digits leave it, leading to its row."""

from collections.abc import Iterable, Sequence
from typing import Any

import altair as alt
import pandas as pd

from analysis.evidence.published import FACTORS, Row, depth_tokens
from analysis.publish.cited import chart_columns
from analysis.publish.style import BLACK, BLUE, GREEN, GREY, VERMILION, colour, shape

NAMES = alt.Axis(labelLimit=180)  # leaves room for the marks on a phone

# What a bar of these charts is; it is not a confidence interval.
BARS = (
    "Bars are what the printed digits, or the printed range of repeats, leave open; they are no confidence intervals."
)
CLICK = "A point leads to its row."

PART_COLOURS = {
    "reproduces": BLUE,
    "holds": BLUE,
    "rounding": GREEN,
    "fails": VERMILION,
    "underdetermined": GREY,
    "declared": BLUE,
    "audit": VERMILION,
    "later fact": GREEN,
    "book": GREY,
}


def values_frame(rows: Iterable[Row]) -> pd.DataFrame:
    """Return published values for a chart: id, card, printed, low, centre, high, depth and the stated factors."""
    return chart_columns(
        pd.DataFrame(
            {
                "id": row.id,
                "card": f"card {row.card}",
                "printed": row.printed.text,
                "low": float(row.printed.interval.low),
                "centre": float(row.printed.interval.centre),
                "high": float(row.printed.interval.high),
                "tokens": depth_tokens(row),
                **row.factors,
            }
            for row in rows
        )
    )


def bars_and_points(  # a mark has these channels
    frame: pd.DataFrame,
    *,
    series: str,
    order: Sequence[str],
    along: Any,
    across: Any,
    vertical: bool = True,
    connected: bool = False,
    offset: Any = None,
) -> Any:
    """Return points at `centre` with bars from `low` to `high`; each leads to its row.

    Args:
        frame: from `values_frame`, or with the same columns.
        series: the column that colour and shape tell apart.
        order: its values.
        along: the axis that names a row.
        across: the axis of the values, whose field is `centre`.
        vertical: values on the vertical axis.
        connected: join the points of a series.
        offset: an offset along the axis of names, so that bars of several series stand side by side.
    """
    needed = (series, str(along["shorthand"]).partition(":")[0])
    carried = frame[[name for name in frame.columns if name in needed or name not in FACTORS]]
    base = alt.Chart(carried).encode(**{"x" if vertical else "y": along}, color=colour(series, list(order)))
    if offset is not None:
        base = base.encode(**{"xOffset" if vertical else "yOffset": offset})
    title = across["title"]
    ends = (
        {"y": alt.Y("low:Q", title=title), "y2": "high:Q"}
        if vertical
        else {"x": alt.X("low:Q", title=title), "x2": "high:Q"}
    )
    centre = {"y" if vertical else "x": across}
    tooltip = [alt.Tooltip(f"{name}:N") for name in ("id", "printed", "correction") if name in frame.columns]
    points = base.mark_point(cursor="pointer").encode(
        **centre, shape=shape(series, list(order)), href="href:N", tooltip=tooltip
    )
    lines = [base.mark_line().encode(**centre)] if connected else []
    return alt.layer(*lines, base.mark_rule().encode(**ends), points)


def build_tag(row: Row) -> str:
    """Return what tells a patched build from the plain one of the same table; nothing for the plain one."""
    build = row.factors.get("build", "")
    return "rollback" if "rollback" in build else "hipCUB" if "hipCUB" in build else ""


def short_label(row: Row) -> str:
    """Return what tells a row from its neighbours, short enough for the axis of a chart on a phone."""
    factors = row.factors
    depth = factors.get("depth", "")
    where = f"{int(depth) / 1000:.3g}k" if depth.isdigit() and int(depth) >= 1000 else depth
    text = factors.get("prompt", "") if depth == "short" else factors.get("regime", "")
    n_max = f"n {factors['n_max']}" if row.card == "B" and "n_max" in factors else ""
    if text and depth == "short":
        where = ""
    if row.quantity == "acceptance" and not text:
        text = row.printed.text
    return f"{row.card}: {', '.join(part for part in (text, where, n_max, build_tag(row)) if part)}"


def counts(frame: pd.DataFrame, *, group: str, part: str, order: Sequence[str], title: str) -> Any:
    """Return stacked bars of counts: a bar for each `group`, a part for each value of `part`.

    Args:
        frame: columns `group`, `part`, `count`.
        group: what a bar stands for.
        part: what its parts stand for.
        order: the parts in order.
        title: of the axis of counts.
    """
    known = [value for value in order if value in set(frame[part])]
    scale = alt.Scale(domain=known, range=[PART_COLOURS[value] for value in known])
    base = alt.Chart(frame.assign(place=[known.index(value) for value in frame[part]])).encode(
        y=alt.Y(f"{group}:N", title=None, sort=list(dict.fromkeys(frame[group])), axis=NAMES),
        x=alt.X("count:Q", title=title, stack="zero", axis=alt.Axis(tickMinStep=1)),
        order=alt.Order("place:Q"),
        tooltip=[alt.Tooltip(f"{name}:N") for name in (group, part, "count")],
    )
    legend = alt.Legend(columns=2)
    bars = base.mark_bar().encode(color=alt.Color(f"{part}:N", scale=scale, legend=legend))
    return bars.properties(height=26 * frame[group].nunique() + 20)


def equal_line(value: float, axis: str) -> Any:
    """Return a dashed line across a chart, at a value of `x` or `y`."""
    rule = alt.Chart(pd.DataFrame({"at": [value]})).mark_rule(strokeDash=[5, 4], color=BLACK)
    return rule.encode(**{axis: "at:Q"})
