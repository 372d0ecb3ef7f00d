"""The chart of a measured break-even: decode rates at chosen acceptances, the raw rate, and where they meet."""

from typing import Any

import altair as alt
import pandas as pd

from analysis.publish.chart import Chart
from analysis.publish.formats import format_interval
from analysis.publish.frames import RATE_AT_ACCEPTANCE, SINGLE, checked
from analysis.publish.marks import interval_bars, sentences, shown, tooltip_fields
from analysis.publish.style import BLACK, BLUE, GREY, HEIGHT

Frame = pd.DataFrame


def measured_crossing(
    drafted: Frame, raw: Frame, crossing: Frame, *, name: str, machine: str, longest: int, title: str, note: str = ""
) -> Chart:
    """Return the decode rate (tokens/s) against accepted tokens a step, with raw decoding as a line.

    Args:
        drafted: `RATE_AT_ACCEPTANCE`: what was measured at each chosen acceptance.
        raw: `SINGLE`: the raw decode rate.
        crossing: `SINGLE`: the accepted tokens a step where both are equally fast; may be refused.
        name: the chart's anchor.
        machine: where it was measured.
        longest: tokens a draft has; a crossing beyond cannot be reached and is not drawn.
        title: the chart's title.
        note: what to add below the chart.

    Raises:
        Problem: a table is not valid, or nothing of `drafted` may be shown.
    """
    seen = shown(drafted, RATE_AT_ACCEPTANCE, digits=1, unit="t/s")
    level, meets = checked(raw, SINGLE), checked(crossing, SINGLE)
    reached = meets[(meets["refused"] == "") & (meets["estimate"] <= longest)]
    x = alt.X("accepted:Q", title="accepted tokens a step", scale=alt.Scale(domain=[0, longest]))
    y = alt.Y("estimate:Q", title="decode rate (tokens/s)", scale=alt.Scale(zero=True))
    layers = [_raw(level, y), _measured(seen.rows, x, y)]
    if len(reached):
        layers.insert(0, _meeting(reached, x, longest))
    first, last = (seen.rows.sort_values("accepted").iloc[place] for place in (0, -1))
    said = f"{first['estimate']:.1f} tokens/s at {first['accepted']:.2f} accepted tokens a step"
    said += f" to {last['estimate']:.1f} at {last['accepted']:.2f}"
    refused = str(meets["refused"].iloc[0])
    where = (
        f"{refused.capitalize()}."
        if refused
        else f"They are equally fast at {_said(meets.iloc[0], 2)} accepted tokens a step."
    )
    return Chart(
        alt.layer(*layers).properties(height=HEIGHT),
        title=title,
        alt=f"Decode rate against accepted tokens a step, from {said}; raw {_said(level.iloc[0], 1)}. {where}",
        name=name,
        note=sentences(
            "Points are measured at chosen acceptances; bars are 95 % intervals. The dashed line is raw decoding.",
            where,
            "The upright line and its band show that." if len(reached) else "",
            f"Measured on {machine}.",
            note,
            seen.refusals,
        ),
    )


def _raw(level: Frame, y: alt.Y) -> Any:
    base = alt.Chart(level.assign(label="raw decoding")[["estimate", "low", "high", "label"]])
    line = base.mark_rule(strokeDash=[5, 4], color=BLACK).encode(y=y)
    words = base.mark_text(align="left", baseline="bottom", dy=-3).encode(x=alt.value(4), y=y, text="label:N")
    if level["low"].isna().any():
        return line + words
    low = alt.Y("low:Q", title=y["title"])
    return base.mark_rect(opacity=0.15, color=GREY).encode(y=low, y2="high:Q") + line + words


def _measured(rows: Frame, x: alt.X, y: alt.Y) -> Any:
    base = alt.Chart(rows).encode(x=x, color=alt.value(BLUE))
    tooltip = [alt.Tooltip(f"{field}:N") for field in tooltip_fields(rows) if not field.startswith("accepted_")]
    up = interval_bars(base, rows["low"], y=alt.Y("low:Q", title=y["title"]), y2="high:Q")
    along = interval_bars(
        base, rows["accepted_low"], y=y, x=alt.X("accepted_low:Q", title=x["title"]), x2="accepted_high:Q"
    )
    return alt.layer(base.mark_line().encode(y=y), *up, *along, base.mark_point().encode(y=y, tooltip=tooltip))


def _meeting(found: Frame, x: alt.X, longest: int) -> Any:
    rows = found.assign(low=found["low"].clip(0, longest), high=found["high"].clip(0, longest))
    base = alt.Chart(rows[["estimate", "low", "high"]])
    line = base.mark_rule(color=BLUE, strokeDash=[2, 3]).encode(x=alt.X("estimate:Q", title=x["title"]))
    if rows["low"].isna().any():
        return line
    return base.mark_rect(opacity=0.12, color=BLUE).encode(x=alt.X("low:Q", title=x["title"]), x2="high:Q") + line


def _said(row: Any, digits: int) -> str:
    return format_interval(row["estimate"], row["low"], row["high"], row["n"], digits=digits, refused=row["refused"])
