"""Files that nobody meant well with: no crash, no hang, bounded memory, nothing that a terminal or page would run."""

import json
import tracemalloc
from io import BytesIO, RawIOBase
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis.ingest.assemble import MOST_SLOTS, Assembler
from analysis.ingest.blocks import open_log
from analysis.ingest.gather import gather
from analysis.ingest.lines import find
from analysis.ingest.model import Reading
from analysis.ingest.read import read_log, read_stream
from analysis.ingest.text import cell, clean
from analysis.records import Problem

LOGS = Path(__file__).parent / "logs"

WORDS = [
    b"draft acceptance rate = 0.5 (", b" accepted / ", b" generated)", b", mean len = ", b"acc per pos = (", b")",
    b"statistics draft: #calls(b,g,a) = ", b", #gen drafts = ", b"slot print_timing: id  0 | task 1 | ", b"\n", b"\r\n",
    b'"timings": {', b'"draft_n_accepted": ', b'"predicted_ms": ', b"}", b"{", b"[", b"\x1b[31m", b"\x00", b"\xff\xfe",
    b"llamacpp:spec_decode_num_drafts_total ", b'{position="', b'"} ', b"SpecDecoding metrics: ", b"Accepted: ",
    b"1.02.003.004 I ", b"1e999", b"-1", b"nan", b"99999999999999999999", b"0.333", b"accepted  3/ 5 draft tokens",
    b"prompt eval time = ", b" ms / ", b" tokens", b"stop processing: n_tokens = ", b"loading model", b"build: ",
]  # fmt: skip


def sound(content: bytes) -> None:
    for one in read_stream(BytesIO(content), "x"):
        if isinstance(one, Reading) and one.fit:
            assert 0 <= (one.accepted or 0) <= (one.drafted or one.accepted or 0)
            assert all(0 <= share <= 1 for share in one.survival)
            assert one.steps.low is None or one.steps.high is None or one.steps.low <= one.steps.high


@settings(max_examples=300)
@given(st.lists(st.sampled_from(WORDS) | st.binary(max_size=12), max_size=60))
def test_any_mixture_of_words_is_read_or_left(parts: list[bytes]) -> None:
    sound(b"".join(parts))


@settings(max_examples=150)
@given(
    st.sampled_from(sorted(path.name for path in LOGS.iterdir())),
    st.lists(st.tuples(st.integers(0, 10**6), st.binary(max_size=6)), max_size=6),
)
def test_a_damaged_excerpt_is_read_or_left(name: str, damage: list[tuple[int, bytes]]) -> None:
    content = bytearray((LOGS / name).read_bytes())
    for place, put in damage:
        at = place % (len(content) + 1)
        content[at : at + len(put)] = put
    sound(bytes(content))


class Endless(RawIOBase):
    """A file of one line without an end, as large as it is told."""

    def __init__(self, word: bytes, size: int) -> None:
        self.word, self.left = word, size

    def read(self, size: int = -1) -> bytes:
        size = min(size, self.left)
        self.left -= size
        return (self.word * (size // len(self.word) + 1))[:size]


@pytest.mark.parametrize(
    "word", [b"x", b"draft acceptance ", b"prompt eval time = ", b'{"draft_n_accepted"', b"\x00\x01", b"{", b'"']
)
def test_one_line_of_any_length_takes_constant_memory(word: bytes) -> None:
    def peak(size: int) -> int:
        tracemalloc.start()
        for _ in read_stream(Endless(word, size), "line"):
            pass
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return most

    assert peak(5 << 20) < peak(2 << 20) + (2 << 20)


def test_a_report_behind_a_long_line_is_still_found(text) -> None:
    line = b"draft acceptance rate = 0.60606 (  120 accepted /   198 generated)\n"
    found = text(b"x" * 3_000_000 + b"\n" + line)
    assert [(r.accepted, r.line) for r in found.readings] == [(120, 2)]
    assert found.files[0].overlong


def test_binary_garbage_reports_nothing(text) -> None:
    found = text(bytes(range(256)) * 500)
    assert (found.readings, found.speeds) == ((), ())


def test_escapes_and_markup_in_names_are_inert(excerpt) -> None:
    labels = {reading.label for reading in excerpt("speed-bench.json").readings}
    assert all(char.isprintable() for label in labels for char in label)
    assert clean("a\x1b]0;title\x07b\u202egnp.exe\nc") == "a\ufffd]0;title\ufffdb\ufffdgnp.exe\ufffdc"
    assert cell("=HYPERLINK(0)") == "'=HYPERLINK(0)"


def test_objects_in_objects_deeper_than_a_parser_goes_are_left(text) -> None:
    found = text(b'{"draft_n_accepted": 1, "x": ' + b'{"a":' * 5000 + b"1" + b"}" * 5000 + b"}")
    assert found.readings == ()


def test_numbers_in_json_that_are_none_are_refused(text) -> None:
    bad = {"draft_n": 2.5, "draft_n_accepted": True, "predicted_n": 10, "predicted_ms": 1e308}
    (reading,) = text(json.dumps({"timings": bad})).readings
    assert reading.problems


def test_slots_and_servers_without_end_are_given_out_early(text) -> None:
    lines = "".join(
        f"[{n}] slot print_timing: id {n} | task {n} | draft acceptance = 0.5 (1 accepted / 2 generated)\n"
        for n in range(2000)
    )
    found = text(lines)
    assert len(found.readings) == 2000
    assert len(found.setups) <= 64


def test_requests_without_end_that_stop_unreported_are_let_go() -> None:
    assembler = Assembler("typed.log")
    for n in range(5000):
        data = b"slot      release: id  %d | task %d | stop processing: n_past = 9, truncated = 0\n" % (n, n)
        (line,) = find(data)
        assert list(assembler.take(line, n)) == []
    (server,) = assembler.servers.values()
    assert len(server.requests) == len(server.stopped) == MOST_SLOTS


def test_a_request_that_stopped_unreported_is_given_when_its_slot_goes_on(text) -> None:
    found = text(
        "slot update_slots: id  0 | task 1 | new prompt, n_ctx_slot = 2048, n_keep = 0, n_prompt_tokens = 7\n"
        "slot      release: id  0 | task 1 | stop processing: n_past = 9, truncated = 0\n"
        "slot print_timing: id  0 | task 1 | draft acceptance rate = 0.50000 (    1 accepted /     2 generated)\n"
        "slot launch_slot_: id  0 | task 2 | processing task\n"
        "slot update_slots: id  0 | task 2 | new prompt, n_ctx_slot = 2048, n_keep = 0, n_prompt_tokens = 8\n"
        "slot      release: id  0 | task 2 | stop processing: n_past = 9, truncated = 0\n"
    )
    assert [(r.task, r.depth, r.accepted) for r in found.readings] == [(1, 7, 1)]


def test_files_that_are_none_are_said(tmp_path) -> None:
    packed = tmp_path / "log with blanks ä.gz"
    packed.write_bytes(b"\x1f\x8b\x08\x00")
    with pytest.raises(Problem, match="is compressed"):
        open_log(packed)
    with pytest.raises(Problem, match="cannot be read"):
        list(read_log(tmp_path / "not there"))
    with pytest.raises(Problem, match="cannot be read"):
        list(read_log(tmp_path))


def test_what_is_held_is_bounded_and_the_sums_are_not() -> None:
    line = b"draft acceptance rate = 0.60606 (  120 accepted /   198 generated)\n"
    found = gather(read_stream(BytesIO(line * 12_000), "many"))
    assert (len(found.readings), found.left_out) == (10_000, 2_000)
    assert (found.totals[0].reports, found.totals[0].accepted) == (12_000, 120 * 12_000)
