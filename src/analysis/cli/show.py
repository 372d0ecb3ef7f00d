"""Printing what a person reads: sizes with their unit, and text from files made harmless."""

from collections.abc import Iterable, Mapping
from typing import Any

from rich.cells import cell_len
from rich.console import Console
from rich.markup import escape
from rich.table import Column, Table

console = Console(highlight=False)


def harmless(text: str, limit: int = 200) -> str:
    """Return untrusted text for a terminal: no control characters, no markup, at most `limit` characters."""
    visible = "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in text[:limit])
    return escape(visible + ("…" if len(text) > limit else ""))


def table_with_whole(
    whole: str, values: Iterable[str], before: Iterable[str], after: Iterable[str], *, whole_too: str = ""
) -> Table:
    """Return a table, one column of which is never cut or broken however narrow the terminal; the others fold.

    Args:
        whole: the heading of that column: names that are copied into the next command.
        values: what it will hold.
        before: the headings of the columns on its left.
        after: the headings of the columns on its right.
        whole_too: the heading of another column whose few letters are not broken.
    """
    width = max(map(cell_len, [whole, *values]))
    left, right = (
        [Column(heading, overflow="fold", no_wrap=heading == whole_too) for heading in headings]
        for headings in (before, after)
    )
    return Table(*left, Column(whole, no_wrap=True, min_width=width), *right, box=None)


def interval_text(row: Mapping[Any, Any] | None, digits: int) -> str:
    """Return a row of a frame of estimates with its interval and count, why it is refused, or nothing for no row."""
    if row is None:
        return ""
    if row["refused"]:
        return f"refused: {harmless(row['refused'])}"
    limits = "" if row["low"] != row["low"] else f" [{row['low']:.{digits}f}, {row['high']:.{digits}f}]"
    return f"{row['estimate']:.{digits}f}{limits} (n={row['n']})"


def size(nbytes: float) -> str:
    """Return a size in binary units with three significant digits."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if nbytes < 1024:
            return f"{nbytes:.3g} {unit}" if unit != "B" else f"{nbytes:.0f} B"
        nbytes /= 1024
    return f"{nbytes:.3g} TiB"
