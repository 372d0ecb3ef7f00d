"""The lines of a log that say something of speculation: found by their bytes, then read by one expression each.

Two steps make it fast: a few words are looked for in a whole block, and only the lines that hold one are read. They
make it safe too: what is in front of a message must be what logs have there (a time, a level, a slot), so that the
text of a request that quotes such a line is not taken for one.

Formats: llama.cpp's server (`print_timings` and `common_speculative_print_stats` in its versions from 2025 to 2026),
ik_llama.cpp's, vLLM's `SpecDecoding metrics`, and the Prometheus pages of llama.cpp and vLLM.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

Match = re.Match[bytes]

WINDOW = 4096
"""Bytes of a line that are read on either side of a word that was found."""

_ESCAPE = re.compile(rb"\x1b(?:\[[0-9;:?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\^_])")

# One message of the server's ends without a line of its own (at `-lv 5`), so that any other may stand behind it.
_HEAD = re.compile(
    rb"""(?:\xef\xbb\xbf)?[\s>]*
    (?:(?:[\d.]{12,20}[ ])?(?:[IWED][ ])?
      No[ ]parser[ ]definition[ ]detected,[ ]assuming[ ]pure[ ]content[ ]parser\.){0,4}
    (?:(?P<origin>\[\d{1,9}\]|[A-Za-z][\w.-]{0,60}[ ]{1,20}\|)[ ]*)?
    (?:\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d[\d.,:Z+-]{0,20}(?:[ ]std(?:out|err)[ ][FP])?[ ]*(?:\|[ ]*)?)?
    (?:[A-Z][a-z]{2}[ ]{1,2}\d{1,2}[ ]\d\d:\d\d:\d\d[ ][\w.-]{1,64}[ ][\w./-]{1,64}(?:\[\d{1,9}\])?:[ ]*)?
    (?:\(\w{1,40}[ ]pid=\d{1,9}\)[ ]+)?
    (?:(?P<clock>\d{1,7}\.\d\d\.\d{3}\.\d{3})[ ]+)?
    (?:[IWED][ ]+)?
    (?:(?:INFO|WARN|VERB|DEBUG|WARNING)[ ]+(?:\d\d-\d\d(?:[ ]\d\d:\d\d:\d\d)?[ ]+)?\[?[ ]*[\w.:]{1,80}\][ ]+)?
    (?:Engine[ ]\d{1,6}:[ ]+)?
    (?:(?:slot|srv|spec|cmn|main|common_\w{1,40})[ ]*[^\s:]{0,24}:[ ]+)?(?:common_params_print_info:[ ]+)?
    (?:id[ ]+(?P<slot>\d{1,6})[ ]+\|[ ]+task[ ]+(?P<task>-?\d{1,12})[ ]+\|)?[ ]*""",
    re.VERBOSE,
)

_FLOAT = rb"(-?(?:\d[\d.]{0,30}(?:e[+-]?\d{1,3})?|nan|inf))"
_INT = rb"(-?\d{1,18})"

_MESSAGES: dict[str, re.Pattern[bytes]] = {
    name: re.compile(pattern.replace(b"<float>", _FLOAT).replace(b"<int>", _INT))
    for name, pattern in {
        "draft": rb"draft acceptance(?: rate)? *= *<float> *\( *<int> accepted */ *<int> generated\)"
        rb"(?:, mean (?:acceptance )?len(?:gth)? *= *<float>)?"
        rb"(?:, acceptance rate per position *= *\(([^()]{0,2000})\))?",
        "positions": rb"acc per pos *= *\(([^()]{0,2000})\)",
        "statistics": rb"statistics +([\w.-]{1,40}): *#calls(?:\(b,g,a\))? *= *<int>"
        rb"(?:[ ,]+(\d{1,18})[ ,]+(\d{1,18}))?, *#gen drafts *= *<int>, *#acc drafts *= *<int>"
        rb", *#gen tokens *= *<int>, *#acc tokens *= *<int>"
        rb"(?:, *#mean acc len *= *<float>)?(?:, *#acc rate/pos *= *\(([^()]{0,2000})\))?",
        "time": rb"(prompt |generation )?eval time *= *<float> ms */ *<int> (?:tokens|runs)"
        rb"(?: *\( *\d{1,12}\.\d\d ms per token, *(\d{1,12}\.\d\d) tokens per second\))?",
        "step": rb"accepted +(\d{1,9}) */ *(\d{1,9}) draft tokens(, new n_| \(restore)?",
        "prompt": rb"new prompt, n_ctx_slot = \d{1,12}, n_keep = -?\d{1,12}"
        rb", (?:task\.n_tokens|n_prompt_tokens) = <int>",
        "reused": rb"(?:cached n_tokens|n_past|n_tokens) = (\d{1,12}), memory_seq_rm \[",
        "reused_older": rb"kv cache rm \[(?:(\d{1,12}), end\)|p0, end\).{0,200}? p0=(\d{1,12}))",
        "stop": rb"stop processing: n_(?:tokens|past) = (\d{1,12})",
        "limits": rb"- (?:n_match=\d{1,9}, )?n_max=(-?\d{1,9}), n_min=(-?\d{1,9})(?:, p_min=([\d.]{1,12}))?",
        "clamped": rb"requested draft size \(n_max=\d{1,9}, n_min=\d{1,9}\) exceeds .{0,80} clamping to (\d{1,9})",
        "kind": rb"adding speculative implementation '([\w.-]{1,40})'",
        "checkpoints": rb"speculative decoding will use checkpoints",
        "load": rb"loading model",
        "build": rb"(?:build_info|build|version) *[:=]? *(?:build *[:=] *|b)?(\d{1,9})[ -]+\(?([0-9a-f]{7,40})\b",
        "build_named": rb"version: .{0,40}\(build (\d{1,9}), commit ([0-9a-f]{7,40})\)",
        "vllm": rb"(?:SpecDecoding|Speculative) metrics: (.{1,2000})",
        "metric": rb"(llamacpp|vllm):spec_decode_num_(drafts|draft_tokens|accepted_tokens_per_pos|accepted_tokens)"
        rb"(?:_total)?(?:\{([^{}]{0,1000})\})?[ \t]+<float>",
    }.items()
}

# What is looked for in a block, and which messages a line with it may hold.
_WORDS: tuple[tuple[bytes, tuple[str, ...]], ...] = (
    (b"draft acceptance", ("draft",)),
    (b"acc per pos", ("positions",)),
    (b"#calls", ("statistics",)),
    (b"eval time", ("time",)),
    (b" draft tokens", ("step",)),
    (b"new prompt, n_c", ("prompt",)),
    (b"memory_seq_rm", ("reused",)),
    (b"kv cache rm", ("reused_older",)),
    (b"stop processing", ("stop",)),
    (b", n_min=", ("limits", "clamped")),
    (b"speculative ", ("kind", "checkpoints")),
    (b"loading model", ("load",)),
    (b"build", ("build_named", "build")),
    (b" metrics: ", ("vllm",)),
    (b":spec_decode_num_", ("metric",)),
)
_OBJECT_WORDS = (b'"draft_n_accepted"', b'"predicted_ms"', b'"avg_ts"', b'"osl"')


class Line(NamedTuple):
    """A line that holds a message; `kind` is a key of the table of messages.

    `missed` lines held the word and no message, or something in front of it that no log puts there.
    """

    start: int
    kind: str
    message: Match | None
    head: Match | None = None


class Spot(NamedTuple):
    """A place within a JSON object that is worth reading."""

    start: int
    word: bytes


def find(data: bytes, start: int = 0, end: int | None = None) -> Iterator[Line | Spot]:
    """Yield the lines and the places of JSON objects in a block that say something of speculation, in order.

    A word is looked for once a line, so that a line without an end costs no more than any other.

    Args:
        data: the block.
        start: where to begin, at the start of a line.
        end: where to end, behind a line; None for the whole block.
    """
    found: dict[int, tuple[str, ...]] = {}
    for word, kinds in _WORDS:
        at = data.find(word, start, end)
        while at >= 0:
            found[at] = kinds
            line_end = data.find(b"\n", at, end)
            at = data.find(word, line_end, end) if line_end >= 0 else -1
    spots = {}
    for word in _OBJECT_WORDS:
        at = data.find(word, start, end)
        while at >= 0:
            spots[at] = word
            at = data.find(word, at + len(word), end)
    if not spots:
        for at in sorted(found):
            yield _read(data, at, found[at])
        return
    for at in sorted([*found, *spots]):
        yield Spot(at, spots[at]) if at in spots else _read(data, at, found[at])


def read_line(line: bytes, start: int = 0) -> Iterator[Line]:
    """Yield what one line holds, for text that came from within something else."""
    for word, kinds in _WORDS:
        at = line.find(word)
        if at >= 0:
            read = _read(line, at, kinds)
            yield Line(start, read.kind, read.message, read.head)


def _read(data: bytes, at: int, kinds: tuple[str, ...]) -> Line:
    begin = data.rfind(b"\n", max(0, at - WINDOW), at) + 1 or max(0, at - WINDOW)
    end = data.find(b"\n", at, at + WINDOW)
    line = data[begin : end if end >= 0 else at + WINDOW]
    if b"\x1b" in line:
        line = _ESCAPE.sub(b"", line)
    head = _HEAD.match(line)
    place = head.end() if head else 0
    for kind in kinds:
        message = _MESSAGES[kind].match(line, place)
        if message is not None:
            return Line(begin, kind, message, head)
    return Line(begin, kinds[0], None, head)


def header_before(data: bytes, start: int) -> Match | None:
    """Return the head of the line before, where it is a `print_timing` line that has nothing behind its head.

    Until 2026 the server printed its timings as one message of several lines; only the first names the slot.
    """
    begin = data.rfind(b"\n", max(0, start - 256), max(0, start - 1)) + 1
    line = data[begin : max(begin, start - 1)]
    if b"print_timing" not in line:
        return None
    head = _HEAD.match(_ESCAPE.sub(b"", line))
    return head if head and head["slot"] and not line[head.end() :].strip() else None
