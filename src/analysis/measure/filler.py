"""The text in front of the prompts: real, mixed, the same for every prompt, and from files that no prompt uses."""

import hashlib
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, zip_longest

from analysis.measure.corpus import Corpus, Text
from analysis.records import Problem

Tokenize = Callable[[str], Sequence[int]]

_SHARE = 8  # one text in so many is set aside for the filler
_PIECE_CHARS = 2000  # about 500 tokens, so that a filler of a few thousand is mixed already


@dataclass(frozen=True)
class Filler:
    """Tokens, and the text that they were made from (at least; it may be longer)."""

    tokens: tuple[int, ...]
    text: str


def shuffled(texts: Sequence[Text], seed: int) -> list[Text]:
    """Return texts in an order that depends on their names and the seed alone."""
    return sorted(texts, key=lambda text: hashlib.sha256(f"{seed} {text.name}".encode()).digest())


def split_texts(texts: Sequence[Text], seed: int) -> tuple[list[Text], list[Text]]:
    """Return the texts for the filler and those for prompts, both shuffled.

    The split depends on neither depth nor number of prompts, so that a larger grid extends a smaller one.
    """
    mixed = shuffled(texts, seed)
    reserved = max(len(mixed) // _SHARE, int(len(mixed) > 1))
    return mixed[:reserved], mixed[reserved:]


def build_filler(corpus: Corpus, tokenize: Tokenize, length: int, seed: int) -> Filler:
    """Return a filler of exactly `length` tokens: pieces of code and prose in turn.

    Raises:
        Problem: the texts set aside for it are too short.
    """
    tokens: list[int] = []
    pieces: list[str] = []
    for piece in _pieces(corpus, seed):
        if len(tokens) >= length:
            break
        tokens += tokenize(piece)
        pieces.append(piece)
    if len(tokens) < length:
        raise Problem(
            f"the {corpus.title} gives {len(tokens)} tokens to put in front of a prompt",
            expected=f"at least {length} for this depth",
            remedy="choose smaller depths or a directory with more text",
        )
    return Filler(tuple(tokens[:length]), "".join(pieces))


def _pieces(corpus: Corpus, seed: int) -> Iterator[str]:
    code, prose = (_in_turn(split_texts(corpus.of_kind(kind), seed)[0]) for kind in ("code", "prose"))
    return (piece for piece in chain.from_iterable(zip_longest(code, prose)) if piece)


def _in_turn(texts: Sequence[Text]) -> Iterator[str]:
    """Yield the first piece of every text, then the second of every text that has one, and so on."""
    rounds = zip_longest(*(_cut_up(text.content) for text in texts))
    return (piece for piece in chain.from_iterable(rounds) if piece)


def _cut_up(content: str) -> Iterator[str]:
    """Yield pieces of about `_PIECE_CHARS` that end with a blank line, where there is one."""
    start = 0
    while start < len(content):
        blank = re.compile(r"\n\s*\n").search(content, start + _PIECE_CHARS)
        end = blank.end() if blank else len(content)
        yield content[start:end]
        start = end
