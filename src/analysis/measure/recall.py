"""A passage of a file shown in full and then begun again: what a model is to recall."""

import re
from bisect import bisect_right
from dataclasses import dataclass

from analysis.measure.filler import Tokenize
from analysis.measure.stubs import Cut

# Of the local text, what is left to recall: it should outlast the generation (72 of 192 tokens, 192 of 512).
_MIN_RECALLED = 3 / 8
# Of the local text, what is said again before the model goes on: the lines in front of the function, and its stub. A
# small model takes up a passage of 60 tokens more often than one of 40, so the lines are there to lengthen a stub.
_OVERLAP = 5 / 16
# Characters a token: what code has on average, so that little is tokenized that does not fit.
_CHARS_PER_TOKEN = 4


@dataclass(frozen=True)
class Passage:
    """The text of a recall prompt, from the start of its file, and what stands behind the stub's first occurrence."""

    text: str
    original: str


def recall_passage(content: str, cut: Cut, local_tokens: int, tokenize: Tokenize) -> Passage | None:
    """Return a function with what surrounds it, and its beginning again, all within `local_tokens`.

    Shown first are the lines in front of the function, the function, and as much of what follows it, up to a blank
    line, as fits. Said again are the lines and the stub. None if the function does not fit, or if that leaves too
    little to recall.
    """
    start = _overlap_start(content, cut, int(_OVERLAP * local_tokens * _CHARS_PER_TOKEN))
    head, function = content[start : cut.cut], cut.end - cut.cut
    again = ("\n\n" if content[cut.start] == " " else "\n\n\n") + head

    def length(end: int) -> int:
        return len(tokenize(head + content[cut.cut : cut.cut + end] + again))

    most = local_tokens * _CHARS_PER_TOKEN
    if len(head) + function + len(again) > most or length(function) > local_tokens:
        return None
    behind = content[cut.cut : cut.cut + most].rstrip()
    blanks = [match.start() for match in re.finditer(r"\n[ \t]*(?=\n)|\Z", behind) if match.start() > function]
    fitting = bisect_right(blanks, local_tokens, key=length)
    original = behind[: blanks[fitting - 1] if fitting else function].rstrip()
    if len(tokenize(original)) < _MIN_RECALLED * local_tokens:
        return None
    return Passage(text=content[: cut.cut] + original + again, original=original)


def _overlap_start(content: str, cut: Cut, longest: int) -> int:
    """Return where the lines in front of a function begin that make its stub `longest` characters long at most."""
    earliest = cut.cut - longest
    if earliest >= cut.start:
        return cut.start
    line = content.find("\n", max(0, earliest), cut.start) + 1
    return line or cut.start
