"""Prompts by regime, exact in tokens, with the depth in front of what matters.

A context is filler + local text. The local text ends with the stub that the model is to continue; it is the same at
every depth. The filler in front of it is one text, shared by all prompts of a grid, of which a depth takes the
beginning it needs: contexts of two depths share their filler as far as the shorter one goes, so a server evaluates
it once and reuses it. The code regimes of one prompt id stand at the same place of the same file.

The parts are joined as token ids, not as text. At the seams (between two pieces of the filler, and between filler
and local text) the model therefore sees tokens that its tokenizer might have merged if it had seen the joined text;
within the local text, stub included, the ids are those of its tokenizer. A tokenizer that puts a blank in front of
every text does so at every seam.
"""

import hashlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import islice
from typing import Literal

import numpy as np

from analysis.gates.loops import loop_start
from analysis.measure.corpus import Corpus, Text
from analysis.measure.filler import Filler, Tokenize, build_filler, split_texts
from analysis.measure.invented import invented_stub
from analysis.measure.recall import recall_passage
from analysis.measure.stubs import Cut, function_cuts, paragraph_cuts
from analysis.records import Problem, Regime
from analysis.records.model import REGIMES

__all__ = ["Corpus", "Prompt", "build_prompts"]

DEFAULT_LOCAL_TOKENS = 512
WARMUP_TOKENS = 8
"""Tokens of a warm-up where prompts share no text."""
_MIN_FUNCTION_CHARS = 300
# A short stub is hard to recognise for a small model, but a short local text has room for no other.
_MIN_STUB_CHARS, _MIN_STUB_SHARE = 150, 0.6
_MAX_FUNCTION_CHARS = 4  # for every local token; a longer one could not be shown whole
_WINDOW_CHARS = 14  # characters of text to tokenize for every token that is needed
# A remainder counts as present if a run of twice so many characters of it is; shorter ones are idioms.
_PIECE = 40


@dataclass(frozen=True)
class Prompt:
    """One text to continue, at every depth of a grid. Lengths are in tokens.

    `source` is the corpus text it stands in; `original` is, for recall, what stands in the context behind the first
    occurrence of the stub: the remainder of its function and what follows in the file. It is empty otherwise.
    """

    id: str
    regime: Regime
    source: str
    stub: str
    original: str
    depths: tuple[int, ...]
    local: tuple[int, ...] = field(repr=False)
    shared_filler: tuple[int, ...] = field(repr=False)

    def filler(self, depth: int) -> tuple[int, ...]:
        """Return the tokens in front of the local text, shared by all prompts of the grid.

        Raises:
            KeyError: the prompt was not built for this depth.
        """
        if depth not in self.depths:
            raise KeyError(f"prompt {self.id} was built for depths {self.depths}, not for {depth}")
        return self.shared_filler[: depth - len(self.local)]

    def warmup(self, depth: int) -> tuple[int, ...]:
        """Return what a server evaluates before its samples: the shared text or, where there is none, a beginning.

        Raises:
            KeyError: see `filler`.
        """
        return self.filler(depth) or self.local[:WARMUP_TOKENS]

    def tokens(self, depth: int) -> tuple[int, ...]:
        """Return the context: exactly `depth` tokens.

        Raises:
            KeyError: see `filler`.
        """
        return self.filler(depth) + self.local

    def sha256(self, depth: int) -> str:
        """Return SHA-256 over the context's token ids as little-endian 32-bit numbers."""
        return hashlib.sha256(np.asarray(self.tokens(depth), dtype="<i4").tobytes()).hexdigest()

    @property
    def tokens_by_depth(self) -> dict[int, tuple[int, ...]]:
        """Return the context of every depth."""
        return {depth: self.tokens(depth) for depth in self.depths}


@dataclass(frozen=True)
class _Setting:
    """What all prompts of one call share."""

    corpus: Corpus
    tokenize: Tokenize
    regime: Regime
    depths: tuple[int, ...]
    local_tokens: int
    filler: Filler
    seed: int


def build_prompts(
    corpus: Corpus,
    tokenize: Tokenize,
    *,
    regime: Regime,
    depths: Sequence[int],
    count: int,
    local_tokens: int | None = None,
    seed: int = 0,
    bos: Sequence[int] = (),
) -> list[Prompt]:
    """Return the first `count` prompts of a regime. Asking for more extends the list.

    Args:
        corpus: where the text comes from.
        tokenize: text to token ids, without control tokens (`tokenizer_of`, or a server's).
        regime: the kind of text that the prompts ask for.
        depths: tokens of context, each exact.
        count: number of prompts.
        local_tokens: length of the text that is the same at every depth; None takes 512, or the smallest depth.
        seed: another seed takes the prompts, and the filler, from other places of the corpus.
        bos: token ids that the model wants at the very beginning; they count as filler. Where the smallest depth has
            no room for them in front of the local text, they take the place of its first tokens.

    Raises:
        Problem: an unknown regime, a depth shorter than the local text, or a corpus with too little text.
    """
    local = _check(regime, depths, count, local_tokens, len(bos))
    text = build_filler(corpus, tokenize, max(depths) - local - len(bos), seed)
    setting = _Setting(
        corpus=corpus,
        tokenize=tokenize,
        regime=regime,
        depths=tuple(sorted(set(depths))),
        local_tokens=local,
        filler=Filler((*bos, *text.tokens), text.text),
        seed=seed,
    )
    prompts = list(islice(_distinct(_prompts(setting)), count))
    if len(prompts) < count:
        raise Problem(
            f"the {corpus.title} gives {len(prompts)} prompts for {regime} with {local} local tokens",
            expected=f"{count}",
            remedy="ask for fewer prompts, for another number of local tokens, or name a directory with more text",
        )
    return prompts


def _check(regime: Regime, depths: Sequence[int], count: int, local_tokens: int | None, bos: int) -> int:
    if regime not in REGIMES:
        raise Problem(f"no regime named {regime!r}", expected=f"one of {', '.join(REGIMES)}")
    if not depths or min(depths) < 1 or count < 1:
        raise Problem(f"{count} prompts at depths {list(depths)}", expected="at least one prompt, depth and token")
    local = min(DEFAULT_LOCAL_TOKENS, *depths) if local_tokens is None else local_tokens
    if not bos < local <= min(depths):
        raise Problem(
            f"{local} local tokens do not fit into a depth of {min(depths)}",
            expected=f"{bos + 1} to {min(depths)}",
            remedy="choose a larger smallest depth or fewer local tokens",
        )
    return min(local, min(depths) - bos)


def _prompts(setting: _Setting) -> Iterator[Prompt]:
    """Yield one prompt of every text, then a second of every text that has one, and so on."""
    kind: Literal["code", "prose"] = "prose" if setting.regime == "prose" else "code"
    texts = split_texts(setting.corpus.of_kind(kind), setting.seed)[1]
    waiting = [_prompts_of(text, setting) for text in texts]
    while waiting:
        still = []
        for prompts in waiting:
            for prompt in islice(prompts, 1):
                yield prompt
                still.append(prompts)
        waiting = still


_function_cuts = lru_cache(maxsize=2048)(function_cuts)
_paragraph_cuts = lru_cache(maxsize=2048)(paragraph_cuts)


def _prompts_of(text: Text, setting: _Setting) -> Iterator[Prompt]:
    cuts = _paragraph_cuts(text.content) if text.kind == "prose" else _sized_cuts(text.content, setting.local_tokens)
    named = [(f"{_slug(text)}-{cut.number:02d}", cut) for cut in cuts]
    build = _prose_prompt if text.kind == "prose" else _code_prompt
    for name, cut in sorted(named, key=lambda item: hashlib.sha256(f"{setting.seed} {item[0]}".encode()).digest()):
        prompt = build(name, text, cut, setting)
        if prompt is not None:
            yield prompt


def _sized_cuts(content: str, local_tokens: int) -> list[Cut]:
    """Return the cuts of functions that may fit into the local text, with their stub again behind them."""
    stub = min(_MIN_STUB_CHARS, int(local_tokens * _MIN_STUB_SHARE))
    lengths = range(_MIN_FUNCTION_CHARS, local_tokens * _MAX_FUNCTION_CHARS - stub)
    return _function_cuts(content, lengths, stub)


def _prose_prompt(name: str, text: Text, cut: Cut, setting: _Setting) -> Prompt | None:
    before, stub = text.content[: cut.start], cut.stub(text.content)
    local = _tail(before + stub, setting)
    if local is None or not _absent(cut.remainder(text.content), before + stub, setting):
        return None
    return _prompt(name, text, stub, local, setting)


def _code_prompt(name: str, text: Text, cut: Cut, setting: _Setting) -> Prompt | None:
    """Return the prompt of a place, or None if the place does not suit every code regime."""
    before, stub, remainder = text.content[: cut.start], cut.stub(text.content), cut.remainder(text.content)
    passage = recall_passage(text.content, cut, setting.local_tokens, setting.tokenize)
    if passage is None or loop_start(remainder) is not None or not _absent(remainder, before + stub, setting):
        return None
    indent = len(stub) - len(stub.lstrip(" "))
    novel = invented_stub(setting.corpus, before, name=f"{setting.seed} {name}", indent=indent, method=cut.method)
    texts = {"invention": before + novel, "continuation": before + stub, "recall": passage.text}
    locals_ = {regime: _tail(whole, setting) for regime, whole in texts.items()}
    local = locals_[setting.regime]
    if local is None or None in locals_.values() or len(setting.tokenize(novel)) > setting.local_tokens:
        return None
    if setting.regime == "recall":
        return _prompt(name, text, stub, local, setting, original=passage.original)
    return _prompt(name, text, novel if setting.regime == "invention" else stub, local, setting)


def _prompt(name: str, text: Text, stub: str, local: tuple[int, ...], setting: _Setting, original: str = "") -> Prompt:
    return Prompt(
        id=name,
        regime=setting.regime,
        source=text.name,
        stub=stub,
        original=original,
        depths=setting.depths,
        local=local,
        shared_filler=setting.filler.tokens,
    )


def _tail(text: str, setting: _Setting) -> tuple[int, ...] | None:
    """Return the last `local_tokens` tokens of a text, or None if it has fewer."""
    tokens = setting.tokenize(_window(text, setting))
    return tuple(tokens[-setting.local_tokens :]) if len(tokens) >= setting.local_tokens else None


def _window(text: str, setting: _Setting) -> str:
    """Return the end of a text, whole lines of it, that is sure to hold the local tokens if the text does."""
    start = len(text) - setting.local_tokens * _WINDOW_CHARS
    return text if start <= 0 else text[text.find("\n", start) + 1 :]


def _absent(remainder: str, local: str, setting: _Setting) -> bool:
    """Return whether no run of `2 * _PIECE` characters of a remainder stands in the context in front of it."""
    pieces = (remainder[at : at + _PIECE] for at in range(0, max(1, len(remainder) - _PIECE + 1), _PIECE))
    near = _window(local, setting)
    return all(piece not in near and piece not in setting.filler.text for piece in pieces)


def _distinct(prompts: Iterator[Prompt]) -> Iterator[Prompt]:
    """Pass on what has not been seen: ids and contexts are distinct within a grid."""
    seen: set[str] = set()
    for prompt in prompts:
        names = {prompt.id, prompt.sha256(prompt.depths[0])}
        if not names & seen:
            seen |= names
            yield prompt


def _slug(text: Text) -> str:
    stem = text.name.rpartition(".")[0] if text.kind == "code" or "." in text.name else text.name
    return re.sub(r"[^a-z0-9]+", ".", stem.lower()).strip(".") or "text"
