"""Printing what a person reads: sizes with their unit, and text from files made harmless."""

from rich.console import Console
from rich.markup import escape

console = Console(highlight=False)


def harmless(text: str, limit: int = 200) -> str:
    """Return untrusted text for a terminal: no control characters, no markup, at most `limit` characters."""
    visible = "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in text[:limit])
    return escape(visible + ("…" if len(text) > limit else ""))


def size(nbytes: float) -> str:
    """Return a size in binary units with three significant digits."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if nbytes < 1024:
            return f"{nbytes:.3g} {unit}" if unit != "B" else f"{nbytes:.0f} B"
        nbytes /= 1024
    return f"{nbytes:.3g} TiB"
