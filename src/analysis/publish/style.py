"""The house style of charts: one colour and one shape for a thing, on every page."""

import re
from collections.abc import Iterable
from typing import Any

import altair as alt

# Okabe and Ito's palette, which readers with any common colour vision can tell apart, less its two lightest colours:
# every one here has a contrast of at least 3 : 1 on white. https://jfly.uni-koeln.de/color/
BLUE, VERMILION, GREEN, PURPLE, BLACK, GREY = "#0072B2", "#C85200", "#00805C", "#A8497F", "#222222", "#6B6B6B"
COLOURS = (BLUE, VERMILION, GREEN, PURPLE, BLACK, GREY)
SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down")

# What has its own colour and shape, in the order in which it is listed wherever it appears.
KNOWN = {
    "invention": (BLUE, "circle"),
    "continuation": (VERMILION, "square"),
    "recall": (GREEN, "triangle-up"),
    "prose": (PURPLE, "diamond"),
    "pays": (BLUE, "circle"),
    "undecided": (GREY, "diamond"),
    "loses": (VERMILION, "square"),
}

FONT = "system-ui, -apple-system, 'Segoe UI', 'Liberation Sans', Arial, sans-serif"
STILL_WIDTH = 640
HEIGHT = 300

CONFIG: dict[str, Any] = {
    "font": FONT,
    "background": "#ffffff",
    "padding": {"left": 14, "right": 14, "top": 6, "bottom": 6},  # room for a reader's wider fonts
    "view": {"stroke": None, "continuousWidth": STILL_WIDTH, "continuousHeight": HEIGHT},
    "axis": {
        "labelFontSize": 12,
        "titleFontSize": 13,
        "titleFontWeight": "normal",
        "labelColor": BLACK,
        "titleColor": BLACK,
        "domainColor": GREY,
        "tickColor": GREY,
        "gridColor": "#e4e4e4",
        "titlePadding": 8,
        "labelFlush": False,
    },
    "axisX": {"grid": False, "labelAngle": 0},
    "legend": {
        "orient": "top",
        "direction": "horizontal",
        "title": None,
        "labelFontSize": 12,
        "labelColor": BLACK,
        "symbolSize": 90,
        "columnPadding": 14,
        "offset": 4,
    },
    "point": {"filled": True, "size": 70, "opacity": 1},
    "rule": {"strokeWidth": 2},
    "line": {"strokeWidth": 1.25},
    "text": {"fontSize": 12, "color": BLACK},
}


def order_of(values: Iterable[str], known: Iterable[str] = tuple(KNOWN)) -> list[str]:
    """Return the distinct values: known ones in their usual order, then the others, numbers in them by size."""
    present = set(values)
    usual = [value for value in known if value in present]
    return usual + sorted(present - set(usual), key=_natural)


def colour(field: str, values: list[str]) -> alt.Color:
    """Return the colour of each value; a known one has the same colour on every page."""
    return alt.Color(f"{field}:N", scale=_scale(values, [c for c, _ in KNOWN.values()], COLOURS), **_legend(values))


def shape(field: str, values: list[str]) -> alt.Shape:
    """Return the shape of each value, so that colour is never the only sign."""
    return alt.Shape(f"{field}:N", scale=_scale(values, [s for _, s in KNOWN.values()], SHAPES), **_legend(values))


def _scale(values: list[str], usual: list[str], signs: tuple[str, ...]) -> alt.Scale:
    known = dict(zip(KNOWN, usual, strict=True))
    taken = {known[value] for value in values if value in known}
    free = [sign for sign in signs if sign not in taken]
    strangers = [value for value in values if value not in known]
    chosen = [known.get(value) or free[strangers.index(value) % len(free)] for value in values]
    return alt.Scale(domain=values, range=chosen)


def _legend(values: list[str]) -> dict[str, Any]:
    # One that is switched off in colour or in shape is switched off in both. Two columns fit on a phone.
    if len(values) < 2:
        return {"legend": None}
    return {"legend": alt.Legend(columns=2)} if len(values) > 3 else {}


def _natural(text: str) -> list[tuple[int, str]]:
    return [(int(part), "") if part.isdigit() else (0, part) for part in re.split(r"(\d+)", text)]
