"""What a stream brought and when, kept as it came: read once nobody is kept from decoding by it."""

import time
from collections.abc import Iterator

HELD = 1 << 20
"""Bytes that are kept unread at most; the answer to a usual request has fewer."""


class Arrivals:
    """The chunks of one stream. Reading them takes lines out; the beginning of an unfinished line stays."""

    def __init__(self) -> None:
        self._chunks: list[tuple[float, bytes]] = []
        self._size = 0
        self._rest = b""

    def add(self, chunk: bytes) -> bool:
        """Keep a chunk with the moment it came; return whether so much is held that it is to be read now."""
        self._chunks.append((time.perf_counter(), chunk))
        self._size += len(chunk)
        return self._size > HELD

    def lines(self, *, last: bool = False) -> Iterator[tuple[float, str]]:
        """Take out the finished lines, each with the moment its end came, in seconds of `time.perf_counter`.

        Args:
            last: nothing follows, so that a line without an end is finished too.
        """
        chunks, self._chunks, self._size = self._chunks, [], 0
        for at, chunk in chunks:
            *whole, self._rest = (self._rest + chunk).split(b"\n")
            for line in whole:
                yield at, line.decode(errors="replace")
        if last and self._rest:
            rest, self._rest = self._rest, b""
            yield time.perf_counter(), rest.decode(errors="replace")
