"""The charts of the book: a table in, a `Chart` out. Columns and units are those of `analysis.publish.frames`.

Intervals are bars with their estimate as a point. Refused rows are never drawn: the note below the chart names them
with their reason. Every function raises `Problem` where its table is not valid or nothing of it may be shown.
"""

from typing import Any

import altair as alt
import pandas as pd

from analysis.publish.chart import Chart
from analysis.publish.formats import format_interval
from analysis.publish.frames import (
    ACCEPTANCE,
    DEPTH,
    DIFFERENCE,
    MACHINES,
    MEANINGS,
    RATE_BY_LENGTH,
    RATE_CURVE,
    RATIO,
    SINGLE,
    STEP_COST,
    SWEEP,
    checked,
)
from analysis.publish.marks import (
    Choice,
    estimates,
    first_to_last,
    interval_bars,
    own_values,
    said_of_intervals,
    sentences,
    shown,
    tooltip_fields,
    with_choices,
)
from analysis.publish.style import BLACK, BLUE, GREY, HEIGHT, colour, order_of, shape
from analysis.records import Problem

__all__ = [
    "Chart",
    "acceptance_by_position",
    "break_even",
    "decode_vs_raw",
    "depth_by_regime",
    "differences",
    "ratios_of_machines",
    "step_cost",
    "sweep_parts",
]

Frame = pd.DataFrame


def acceptance_by_position(
    frame: Frame,
    *,
    name: str,
    title: str = "Acceptance by draft position",
    points: Frame | None = None,
    note: str = "",
) -> Chart:
    """Return acceptance against draft position, one line a regime; the reader picks meaning and depth.

    Args:
        frame: `ACCEPTANCE`; any number of regimes, depths and meanings.
        name: the chart's anchor.
        title: the chart's title.
        points: each prompt's own value, `points_of(ACCEPTANCE)`.
        note: what to add below the chart.
    """
    drawn = shown(frame, ACCEPTANCE, digits=2)
    rows = drawn.rows
    meanings, depths = order_of(rows["meaning"], MEANINGS), sorted(int(depth) for depth in set(rows["depth"]))
    x = alt.X("position:O", title="draft position")
    y = alt.Y("estimate:Q", title="acceptance", scale=alt.Scale(domain=[0, 1]))
    choices = (Choice("meaning", meanings, "meaning"), Choice("depth", depths, "depth in tokens"))
    drawing = estimates(rows, x, y, "regime", choices=choices)
    if points is not None:
        drawing += own_values(points, ACCEPTANCE, rows, x, y, choices=choices)
    at_first = rows[(rows["meaning"] == meanings[0]) & (rows["depth"] == depths[0])]
    words = first_to_last(at_first, "regime", "position")
    return Chart(
        with_choices(drawing, *choices).properties(height=HEIGHT),
        title=title,
        alt=f"{meanings[0].capitalize()} by draft position at depth {depths[0]}: {words}.",
        name=name,
        note=sentences(said_of_intervals(drawn.rows, points), note, drawn.refusals),
    )


def depth_by_regime(
    frame: Frame,
    *,
    name: str,
    quantity: str,
    title: str = "",
    digits: int = 2,
    points: Frame | None = None,
    note: str = "",
) -> Chart:
    """Return one quantity against depth, one line a regime.

    Args:
        frame: `DEPTH`; `estimate` is the quantity.
        name: the chart's anchor.
        quantity: what `estimate` is, with its unit: "mean accepted length (tokens)".
        title: the chart's title; by default the quantity by depth and regime.
        digits: decimals of the values shown under the pointer.
        points: each prompt's own value, `points_of(DEPTH)`.
        note: what to add below the chart.
    """
    drawn = shown(frame, DEPTH, digits=digits)
    x = alt.X("depth:O", title="depth (tokens in the cache)")
    y = alt.Y("estimate:Q", title=quantity, scale=alt.Scale(zero=False))
    drawing = estimates(drawn.rows, x, y, "regime")
    if points is not None:
        drawing += own_values(points, DEPTH, drawn.rows, x, y)
    return Chart(
        drawing.properties(height=HEIGHT),
        title=title or f"{quantity[:1].upper()}{quantity[1:]} by depth and regime",
        alt=f"{quantity[:1].upper()}{quantity[1:]} by depth: {first_to_last(drawn.rows, 'regime', 'depth')}.",
        name=name,
        note=sentences(said_of_intervals(drawn.rows, points), note, drawn.refusals),
    )


def step_cost(frame: Frame, *, name: str, machine: str, title: str = "What a step costs", note: str = "") -> Chart:
    """Return the duration of a step (ms) against the tokens it accepted, one line a series.

    Args:
        frame: `STEP_COST`.
        name: the chart's anchor.
        machine: where it was measured; a step cost is never shown without it.
        title: the chart's title.
        note: what to add below the chart.
    """
    drawn = shown(frame, STEP_COST, digits=1, unit="ms")
    x = alt.X("accepted:O", title="accepted tokens of the step")
    y = alt.Y("estimate:Q", title="step (ms)", scale=alt.Scale(zero=True))
    return Chart(
        estimates(drawn.rows, x, y, "series").properties(height=HEIGHT),
        title=title,
        alt=f"Milliseconds a step by accepted tokens: {first_to_last(drawn.rows, 'series', 'accepted')}.",
        name=name,
        note=sentences(said_of_intervals(drawn.rows), _measured_on(machine), note, drawn.refusals),
    )


def sweep_parts(frame: Frame, *, name: str, factor: str, values: list[str], machine: str, note: str = "") -> Chart:
    """Return the speed ratio against the values of a factor, or one of its two parts; the reader picks which.

    Args:
        frame: `SWEEP`.
        name: the chart's anchor.
        factor: what was varied, as the axis says it.
        values: its values in the order of the axis.
        machine: where it was measured.
        note: what to add below the chart.
    """
    drawn = shown(frame, SWEEP, digits=2)
    rows = drawn.rows
    parts = order_of(rows["part"], ("ratio", "tokens an evaluation", "cost of an evaluation"))
    x = alt.X("value:N", title=factor, sort=values, axis=alt.Axis(labelAngle=0))
    y = alt.Y("estimate:Q", title="speed ratio, or the part picked", scale=alt.Scale(zero=False))
    choice = Choice("part", parts, "part")
    drawing = estimates(rows, x, y, "regime", choices=(choice,))
    ratios = rows[rows["part"] == parts[0]]
    words = "; ".join(f"{row.regime} {row.estimate:.2f} at {row.value}" for row in ratios.itertuples())
    return Chart(
        with_choices(drawing, choice).properties(height=HEIGHT),
        title=f"What {factor} does",
        alt=f"Speed ratio of drafted to raw decoding by {factor}: {words}.",
        name=name,
        note=sentences(said_of_intervals(rows), _measured_on(machine), note, drawn.refusals),
    )


def differences(frame: Frame, *, name: str, margin: float, machines: str, note: str = "") -> Chart:
    """Return paired differences of acceptance between two machines, beside the margin they were to lie within.

    Args:
        frame: `DIFFERENCE`.
        name: the chart's anchor.
        margin: in accepted over drafted tokens.
        machines: which two, as the axis says it.
        note: what to add below the chart.
    """
    drawn = shown(frame, DIFFERENCE, digits=3)
    x = alt.X("depth:O", title="depth (tokens in the cache)")
    y = alt.Y("estimate:Q", title=f"acceptance, {machines}")
    edges = alt.Chart(pd.DataFrame({"edge": [-margin, margin]})).mark_rule(strokeDash=[4, 4], color=GREY)
    drawing = estimates(drawn.rows, x, y, "regime", connected=False) + edges.encode(y=alt.Y("edge:Q"))
    return Chart(
        drawing.properties(height=HEIGHT),
        title="Difference of acceptance, paired by prompt",
        alt=f"Difference of acceptance by depth: {first_to_last(drawn.rows, 'regime', 'depth')}.",
        name=name,
        note=sentences(
            said_of_intervals(drawn.rows), f"Broken lines are the margin, {margin:g} either way.", note, drawn.refusals
        ),
    )


def ratios_of_machines(frame: Frame, *, name: str, factor: str, values: list[str], note: str = "") -> Chart:
    """Return speed ratios against the values of a factor, one line a machine; the reader picks the kind of text.

    Args:
        frame: `MACHINES`.
        name: the chart's anchor.
        factor: what was varied, as the axis says it.
        values: its values in the order of the axis.
        note: what to add below the chart.
    """
    drawn = shown(frame, MACHINES, digits=2)
    rows = drawn.rows
    regimes = order_of(rows["regime"])
    x = alt.X("value:N", title=factor, sort=values, axis=alt.Axis(labelAngle=0))
    y = alt.Y("estimate:Q", title="speed ratio, drafted / raw", scale=alt.Scale(zero=False))
    choice = Choice("regime", regimes, "kind of text")
    drawing = estimates(rows, x, y, "machine", choices=(choice,))
    equal = alt.Chart(pd.DataFrame({"equal": [1.0]})).mark_rule(color=GREY).encode(y=alt.Y("equal:Q"))
    words = "; ".join(
        f"{row.machine} {row.estimate:.2f} at {row.value}" for row in rows[rows["regime"] == regimes[0]].itertuples()
    )
    return Chart(
        with_choices(drawing + equal, choice).properties(height=HEIGHT),
        title="Does the same pair pay on both machines?",
        alt=f"Speed ratio of drafted to raw decoding by {factor}, {regimes[0]}: {words}.",
        name=name,
        note=sentences(said_of_intervals(rows), "At 1 both are equally fast.", note, drawn.refusals),
    )


def decode_vs_raw(
    frame: Frame, *, name: str, machine: str, title: str = "Drafted against raw decoding", note: str = ""
) -> Chart:
    """Return the speed ratio of drafted to raw decoding per regime and depth, with a line where they are equal.

    Args:
        frame: `RATIO`; `verdict` is pays, undecided or loses.
        name: the chart's anchor.
        machine: where it was measured.
        title: the chart's title.
        note: what to add below the chart.
    """
    drawn = shown(frame, RATIO, digits=2)
    rows = drawn.rows.copy()
    rows["regime"] = pd.Categorical(rows["regime"], order_of(rows["regime"]))
    rows = rows.sort_values(["regime", "depth"])
    rows["regime"] = rows["regime"].astype(str)
    rows["cell"] = [f"{regime} at {depth}" for regime, depth in zip(rows["regime"], rows["depth"], strict=True)]
    verdicts = order_of(rows["verdict"])
    base = alt.Chart(rows).encode(
        y=alt.Y("cell:N", title=None, sort=list(rows["cell"])),
        color=colour("verdict", verdicts),
    )
    x = alt.X("estimate:Q", title="speed ratio (1 = as fast as raw)", scale=alt.Scale(zero=False, padding=12))
    tooltip = [alt.Tooltip(f"{field}:N") for field in tooltip_fields(rows) if field != "cell"]
    bars = interval_bars(base, rows["low"], x=alt.X("low:Q", title=x["title"]), x2="high:Q")
    dots = base.mark_point().encode(x=x, shape=shape("verdict", verdicts), tooltip=tooltip)
    equal = alt.Chart(pd.DataFrame({"one": [1.0]})).mark_rule(strokeDash=[5, 4], color=BLACK).encode(x="one:Q")
    words = "; ".join(f"{row.cell} {row.estimate:.2f}, {row.verdict}" for row in rows.itertuples())
    return Chart(
        alt.layer(equal, *bars, dots).properties(height=30 * len(rows)),
        title=title,
        alt=f"Speed ratio of drafted to raw decoding: {words}.",
        name=name,
        note=sentences(
            said_of_intervals(rows), "The dashed line is raw decoding.", _measured_on(machine), note, drawn.refusals
        ),
    )


def break_even(
    measured: Frame,
    curve: Frame,
    raw: Frame,
    crossing: Frame,
    *,
    name: str,
    machine: str,
    title: str = "Where drafting begins to pay",
    note: str = "",
) -> Chart:
    """Return the decode rate (tokens/s) against the mean accepted length, with raw decoding as a line.

    The reader can move the raw rate; the crossing follows.

    Args:
        measured: `RATE_BY_LENGTH`: what was measured, at one depth.
        curve: `RATE_CURVE`: the rate that the step cost implies at each mean accepted length.
        raw: `SINGLE`: the raw decode rate.
        crossing: `SINGLE`: the mean accepted length where the curve meets the raw rate; may be refused.
        name: the chart's anchor.
        machine: where it was measured.
        title: the chart's title.
        note: what to add below the chart.

    Raises:
        Problem: a table is not valid, or `measured` holds several depths.
    """
    drawn = shown(measured, RATE_BY_LENGTH, digits=1, unit="t/s")
    if drawn.rows["depth"].nunique() > 1:
        raise Problem(
            "break-even of several depths in one chart", expected="one depth", remedy="draw one chart a depth"
        )
    line = checked(curve, RATE_CURVE).sort_values("length")
    level, meets = checked(raw, SINGLE).iloc[0], checked(crossing, SINGLE).iloc[0]
    scale = alt.Scale(zero=False, nice=False, padding=8)
    x = alt.X("length:Q", title="mean accepted length (tokens)", scale=scale, axis=alt.Axis(tickCount=8))
    y = alt.Y("estimate:Q", title="decode rate (tokens/s)", scale=alt.Scale(zero=True))
    fastest = max(line["estimate"].max(), level["estimate"], drawn.rows["estimate"].max())
    drawing = alt.layer(
        _implied(line, x, y), _raw_line(y), _crossing(line, x), _measured_points(drawn.rows, x, y)
    ).add_params(_raw_rate_slider(level["estimate"], fastest))
    where = f"meets the raw rate of {_said(level, 1, 'tokens/s')} at a mean accepted length of {_said(meets, 2)}"
    return Chart(
        drawing.properties(height=HEIGHT + 20),
        title=title,
        alt=f"Decode rate (tokens/s) against mean accepted length. The rate that the step cost implies {where}. "
        f"Measured: {first_to_last(drawn.rows, 'regime', 'length')}.",
        name=name,
        note=sentences(
            f"The line is the rate that the step cost implies, the band its interval. It {where}.",
            "Points are measured cells; bars are 95 % intervals.",
            _measured_on(machine),
            note,
            drawn.refusals,
        ),
    )


def _raw_rate_slider(value: float, fastest: float) -> alt.Parameter:
    """Return the parameter `raw_rate` (tokens/s) with a slider that leaves room above the fastest rate shown."""
    slider = alt.binding_range(min=1, max=round(1.3 * float(fastest)), step=0.5, name="raw decode rate (tokens/s) ")
    return alt.param(name="raw_rate", value=round(float(value), 1), bind=slider)


def _implied(line: Frame, x: alt.X, y: alt.Y) -> Any:
    base = alt.Chart(line).encode(x=x)
    band = base.mark_area(opacity=0.15, color=BLUE).encode(y=alt.Y("low:Q", title=y["title"]), y2="high:Q")
    return (band if line["low"].notna().any() else alt.layer()) + base.mark_line(color=BLUE).encode(y=y)


def _raw_line(y: alt.Y) -> Any:
    base = alt.Chart(pd.DataFrame({"label": ["raw decoding"]})).transform_calculate(raw="raw_rate")
    level = alt.Y("raw:Q", title=y["title"])
    line = base.mark_rule(strokeDash=[5, 4], color=BLACK).encode(y=level)
    return line + base.mark_text(align="left", baseline="bottom", dy=-3, x=4).encode(y=level, text="label:N")


def _crossing(line: Frame, x: alt.X) -> Any:
    """Return a vertical line where the curve rises through the raw rate, named on the side that has room."""
    middle = float(line["length"].min() + line["length"].max()) / 2
    base = (
        alt.Chart(line)
        .transform_window(next_length="lead(length)", next_rate="lead(estimate)", sort=[alt.SortField("length")])
        .transform_filter("datum.estimate <= raw_rate && datum.next_rate > raw_rate")
        .transform_calculate(
            meets="datum.length + (raw_rate - datum.estimate) / (datum.next_rate - datum.estimate)"
            " * (datum.next_length - datum.length)"
        )
        .transform_calculate(label="'break-even ' + format(datum.meets, '.2f')", late=f"datum.meets > {middle:g}")
        .transform_calculate(before="datum.late ? datum.label : ''", behind="datum.late ? '' : datum.label")
    )
    place = alt.X("meets:Q", title=x["title"])
    mark = base.mark_rule(color=GREY, strokeWidth=1.5).encode(x=place)
    y = alt.expr("height - 4")
    before = base.mark_text(align="right", baseline="bottom", dx=-5, y=y).encode(x=place, text="before:N")
    behind = base.mark_text(align="left", baseline="bottom", dx=5, y=y).encode(x=place, text="behind:N")
    return mark + before + behind


def _measured_points(rows: Frame, x: alt.X, y: alt.Y) -> Any:
    across = interval_bars(
        alt.Chart(rows),
        rows["length_low"],
        x=alt.X("length_low:Q", title=x["title"]),
        x2="length_high:Q",
        y=y,
        color=colour("regime", order_of(rows["regime"])),
    )
    return alt.layer(*across, estimates(rows, x, y, "regime", connected=False, spread=False))


def _said(row: Any, digits: int, unit: str = "") -> str:
    return format_interval(
        row["estimate"], row["low"], row["high"], row["n"], digits=digits, unit=unit, refused=row["refused"]
    )


def _measured_on(machine: str) -> str:
    return f"Measured on {machine}; step costs do not carry over to other machines."
