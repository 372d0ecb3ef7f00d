"""The marks that charts share: an estimate with its interval, raw points, a choice the reader makes."""

from dataclasses import dataclass
from typing import Any

import altair as alt
import pandas as pd
import pandera.pandas as pa

from analysis.publish.frames import checked, interval_texts, points_of
from analysis.publish.style import colour, order_of, shape
from analysis.records import Problem

Frame = pd.DataFrame
MOST_POINTS = 500  # drawn behind estimates that have intervals; more would hide these, and weigh the page down


@dataclass(frozen=True)
class Choice:
    """One value of a column that the reader picks; the chart shows the rows that have it."""

    column: str
    values: list[Any]
    label: str

    @property
    def offered(self) -> bool:
        """Return whether there is more than one value to pick from."""
        return len(self.values) > 1

    def narrow(self, drawing: Any) -> Any:
        """Return a drawing of the picked rows alone. Each drawing with data of its own needs this."""
        return drawing.transform_filter(f"datum.{self.column} == {self.column}_shown") if self.offered else drawing

    def parameter(self) -> Any:
        """Return the buttons."""
        buttons = alt.binding_radio(options=self.values, name=f"{self.label} ")
        return alt.param(name=f"{self.column}_shown", value=self.values[0], bind=buttons)


def with_choices(drawing: Any, *choices: Choice) -> Any:
    """Return the drawing with the buttons of the choices that are offered."""
    return drawing.add_params(*[choice.parameter() for choice in choices if choice.offered])


@dataclass(frozen=True)
class Shown:
    """The rows of a frame that may be drawn, each with its `interval` as text, and what is said of the others."""

    rows: Frame
    refusals: str


def shown(frame: Frame, schema: pa.DataFrameSchema, *, digits: int, unit: str = "") -> Shown:
    """Return the rows that no gate refused, and one sentence that names the refused ones.

    Raises:
        Problem: the frame is not valid, or nothing of it may be shown.
    """
    whole = checked(frame, schema)
    refused = whole["refused"] != ""
    rows = whole[~refused].reset_index(drop=True)
    if rows.empty:
        reasons = sorted(set(whole["refused"])) or ["the table is empty"]
        raise Problem(f"nothing to draw of {schema.name}: {'; '.join(reasons)}", remedy="show the table instead")
    rows["interval"] = interval_texts(rows, digits=digits, unit=unit)
    rows = rows.drop(columns=["n", "refused"])  # said in the text; a page need not carry them twice
    keys = [key for key in schema.unique or [] if key not in ("meaning", "position", "accepted")]
    names = {", ".join(_key(key, row[key]) for key in keys): row["refused"] for _, row in whole[refused].iterrows()}
    sentences = [f"{key} (refused: {reason})" for key, reason in names.items()]
    return Shown(rows, f"Not shown: {'; '.join(sentences)}." if sentences else "")


def _key(key: str, value: Any) -> str:
    return f"depth {value}" if key == "depth" else str(value)


def estimates(
    rows: Frame,
    x: alt.X,
    y: alt.Y,
    series: str,
    *,
    connected: bool = True,
    spread: bool = True,
    choices: tuple[Choice, ...] = (),
) -> Any:
    """Return estimates as points, their intervals as bars, and a thin line through each series.

    Args:
        rows: what `shown` returned.
        x: the horizontal axis.
        y: the axis of `estimate`; the bars run from `low` to `high` on it.
        series: the column that tells the lines apart.
        connected: whether a line joins the points of a series.
        spread: whether series that share a place stand side by side instead of on top of each other.
        choices: what the reader picks; their buttons are added by `with_choices`.
    """
    values = order_of(rows[series])
    base = alt.Chart(rows).encode(x=x, color=colour(series, values))
    for choice in choices:
        base = choice.narrow(base)
    if spread:
        base = base.encode(xOffset=alt.XOffset(f"{series}:N", scale=alt.Scale(domain=values, paddingOuter=1)))
    tooltip = [alt.Tooltip(f"{field}:N") for field in tooltip_fields(rows)]
    bars = interval_bars(base, rows["low"], y=alt.Y("low:Q", title=y["title"]), y2="high:Q")
    dots = base.mark_point().encode(y=y, shape=shape(series, values), tooltip=tooltip)
    lines = [base.mark_line().encode(y=y)] if connected else []
    return alt.layer(*lines, *bars, dots)


def interval_bars(base: Any, ends: "pd.Series[float]", **channels: Any) -> list[Any]:
    """Return the bars of the rows that have an interval, as a list that is empty where no row has one.

    Args:
        base: a chart of the rows.
        ends: their lower ends; its name is the column.
        channels: where the bars lie.
    """
    if ends.isna().all():
        return []
    return [base.transform_filter(f"isValid(datum.{ends.name})").mark_rule().encode(**channels)]


def said_of_intervals(rows: Frame, points: Frame | None = None) -> str:
    """Return what a note says of bars, of their absence, and of small points."""
    missing = rows["low"].isna()
    return sentences(
        "" if missing.all() else "Bars are 95 % intervals.",
        "Where there is no bar, an interval needs more prompts, most of all near a ceiling." if missing.any() else "",
        "" if points is None else "Small hollow points are single prompts.",
    )


def own_values(
    points: Frame,
    schema: pa.DataFrameSchema,
    rows: Frame,
    x: alt.X,
    y: alt.Y,
    *,
    choices: tuple[Choice, ...] = (),
) -> Any:
    """Return each prompt's own value as a small hollow point where its estimate stands.

    Where there are very many, only those are drawn whose estimate has no interval.

    Raises:
        Problem: the points are not valid.
    """
    keys = list(schema.unique or [])
    own = checked(points, points_of(schema)).merge(rows[[*keys, "low"]], on=keys)
    if len(own) > MOST_POINTS:
        own = own[own["low"].isna()]
    values = order_of(rows["regime"])
    base = alt.Chart(own.drop(columns="low"))
    for choice in choices:
        base = choice.narrow(base)
    # Hidden from screen readers: dozens of points without a name; the chart's description and the table say it.
    return base.mark_point(filled=False, size=24, opacity=0.5, aria=False).encode(
        x=x,
        y=alt.Y("value:Q", title=y["title"], scale=y["scale"]),
        xOffset=alt.XOffset("regime:N", scale=alt.Scale(domain=values, paddingOuter=1)),
        color=colour("regime", values),
        tooltip=[alt.Tooltip("prompt:N"), alt.Tooltip("value:Q", format=".3g")],
    )


def tooltip_fields(rows: Frame) -> list[str]:
    """Return the columns that a pointer over a row shows: its keys, then the interval and its method."""
    hidden = {"estimate", "low", "high", "n", "refused", "interval", "method", "length_low", "length_high"}
    keys = [str(name) for name in rows.columns if name not in hidden]
    return [*keys, "interval", *(["method"] if (rows["method"] != "").any() else [])]


def first_to_last(rows: Frame, series: str, along: str) -> str:
    """Return in words where each series begins and ends: `recall from 0.87 at 1 to 0.38 at 5; ...`."""
    parts = []
    for value in order_of(rows[series]):
        line = rows[rows[series] == value].sort_values(along)
        first, last = line.iloc[0], line.iloc[-1]
        begin = f"{value} {first['estimate']:.3g} at {first[along]:g}"
        parts.append(begin if len(line) == 1 else f"{begin} to {last['estimate']:.3g} at {last[along]:g}")
    return "; ".join(parts)


def sentences(*parts: str) -> str:
    """Return the parts that are not empty as one paragraph."""
    return " ".join(part.strip() for part in parts if part.strip())
