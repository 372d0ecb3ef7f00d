"""Text from files that nobody vouches for, made short and harmless."""

import unicodedata


def clean(text: str, limit: int = 120) -> str:
    """Return text in one line without control and formatting characters, at most `limit` characters long.

    Terminal escapes lose their first character and with it their effect. Whoever shows the text escapes markup.
    """
    kept = "".join(
        "\N{REPLACEMENT CHARACTER}" if unicodedata.category(char)[0] == "C" else char for char in text[:limit]
    )
    return " ".join(kept.split())


def cell(text: str) -> str:
    """Return text for a table that a spreadsheet may open: what would start a formula gets a quote in front."""
    return f"'{text}" if text[:1] in ("=", "+", "-", "@") else text
