"""Tables and text of a page, as MyST that Jupyter Book renders itself: they look right in light, dark, on a phone.

Every cell is treated as text that nobody vouches for: it is shown as it is, and does nothing.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import pandas as pd

from analysis.publish.formats import visible
from analysis.publish.frames import interval_texts
from analysis.records import Problem

_NAME = re.compile(r"^[a-z][a-z0-9-]*$")
# An estimate and its interval, and the count behind them: neither is broken across lines.
_UNBROKEN = re.compile(r"[-\d.]+(?: [^\s\[\]()]+)? \[[-\d., ]+\]|\(n = \d+[^()]*\)")
# What begins markup inside a line of MyST, with every extension of the book switched on.
_MARKUP = re.compile(r"([\\`*_{}\[\]<>$|~&!#])")


@dataclass(frozen=True)
class Markdown:
    """MyST text that a notebook shows."""

    text: str

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        return {"text/markdown": self.text, "text/plain": self.text}


@dataclass(frozen=True)
class Html:
    """HTML that a notebook shows, with the same thing as plain text."""

    text: str
    plain: str

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        return {"text/html": self.text, "text/plain": self.plain}


def table(
    frame: pd.DataFrame,
    caption: str,
    name: str,
    *,
    columns: Mapping[str, str] | None = None,
    digits: int = 2,
    code: Sequence[str] = (),
) -> Markdown:
    """Return a numbered table; `{numref}` and `{ref}` reach it by `name`.

    Args:
        frame: one row a row; a float is shown with `digits` decimals, a missing value as an en dash.
        caption: what the table shows, and of what machine if it shows a speed.
        name: its anchor: lower case, digits, hyphens; unique in the book.
        columns: the columns to show, in order, with their headings; all under their own names by default.
        digits: decimals of floats.
        code: columns that are set as code.

    Raises:
        Problem: a column is not in the frame, or the name cannot be an anchor.
    """
    if not _NAME.match(name):
        raise Problem(f"table name {name!r}", expected="lower-case letters, digits and hyphens")
    headings = dict(columns) if columns is not None else {str(column): str(column) for column in frame.columns}
    absent = [column for column in headings if column not in frame.columns]
    if absent:
        raise Problem(f"table {name} has no column {absent[0]!r}", expected=", ".join(map(str, frame.columns)))
    numeric = {column for column in headings if pd.api.types.is_numeric_dtype(frame[column])}
    lines = [
        _row(escape_text(heading) for heading in headings.values()),
        _row("--:" if column in numeric else ":--" for column in headings),
        *(
            _row(_cell(row[column], digits, as_code=column in code) for column in headings)
            for row in frame.to_dict("records")
        ),
    ]
    # Tildes, because the first line of a fence of backticks may not hold another one.
    return Markdown("\n".join([f"~~~{{table}} {escape_text(caption)}", f":name: {name}", "", *lines, "~~~"]))


def interval_table(
    frame: pd.DataFrame,
    caption: str,
    name: str,
    *,
    rows: str = "depth",
    across: str = "regime",
    digits: int = 2,
    unit: str = "",
) -> Markdown:
    """Return estimates with their intervals, one row per value of `rows`, one column per value of `across`.

    Args:
        frame: a frame of estimates (`analysis.publish.frames`) with one row per pair of the two columns.
        caption: as for `table`.
        name: as for `table`.
        rows: the column whose values name the rows.
        across: the column whose values name the columns.
        digits: decimals.
        unit: what follows each estimate.

    Raises:
        Problem: two rows of the frame belong in the same cell, or a column is missing.
    """
    for column in (rows, across, "estimate", "low", "high", "n"):
        if column not in frame.columns:
            raise Problem(f"table {name} has no column {column!r}", expected=", ".join(map(str, frame.columns)))
    twice = frame.duplicated([rows, across])
    if twice.any():
        cell = frame.loc[twice, [rows, across]].iloc[0]
        raise Problem(f"table {name} has two rows for {cell[rows]}, {cell[across]}", remedy="select one before")
    texts = frame.assign(text=interval_texts(frame, digits=digits, unit=unit))
    wide = texts.pivot(index=rows, columns=across, values="text")
    wide = wide[list(dict.fromkeys(frame[across]))].fillna("not measured").reset_index()
    return table(wide, caption, name)


def emitted(text: str, *, label: str = "emitted text") -> Html:
    """Return text that a model emitted, in a box, inert, with its control characters made visible."""
    shown = visible(text, keep_lines=True)
    return Html(
        f'<pre class="emitted" tabindex="0" role="region" aria-label="{escape(label)}">'
        f"<code>{escape(shown)}</code></pre>",
        shown,
    )


def escape_text(text: str) -> str:
    """Return one line of text that MyST shows as it is: no markup, mathematics, role, link or cell border."""
    return _MARKUP.sub(r"\\\1", visible(text).strip())


def code_text(text: str) -> str:
    """Return one line of text that MyST shows as it is, set as code; nothing for nothing."""
    shown = visible(text).strip()
    fence = "`" * (1 + max(map(len, re.findall(r"`+", shown)), default=0))
    return f"{fence} {shown} {fence}" if shown else ""


def _cell(value: Any, digits: int, *, as_code: bool) -> str:
    text = _UNBROKEN.sub(lambda found: found[0].replace(" ", "\N{NO-BREAK SPACE}"), _as_text(value, digits))
    return code_text(text).replace("|", "\\|") if as_code else escape_text(text)


def _as_text(value: Any, digits: int) -> str:
    if value is None or (isinstance(value, float) and pd.isna(value)) or value is pd.NA:
        return "–"
    if isinstance(value, float):
        return f"{value:.{digits}f}"
    return str(value)


def _row(cells: Any) -> str:
    return f"| {' | '.join(cells)} |"
