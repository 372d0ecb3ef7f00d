"""What generated text is: code, prose, recall, a loop, a refusal, nothing, or none of these.

A regime is a claim about the text that was generated, not about the prompt. Asked to continue code, a model may
answer in English inside comments; a small one may repeat itself. Acceptance differs several times over between such
texts, so each sample says what it is, and a gate compares that with its cell's regime.

Each threshold asks for the greater part of the emission, since acceptance is an average over all of it. Where real
text of both kinds could be measured, the threshold lies between them; its comment says what was measured.
"""

import re
from collections.abc import Sequence
from itertools import takewhile

from analysis.gates.loops import loop_start
from analysis.gates.source import MAX_CHARS, frame, parsed_chars, solid_chars, spoken_chars
from analysis.records import Label, Regime

# Of the emission reproduces the original before the first difference.
MIN_RECALLED = 0.5
# Of the emission parses as a continuation of the stub; one wrong line near the end is the model's honest code.
MIN_PARSED = 0.5
# Of the emission stands in comments and triple-quoted strings: beyond that, what is measured is English.
MAX_SPOKEN = 0.5
# Prose: plain words, among them English function words, and few lines that look like code. Measured on 576 passages
# behind the cuts of Python's help topics and 268 of its source, 250 and 800 characters long: of the topics 98 % have
# plain words for more than half of their characters, 98 % have 12 % function words, and 95 % have at most 30 % of
# their characters in lines like code; of the source 1 % have so few. All three hold for 95 % and for under 1 %.
MIN_PLAIN = 0.5
MIN_FUNCTION_WORDS = 0.12
MAX_CODE_LINES = 0.3

# Without those that are Python's keywords.
_FUNCTION_WORDS = """
the a an of to that it are be by on this which at can will has have been when but may its one all other they such any
only than into no then was were these must should more two same does also so there their would between each both what
how where
"""
_ENGLISH = frozenset(_FUNCTION_WORDS.split())
_WORD = re.compile(r"[A-Za-z]+(?:['’][a-z]+)?")
_PLAIN = re.compile(r"[\"'“‘(\[*`]*[^\W\d_]+(?:[-'’/][^\W\d_]+)*[)\]\"'”’.,;:!?*`]*")
_CODE_LINE = re.compile(
    r"""\s*(?:
      @\w | >>>[ ] | \# | [)\]}]+[,:]?\s*\Z
    | (?:async[ ])?def[ ]\w | class[ ]\w+[:(] | raise[ ]\w+ | yield\b | (?:import|from)[ ][\w.]+
    | return\b(?![ ](?:a|an|the|of|value)\b)
    | (?:if|elif|for|while|with|except|else|try|finally)\b.*:\s*\Z
    | [\w.\[\]"'()*,\ ]+[ ](?:=|[-+*/%|&]=)[ ]
    | [\w.]+\(.*\)?\s*\Z
    )""",
    re.VERBOSE,
)
_REFUSAL = re.compile(
    r"""\b(?:
      I['’]m\ sorry | I\ am\ sorry | I\ apologi[sz]e | as\ an\ AI
    | I\ (?:can(?:no|['’])t | am\ unable\ to | won['’]t)\ (?:help|assist|provide|fulfil|continue|complete|do|write)
    | (?:sure|certainly|of\ course)[,!.]\ (?:here|I)\b
    | here(?:\ is|['’]s)\ (?:the|a|an|your)\ (?:complete|full|updated|rest|implementation|example)
    | how\ (?:can|may)\ I\ (?:help|assist) | let\ me\ know\ if\ you | I\ hope\ this\ helps
    )""",
    re.IGNORECASE | re.VERBOSE,
)


def label(
    regime: Regime,
    stub: str,
    emitted: str,
    original: str = "",
    *,
    tokens: Sequence[int] = (),
    ends_with_eos: bool = False,
) -> Label:
    """Return what a piece of generated text is, whatever it was meant to be.

    Args:
        regime: what the prompt asked for. It decides only how the text is read: behind a stub of code as Python,
            behind prose as English.
        stub: the last piece of the prompt; the emission continues it.
        emitted: what the model generated.
        original: for recall, what stands in the context behind the first occurrence of the stub.
        tokens: the emission's token ids; loops are looked for in them and in the text.
        ends_with_eos: whether the model ended the text itself; otherwise its last word may be torn.
    """
    if not emitted.strip():
        return Label(
            kind="empty", share=0.0, why="the model ended the text at once" if ends_with_eos else "only blanks"
        )
    looped = _looped(emitted, tokens)
    if looped:
        return Label(kind="loop", share=looped, why=f"the last {percent(looped)} of it repeat themselves")
    recalled, whole = _common_bytes(emitted, original), len(emitted.encode(errors="replace"))
    if original and recalled >= MIN_RECALLED * whole:
        share = recalled / len(original.encode())
        return Label(kind="recall", share=share, why=f"{percent(recalled / whole)} of it repeat the original")
    refusal = _REFUSAL.search(emitted)
    if refusal:
        return Label(kind="refusal", share=1 - refusal.start() / len(emitted), why=f"it says {refusal[0]!r}")
    if regime == "prose":
        return _prose(emitted) or Label(kind="other", share=1.0, why=_unlike_prose(emitted))
    return _code(stub, emitted)


def _common_bytes(one: str, other: str) -> int:
    """Return the length in bytes of the longest common beginning."""
    pairs = zip(one.encode(errors="replace"), other.encode(errors="replace"), strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


def _looped(emitted: str, tokens: Sequence[int]) -> float:
    in_tokens, in_text = loop_start(tokens), loop_start(emitted[:MAX_CHARS])
    shares = [0.0]
    if in_tokens is not None:
        shares.append(1 - in_tokens / len(tokens))
    if in_text is not None:
        shares.append(1 - in_text / len(emitted[:MAX_CHARS]))
    return max(shares)


def _code(stub: str, emitted: str) -> Label:
    parsed = parsed_chars(stub, emitted) / len(emitted)
    head = frame(stub)
    spoken = spoken_chars(head + emitted, len(head)) / solid_chars(emitted)
    if parsed >= MIN_PARSED and spoken <= MAX_SPOKEN:
        return Label(kind="code", share=parsed, why=f"{percent(parsed)} of it parse, {percent(spoken)} are comments")
    if parsed >= MIN_PARSED:
        return Label(kind="prose", share=spoken, why=f"{percent(spoken)} of it are English in comments or docstrings")
    unparsed = f"only {percent(parsed)} of it parse behind the stub"
    prose = _prose(emitted)
    if prose:
        return Label(kind="prose", share=prose.share, why=f"{unparsed}; {prose.why}")
    return Label(kind="other", share=1.0, why=unparsed)


def _prose(text: str) -> Label | None:
    plain = _plain_share(text)
    like_english = plain >= MIN_PLAIN and _function_word_share(text) >= MIN_FUNCTION_WORDS
    if not like_english or _code_line_share(text) > MAX_CODE_LINES:
        return None
    return Label(kind="prose", share=plain, why=f"{percent(plain)} of it are plain words")


def _unlike_prose(text: str) -> str:
    return (
        f"{percent(_plain_share(text))} of it are plain words, {percent(_function_word_share(text))} of these"
        f" English function words, {percent(_code_line_share(text))} of it lines like code"
    )


def _plain_share(text: str) -> float:
    words = text.split()
    return sum(len(word) for word in words if _PLAIN.fullmatch(word)) / max(1, sum(map(len, words)))


def _function_word_share(text: str) -> float:
    words = _WORD.findall(text.lower())
    return sum(word in _ENGLISH for word in words) / max(1, len(words))


def _code_line_share(text: str) -> float:
    """Return the share of characters in lines that look like code; the first line continues one of the prompt's."""
    lines = [line.strip() for line in text.split("\n")[1:]]
    return sum(len(line) for line in lines if _CODE_LINE.match(line)) / max(1, sum(map(len, lines)))


def percent(share: float) -> str:
    """Return a share as text: `50 %`."""
    return f"{share:.0%}".replace("%", " %")
