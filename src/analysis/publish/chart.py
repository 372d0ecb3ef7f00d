"""A chart that can be read anywhere: drawn live by the page's script, and as a still picture without one.

The page needs no network for either. The still is an SVG inside `<img>`: it carries the alt text, no element of it
shares an id with another chart's, and whatever text stands in it is inert.
"""

import json
import re
from dataclasses import dataclass
from html import escape
from typing import Any
from urllib.parse import quote

import vl_convert as vlc

from analysis.publish.style import CONFIG, FONT, STILL_WIDTH
from analysis.records import Problem

VEGA_LITE = "6.4"

# What a picture does without: words for those who cannot see it, what a pointer does, and what is so anyway.
_IDLE = re.compile(r' (?:aria-[a-z]+="[^"]*"|role="[^"]*"|pointer-events="none"|(?:opacity|stroke-width)="1")')
_TAG, _LONG = re.compile("<[^>]*>"), re.compile(r"(\d\.\d\d)\d+")
_NAME = re.compile(r"^[a-z][a-z0-9-]*$")
# What stays as it is in the still's data address; all that could end the attribute or the address is encoded.
_SAFE = " /=:;,.()!*@+$?[]"


@dataclass(frozen=True)
class Chart:
    """A drawing with the words that belong to it.

    Attributes:
        drawing: an altair chart, single or layered; its width follows the page.
        title: what is shown; stands above the chart.
        alt: what a reader who cannot see the chart needs to know of it.
        name: its anchor on the page (`#chart-NAME`): lower case, digits, hyphens.
        note: below the chart: what the intervals are, what was left out, which machine.
    """

    drawing: Any
    title: str
    alt: str
    name: str
    note: str = ""

    def __post_init__(self) -> None:
        """Refuse a chart that could not be named or read out."""
        if not _NAME.match(self.name):
            raise Problem(f"chart name {self.name!r}", expected="lower-case letters, digits and hyphens")
        if not self.title.strip() or not self.alt.strip():
            raise Problem(f"chart {self.name} lacks a title or an alt text", remedy="give both in words")

    def spec(self) -> dict[str, Any]:
        """Return the Vega-Lite specification, the same for the same data on every run."""
        spec = self.drawing.properties(width="container").to_dict()
        spec["config"] = CONFIG
        spec["description"] = self.alt
        return _plain_names(_short_numbers(spec))

    def svg(self) -> str:
        """Return the chart as it looks before anybody touches it.

        What it says of each mark to those who cannot see is left out: inside an image nothing reads it, the alt text
        stands for it. So are the font of each word but the whole picture's, and places finer than a pixel's hundredth.
        """
        still = self.spec() | {"width": STILL_WIDTH, "autosize": {"type": "fit-x", "contains": "padding"}}
        font = f' font-family="{FONT}"'
        drawn = _IDLE.sub("", vlc.vegalite_to_svg(still, vl_version=VEGA_LITE))
        drawn = _TAG.sub(lambda tag: _LONG.sub(r"\1", tag[0]), drawn)  # numbers that are read stay as they are
        return drawn.replace(font, "").replace("<svg", f"<svg{font}", 1)

    def html(self) -> str:
        """Return the figure: title, still, specification, note."""
        title, note = (
            f"chart-{self.name}-title",
            f'<p class="chart-note">{escape(self.note)}</p>\n' if self.note else "",
        )
        spec = json.dumps(self.spec(), ensure_ascii=False, sort_keys=True, separators=(",", ":"), allow_nan=False)
        return (
            f'<figure class="chart" id="chart-{self.name}" aria-labelledby="{title}">\n'
            f'<figcaption id="{title}">{escape(self.title)}</figcaption>\n'
            f'<div class="chart-card"><div class="chart-still">'
            f'<img alt="{escape(self.alt)}" width="{STILL_WIDTH}" src="data:image/svg+xml,{quote(self.svg(), _SAFE)}">'
            f"</div></div>\n"
            f'<script type="application/vnd.vegalite+json">{_inert(spec)}</script>\n{note}</figure>'
        )

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        return {"text/html": self.html(), "text/plain": f"{self.title}: {self.alt}"}


def _inert(data: str) -> str:
    """Return JSON that cannot end the script element it stands in."""
    return data.replace("<", "\\u003c")


def _short_numbers(value: Any) -> Any:
    """Return the value with every float at six significant digits."""
    if isinstance(value, float):
        return float(f"{value:.6g}")
    if isinstance(value, dict):
        return {key: _short_numbers(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_short_numbers(item) for item in value]
    return value


def _plain_names(spec: dict[str, Any]) -> dict[str, Any]:
    """Return the specification with altair's counted names (`view_7`) counted from 1 within this chart."""
    text = json.dumps(spec)
    found = dict.fromkeys(re.findall(r'"((?:view|param)_\d+)"', text))
    for number, name in enumerate(found, 1):
        text = text.replace(f'"{name}"', f'"{name.split("_")[0]}{number}"')
    renamed: dict[str, Any] = json.loads(text)
    return renamed
