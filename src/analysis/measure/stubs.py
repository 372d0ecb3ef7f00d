"""Where a real text can be cut: functions in mid-expression, paragraphs in mid-sentence."""

import ast
import io
import keyword
import re
import tokenize
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate, pairwise

from analysis.gates.source import solid_chars, spoken_chars

# A stub ends behind one of these: an expression must follow, or the line is no Python.
_OPEN_ENDED = frozenset(
    {"=", "+=", "-=", "==", "!=", "<", ">", "<=", ">=", "+", "-", "*", "%", "|", "&"}
    | {"if", "elif", "while", "not", "in", "and", "or", "is", "else"}
)
# Of what follows the docstring: enough before the cut to say what it is about, and as much behind it.
_CUT_AT = (0.3, 0.6)
_MAX_SPOKEN = 0.05  # of the remainder: it is meant to be code, and small models drop comments when they copy


@dataclass(frozen=True)
class Cut:
    """A stretch of a text, `start` to `end`, cut in its middle at `cut`; offsets in characters.

    For code the stretch is a whole function from the start of its first line; for prose a paragraph. `number` is its
    place among all functions or paragraphs of the text.
    """

    number: int
    start: int
    cut: int
    end: int
    method: bool = False

    def stub(self, content: str) -> str:
        """Return what stands before the cut."""
        return content[self.start : self.cut]

    def remainder(self, content: str) -> str:
        """Return what stands after the cut."""
        return content[self.cut : self.end]


def function_cuts(content: str, lengths: range | None = None, shortest_stub: int = 0) -> list[Cut]:
    """Return one cut for every function that can be cut in mid-expression, in the order of the source.

    Functions of modules and of classes in modules count, nested ones do not; text that this Python does not parse
    has none.

    Args:
        content: Python source.
        lengths: how many characters a function may have; None takes them all.
        shortest_stub: how many characters must stand before the cut.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(content)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    lines = content.split("\n")
    starts = [0, *accumulate(len(line) + 1 for line in lines)]
    cuts = []
    for number, node in enumerate(_functions(tree)):
        first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)]) - 1
        last = node.end_lineno or node.lineno
        if lengths is None or starts[last] - 1 - starts[first] in lengths:
            ends = _inner_ends(node, lines[first:last], starts[first:])
            at = next((end for end in ends if end >= starts[first] + shortest_stub), None)
            if at is not None:
                cuts.append(Cut(number, starts[first], at, starts[last] - 1, method=_takes_self(node)))
    return [cut for cut in cuts if _is_mostly_code(cut, content)]


def _functions(tree: ast.Module) -> Iterator[ast.FunctionDef]:
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            yield node
        elif isinstance(node, ast.ClassDef):
            yield from (item for item in node.body if isinstance(item, ast.FunctionDef))


def _inner_ends(node: ast.FunctionDef, lines: list[str], starts: list[int]) -> Iterator[int]:
    """Yield where a function can be cut, given its lines and where each starts."""
    body = node.body[1:] if ast.get_docstring(node, clean=False) is not None else node.body
    if not body or body[0].lineno == node.lineno:
        return
    opening = starts[len(lines) - 1 - ((node.end_lineno or node.lineno) - body[0].lineno)]
    end = starts[len(lines)] - 1
    low, high = (opening + share * (end - opening) for share in _CUT_AT)
    ends = (starts[line] + column for line, column in _open_ends(lines))
    yield from (end for end in ends if low <= end <= high)


def _takes_self(node: ast.FunctionDef) -> bool:
    return bool(node.args.args) and node.args.args[0].arg == "self"


def _open_ends(lines: list[str]) -> Iterator[tuple[int, int]]:
    """Yield line and column behind every token after which an expression must follow, one blank apart."""
    try:
        tokens = list(tokenize.generate_tokens(io.StringIO("\n".join(lines) + "\n").readline))
    except (tokenize.TokenError, SyntaxError):
        return
    for token, following in pairwise(tokens):
        adjacent = token.end[0] == following.start[0] and token.end[1] + 1 == following.start[1]
        word = token.string in _OPEN_ENDED and (token.type == tokenize.OP or keyword.iskeyword(token.string))
        if adjacent and word and following.type in (tokenize.NAME, tokenize.NUMBER, tokenize.STRING, tokenize.OP):
            yield token.end[0] - 1, token.end[1]


def _is_mostly_code(cut: Cut, content: str) -> bool:
    function = content[cut.start : cut.end]
    spoken = spoken_chars(function, cut.cut - cut.start)
    return spoken <= _MAX_SPOKEN * max(1, solid_chars(cut.remainder(content)))


_PARAGRAPH = re.compile(r"(?:(?<=\n\n)|\A)(?P<text>(?:[ ]{0,3}\S[^\n]*\n?)+)")
_MID_SENTENCE = re.compile(r"(?<=[a-z]) (?=[a-z])")
_MIN_PARAGRAPH = 160
# What changed when is said in set phrases, which a small model goes on to recite for further versions.
_SET_PHRASE = re.compile(r"\s*(?:New|Changed|Added|Removed|Deprecated) (?:in|since) version")


def paragraph_cuts(content: str) -> list[Cut]:
    """Return one cut for every paragraph of running text that can be cut in mid-sentence, in the order of the text."""
    cuts = []
    for number, paragraph in enumerate(_PARAGRAPH.finditer(content)):
        text = paragraph["text"].rstrip("\n")
        if (
            len(text) < _MIN_PARAGRAPH
            or not text.endswith(".")
            or not text.lstrip()[0].isalpha()
            or _SET_PHRASE.match(text)
        ):
            continue
        for blank in _MID_SENTENCE.finditer(text, int(len(text) * 0.35), int(len(text) * 0.6)):
            before, after = text[: blank.start()], text[blank.end() :]
            if ". " not in before[-20:] and "." not in after[:20]:
                start = paragraph.start("text")
                cuts.append(Cut(number, start, start + blank.start(), start + len(text)))
                break
    return cuts
