"""The lines that llama-server writes together when a request ends, read by one expression.

At ordinary verbosity they are most of a log. The expression takes only what it knows to the byte, with what stands
between two such endings; whatever differs is read line by line as in any other log, and to the same result.
"""

import re
from collections.abc import Iterator

from analysis.ingest.lines import Match

START = b"prompt eval time ="

_LINE_START = 256
"""Bytes in front of the word in which its line begins."""

# The first line's clock and slot must be the others' too, to the second: then no clock can have gone back by more.
_FIRST = (
    rb"(?:(?P<clock>(?P<second>\d{1,7}\.\d\d\.)\d{3}\.\d{3}) )?(?P<level>I )?"
    rb"slot print_timing: id  ?(?P<slot>\d{1,6}) \| "
)
_CLOCK = rb"(?(second)(?P=second)\d{3}\.\d{3} )(?(level)I )"
_NEXT = _CLOCK + rb"slot print_timing: id  ?(?P=slot) \| task (?P=task) \| +"
_SPEED = rb" \( *\d{1,12}\.\d\d ms per token, *(\d{1,12}\.\d\d) tokens per second\)\r?\n"
_TIME = rb"(\d{1,12}\.\d\d) ms / *(\d{1,9}) tokens"

# Lines that say nothing of speculation and hold no text of a user's.
_OTHERS = re.compile(
    rb"(?:(?:\d{1,7}\.\d\d\.\d{3}\.\d{3} )?(?:I )?(?:slot (?:"
    rb"get_availabl: id  ?\d+ \| task -?\d+ \| selected slot by "
    rb"(?:LRU, t_last = -?\d+|LCP similarity, (?:f_)?sim_best = [\d.]+ \(> [\d.]+ thold\), f_keep = [\d.]+)"
    rb"|launch_slot_: id  ?\d+ \| task \d+ \| processing task(?:, is_child = \d)?"
    rb"|print_timing: id  ?\d+ \| task \d+ \| n_(?:gen|decoded) = *\d+, tg = *[\d.]+ t/s(?:, tg_3s = *[\d.]+ t/s)?)"
    rb"|srv  (?:update_slots: all slots are idle|log_server_r: (?:done )?request: [A-Z]+ [\w/]* [\d.]+ \d+))\r?\n)*"
)

_ENDING = re.compile(
    _FIRST + rb"task (?P<task>\d{1,12}) \| prompt eval time = *" + _TIME + _SPEED
    + _NEXT + rb"eval time = *" + _TIME + _SPEED
    + _NEXT + rb"total time = *\d+\.\d\d ms / *\d+ tokens\r?\n"
    + rb"(" + _NEXT + rb"graphs reused = *\d+\r?\n)?"
    + rb"(?:" + _NEXT + rb"draft acceptance = *(\d\.\d{1,9}) \( *(\d{1,9}) accepted / *(\d{1,9}) generated\)"
    + rb"(?:, mean len = *(\d{1,9}\.\d{1,9}))?\r?\n"
    + rb"(?:" + _NEXT + rb"acc per pos = \((?P<positions>[\d., ]{0,2000})\)\r?\n)?)?"
    + rb"(?(second)(?P<last>(?P=second)\d{3}\.\d{3}) )(?(level)I )slot      release: id  ?(?P=slot) "
    + rb"\| task (?P=task) \| stop processing: n_tokens = \d{1,9}, truncated = \d\r?\n"
)  # fmt: skip


def endings(data: bytes) -> Iterator[tuple[Match, int]]:
    """Yield the endings of requests in a block, in order, with the place behind the other lines that follow each."""
    at = data.find(START)
    while at >= 0:
        begin = data.rfind(b"\n", max(0, at - _LINE_START), at) + 1
        match = _ENDING.match(data, begin) if begin or at < _LINE_START else None
        end = at + len(START)
        while match is not None:
            end = _skipped(data, match.end())
            yield match, end
            match = _ENDING.match(data, end)
        at = data.find(START, end)


def _skipped(data: bytes, place: int) -> int:
    others = _OTHERS.match(data, place)
    return place if others is None else others.end()


def texts(ending: Match) -> tuple[dict[str, bytes], int]:
    """Return what was printed, by its name, and by how many lines the acceptance is below the first; 0 for nowhere."""
    printed = ending.groups()
    prompt_ms, prompt_n, prompt_per_s, predicted_ms, emitted, predicted_per_s, graphs = printed[5:12]
    rate, accepted, drafted, mean = printed[12:16]
    found = {
        "prompt_ms": prompt_ms, "prompt_n": prompt_n, "prompt_per_s": prompt_per_s,
        "predicted_ms": predicted_ms, "emitted": emitted, "predicted_per_s": predicted_per_s,
    }  # fmt: skip
    if rate is None:
        return found, 0
    found["rate"], found["accepted"], found["drafted"] = rate, accepted, drafted
    if mean is not None:
        found["mean_length"] = mean
    positions = ending["positions"]
    if positions is not None:
        found["positions"] = positions
    return found, 3 if graphs is None else 4
