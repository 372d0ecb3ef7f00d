"""One file or stream of any size, read into reports as it goes by; what is held at a time is bounded."""

import json
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import BinaryIO, TypeVar

from analysis.ingest import objects
from analysis.ingest.assemble import Assembler
from analysis.ingest.blocks import Block, blocks, open_log
from analysis.ingest.endings import endings
from analysis.ingest.lines import Line, Spot, find, header_before, read_line
from analysis.ingest.model import Reading, Scanned, Setup, Speed
from analysis.ingest.pages import Scrapes, vllm_reading
from analysis.ingest.text import clean

T = TypeVar("T")

BATCH = 100
"""Lines, or endings of requests, that are looked for before they are read."""

Found = Reading | Speed | Setup | Scanned

_NAMED = ("draft", "positions", "statistics")
"""Messages whose words stand in hardly any other line; a line that has them and is none of them is counted."""


def read_log(path: Path) -> Iterator[Found]:
    """Yield what a file says of speculation, in order, and at the end what was looked at.

    Raises:
        Problem: the file cannot be read, or is compressed.
    """
    with open_log(path) as file:
        yield from read_stream(file, path.name)


def read_stream(file: BinaryIO, name: str) -> Iterator[Found]:
    """Yield what a stream of bytes says of speculation, in order, and at the end what was looked at."""
    reader = _Reader(clean(name))
    for block, encoding in blocks(file):
        yield from reader.take(block, encoding)
    yield from reader.finish()


class _Reader:
    """What is carried from one block to the next, and within a block where it has been read to."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.assembler = Assembler(source)
        self.scrapes = Scrapes(source)
        self.open: objects.Stream | None = None
        self.size = self.hits = self.misses = self.overlong = 0
        self.lines = 1
        self.counted, self.done, self.failed = 0, -1, 0
        self.encoding = "utf-8"

    def take(self, block: Block, encoding: str) -> list[Found]:
        """Return what a block says."""
        data = block.data
        self.encoding = encoding
        self.size += len(data)
        self.overlong += block.overlong
        self.counted, self.done, self.failed = 0, -1, 0
        found: list[Found] = []
        at = 0
        for ending, end in _in_batches(endings(data)):
            start = ending.start()
            if start > at:
                found.extend(self._between(data, at, start))
            at = end
            self._count(data, start)
            reading = self.assembler.take_ending(ending, self.lines)
            if reading is None:
                found.extend(self._between(data, start, end))
            else:
                self.hits += 3 + (reading.drafted is not None) + (ending["positions"] is not None)
                found.append(reading)
        found.extend(self._between(data, at, len(data)))
        self._count(data, len(data))
        return found

    def _count(self, data: bytes, place: int) -> None:
        """Make `lines` the number of the line at a place behind the last one."""
        if place > self.counted:
            self.lines += data.count(b"\n", self.counted, place)
            self.counted = place

    def _between(self, data: bytes, start: int, end: int) -> Iterator[Found]:
        """Yield what the lines between two places say, taken one by one."""
        for place in _in_batches(find(data, start, end)):
            self._count(data, place.start)
            if isinstance(place, Spot):
                found = objects.object_at(data, place) if self.failed < objects.MOST_FAILURES else None
                self.failed += found is None
                if found is not None and found[0] > self.done:
                    self.done = found[0]
                    yield from self._object(found[1], self.lines)
            else:
                yield from self._line(data, place, self.lines)

    def _line(self, data: bytes, line: Line, number: int) -> Iterable[Found]:
        if line.message is None:
            return self._inner(data, line, number)
        self.hits += 1
        if line.kind == "metric":
            return self.scrapes.take(line.message, number)
        if line.kind == "vllm":
            reading = vllm_reading(self.source, number, line.message[1])
            return () if reading is None else (reading,)
        return self.assembler.take(line, number, _header(data, line))

    def _inner(self, data: bytes, line: Line, number: int) -> Iterator[Found]:
        inner = list(_inside(data, line.start))
        self.misses += not inner and line.kind in _NAMED
        before = None
        for one, header in inner:
            before = header or before
            yield from self.assembler.take(one, number, before)

    def _object(self, found: dict[str, object], number: int) -> Iterator[Found]:
        if "avg_ts" in found:
            speed = objects.speed(self.source, number, found)
            if speed is not None:
                self.hits += 1
                yield speed
            return
        reading = objects.timings(self.source, number, found)
        if reading is None:
            return
        self.hits += 1
        if self.open is None:
            self.open = objects.Stream.begin(reading)
        elif not self.open.goes_on(reading):
            yield self.open.reading()
            self.open = objects.Stream.begin(reading)

    def finish(self) -> Iterator[Found]:
        if self.open is not None:
            yield self.open.reading()
        yield from self.assembler.finish()
        yield from self.scrapes.finish()
        yield Scanned(
            source=self.source,
            size=self.size,
            lines=self.lines if self.size else 0,
            hits=self.hits,
            misses=self.misses,
            overlong=self.overlong,
            encoding=self.encoding,
        )


def _in_batches(items: Iterable[T]) -> Iterator[T]:
    """Yield items that were made some at a time.

    To match a hundred lines and then to read them is faster than both line by line: each kind of work stays in the
    processor's caches.
    """
    source = iter(items)
    while batch := list(islice(source, BATCH)):
        yield from batch


def _header(data: bytes, line: Line) -> Line | None:
    """Return the line that names the slot of a line of the server's older, many-lined message."""
    if line.kind != "time" or (line.head is not None and line.head["slot"]):
        return None
    head = header_before(data, line.start)
    return None if head is None else Line(line.start, "header", None, head)


def _inside(data: bytes, start: int) -> Iterator[tuple[Line, Line | None]]:
    """Yield the lines within the `msg` of a line that `--log-jsonl` wrote."""
    end = data.find(b"\n", start, start + objects.LONGEST)
    text = data[start : end if end >= 0 else start + objects.LONGEST].strip()
    if not text.startswith(b'{"') or b'"msg"' not in text:
        return
    try:
        message = json.loads(text.decode("utf-8", "replace"))["msg"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return
    if not isinstance(message, str):
        return
    whole = message.encode("utf-8", "replace")
    place = 0
    for part in whole.split(b"\n"):
        for line in read_line(part):
            if line.message is not None and line.kind not in ("metric", "vllm"):
                header = _header(whole, Line(place, line.kind, line.message, line.head))
                yield line, header
        place += len(part) + 1
