"""How a value becomes text: intervals, refusals, and text that nobody vouches for."""

import math
import unicodedata

LEVEL = 0.95

# Characters that change what a reader sees without being seen: joiners, direction marks, byte order marks.
_HIDDEN = {"Cf", "Cc", "Cs", "Co", "Zl", "Zp"}


def format_interval(
    estimate: float, low: float, high: float, n: int, *, digits: int = 2, refused: str = "", unit: str = ""
) -> str:
    """Return an estimate as text: `0.54 [0.48, 0.60] (n = 5)`.

    Without an interval it is `0.54 (n = 5)`; a refused one is `refused: ` and the reason, whatever
    its value. `digits` counts decimals, `unit` follows the estimate.
    """
    if refused:
        return f"refused: {refused}"
    if math.isnan(estimate):
        return "not measured"
    value = f"{estimate:.{digits}f}" + (f" {unit}" if unit else "")
    if math.isnan(low) or math.isnan(high):
        return f"{value} (n = {n})"
    return f"{value} [{low:.{digits}f}, {high:.{digits}f}] (n = {n})"


def visible(text: str, *, keep_lines: bool = False) -> str:
    r"""Return text in which every control or hidden character can be seen, and does nothing.

    C0 controls become their pictures (ESC is ␛), other hidden characters `\u{...}`. Line ends become `⏎`, unless
    `keep_lines`; a tab then stays too.
    """
    return "".join(_seen(character, keep_lines) for character in text.replace("\r\n", "\n"))


def _seen(character: str, keep_lines: bool) -> str:
    code = ord(character)
    if character == "\n":
        return "\n" if keep_lines else "⏎"
    if character == "\t" and keep_lines:
        return "\t"
    if code < 0x20:
        return chr(0x2400 + code)
    if code == 0x7F:
        return "␡"
    if unicodedata.category(character) in _HIDDEN:
        return f"\\u{{{code:x}}}"
    return character
