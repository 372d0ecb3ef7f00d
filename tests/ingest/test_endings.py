"""The last lines of a request read at once say what the same lines say one by one."""

import re
from collections.abc import Callable
from io import BytesIO
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis.ingest import read
from analysis.ingest.endings import endings
from analysis.ingest.gather import ingest
from analysis.ingest.read import read_stream

LOGS = Path(__file__).parent / "logs"
TWENTY = (LOGS / "bundled-ngram-twenty.log").read_bytes()
DAMAGE = ["drop", "swap", "double", "cut", "put"]
LINES = TWENTY.splitlines(keepends=True)

# What the responses to these requests said: accepted and drafted tokens, generated ones, prompt tokens evaluated.
RESPONSES = [
    (55, 94, 96, 37), (9, 70, 160, 17), (34, 80, 92, 13), (34, 96, 160, 13), (2, 16, 43, 12),
    (2, 16, 22, 19), (11, 16, 14, 16), (0, 8, 96, 16), (108, 109, 128, 437), (87, 128, 128, 143),
    (61, 135, 128, 622), (45, 224, 128, 689), (84, 147, 128, 705), (36, 125, 128, 402), (55, 125, 128, 336),
    (71, 141, 128, 800), (78, 102, 96, 147), (70, 86, 96, 317), (67, 97, 96, 301), (24, 95, 96, 367),
]  # fmt: skip


def both(content: bytes) -> tuple[list[str], list[str]]:
    """What is read at once, and what line by line; as text, since a number that is none equals nothing."""
    at_once = [repr(found) for found in read_stream(BytesIO(content), "x")]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(read, "endings", lambda data: ())
        return at_once, [repr(found) for found in read_stream(BytesIO(content), "x")]


def test_every_request_of_an_ordinary_log_is_read_at_once() -> None:
    assert sum(1 for _ in endings(TWENTY)) == 20


def test_the_log_says_what_the_responses_said() -> None:
    readings = ingest([LOGS / "bundled-ngram-twenty.log"]).readings
    assert [(r.accepted, r.drafted, r.emitted, r.prompt_n) for r in readings] == RESPONSES
    assert all(r.fit for r in readings)
    assert [r.steps.value is None for r in readings] == [accepted == 0 for accepted, *_ in RESPONSES]


@pytest.mark.parametrize("path", sorted(LOGS.iterdir()), ids=lambda path: path.name)
def test_an_excerpt_says_the_same_line_by_line(path: Path) -> None:
    at_once, one_by_one = both(path.read_bytes())
    assert at_once == one_by_one


def lines_with(log: bytes, word: bytes) -> bytes:
    return b"".join(line for line in log.splitlines(keepends=True) if word in line)


def lines_without(log: bytes, word: bytes) -> bytes:
    return b"".join(line for line in log.splitlines(keepends=True) if word not in line)


PROMPT = b"I slot operator(): id  3 | task 42 | new prompt, n_ctx_slot = 8192, n_keep = 0, task.n_tokens = 60"
CURVE = b"\n0.04.866.081 I slot print_timing: id  3 | task 42 |      acc per pos = (0.500, 0.250)"

CHANGES: dict[str, Callable[[bytes], bytes]] = {
    "Windows lines": lambda log: log.replace(b"\n", b"\r\n"),
    "no time, no level": lambda log: re.sub(rb"(?m)^[\d.]+ [IW] ", b"", log),
    "no level": lambda log: re.sub(rb"(?m)^([\d.]+) [IW] ", rb"\1 ", log),
    "a second begins in between": lambda log: log.replace(b"0.08.951.06", b"0.09.051.06"),
    "the clock goes back": lambda log: log.replace(b"0.10.04", b"0.02.04"),
    "another slot in between": lambda log: log.replace(b"task 42 |        eval", b"task 43 |        eval"),
    "more accepted than drafted": lambda log: log.replace(b"(    9 accepted", b"(   90 accepted"),
    "a mean that cannot be": lambda log: log.replace(b"mean len =  1.90", b"mean len =  9.90"),
    "a curve": lambda log: log.replace(b", mean len =  1.90", CURVE),
    "a curve of nothing": lambda log: log.replace(b", mean len =  1.90", CURVE.replace(b"0.500, 0.250", b"")),
    "words at the end of a line": lambda log: log.replace(b"per second)", b"per second) draft acceptance"),
    "no drafts": lambda log: lines_without(log, b"draft acceptance"),
    "no end": lambda log: lines_without(log, b"release"),
    "nothing but acceptance": lambda log: lines_with(log, b"draft acceptance"),
    "another line of the request": lambda log: re.sub(rb"I slot launch_slot_: id  3 \| task 42 .*", PROMPT, log),
    "three servers": lambda log: log * 3,
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_changed_log_says_the_same_line_by_line(change: Callable[[bytes], bytes]) -> None:
    assert change(TWENTY) != TWENTY
    at_once, one_by_one = both(change(TWENTY))
    assert at_once == one_by_one


@settings(max_examples=200)
@given(
    st.integers(0, len(LINES) - 1),
    st.lists(st.tuples(st.sampled_from(DAMAGE), st.integers(0, 10**6), st.binary(max_size=4)), max_size=5),
)
def test_any_damage_leaves_the_same_line_by_line(start: int, damage: list[tuple[str, int, bytes]]) -> None:
    lines = LINES[start : start + 30]
    for kind, place, put in damage:
        at = place % len(lines)
        middle = place % len(lines[at]) if lines[at] else 0
        match kind:
            case "drop":
                lines[at] = b""
            case "swap":
                lines[at], lines[0] = lines[0], lines[at]
            case "double":
                lines[at] *= 2
            case "cut":
                lines[at] = lines[at][:middle]
            case "put":
                lines[at] = lines[at][:middle] + put + lines[at][middle + len(put) :]
    at_once, one_by_one = both(b"".join(lines))
    assert at_once == one_by_one
