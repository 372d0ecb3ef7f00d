"""Reading text as Python source: how much of it parses, and how much of it is English in comments.

The text comes from a model and is trusted in nothing: it is read up to a limit, it is never compiled to code, and
whatever the parser raises means "not code".
"""

import ast
import codeop
import re
import warnings

# 192 tokens are about 1,000 characters. The limit keeps deep nesting away from the parser's own stack.
MAX_CHARS = 16_000

_SYNTAX_ONLY = ast.PyCF_ONLY_AST | codeop.PyCF_ALLOW_INCOMPLETE_INPUT  # type: ignore[attr-defined]  # typeshed lacks it
_SPOKEN = re.compile(
    r"""
    (?P<spoken> (?P<quote>\"{3}|'{3}) .*? (?: (?P=quote) | \Z ) | \#[^\n]* )
    | " (?: \\. | [^"\\\n] )* "?
    | ' (?: \\. | [^'\\\n] )* '?
    """,
    re.DOTALL | re.VERBOSE,
)


def parses(source: str) -> bool:
    """Return whether text is Python source, or the beginning of some that only breaks off at its end."""
    if len(source) > MAX_CHARS:
        return False
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # odd escapes and literals in emitted text concern nobody
            compile(source, "<emitted>", "exec", _SYNTAX_ONLY, dont_inherit=True)
    except SyntaxError as error:
        return "incomplete input" in str(error)
    except (ValueError, RecursionError, MemoryError, OverflowError):
        return False
    return True


def parsed_chars(stub: str, emitted: str) -> int:
    """Return how many characters of the emission continue the stub as Python source, counted in whole lines.

    The last line may be torn, as a generation limit leaves it; of that line as much counts as parses when words
    are taken away from its end.
    """
    head = frame(stub)
    ends = [match.end() for match in re.finditer(r"\n", emitted)]
    low, high = 0, len(ends)
    while low < high:  # if a beginning has an error in it, so has every longer one
        middle = (low + high + 1) // 2
        low, high = (middle, high) if parses(head + emitted[: ends[middle - 1]]) else (low, middle - 1)
    whole = ends[low - 1] if low else 0
    if low < len(ends):
        return whole
    torn = [len(emitted), *(whole + match.start() for match in re.finditer(r"[\s,]", emitted[whole:]))]
    for end in sorted(torn, reverse=True)[:40]:
        if end > whole and parses(head + emitted[:end]):
            return end
    return whole


def spoken_chars(source: str, start: int = 0) -> int:
    """Return how many characters from `start` on stand in comments and triple-quoted strings, blanks not counted."""
    count = 0
    for match in _SPOKEN.finditer(source):
        if match["spoken"] and match.end() > start:
            count += solid_chars(source[max(start, match.start()) : match.end()])
    return count


def solid_chars(text: str) -> int:
    """Return the number of characters that are no white space."""
    return len("".join(text.split()))


def frame(stub: str) -> str:
    """Return a stub so that it can stand alone: an indented one is a method and gets a class around it."""
    return f"class _:\n{stub}" if stub[:1] in (" ", "\t") else stub
