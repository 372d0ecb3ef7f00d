"""A file of any size as blocks of whole lines, in constant memory."""

import codecs
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from analysis.records import Problem

BLOCK = 1 << 20
"""Bytes that are read at a time."""

MAX_LINE = 1 << 16
"""A longer line is read in pieces of this size: no log line that is looked for is as long."""

_GZIP = b"\x1f\x8b"
_ZSTD = b"\x28\xb5\x2f\xfd"


@dataclass(frozen=True, slots=True)
class Block:
    """Some bytes of a file, cut at the end of a line where there is one.

    `overlong` says that it ends within a line longer than `MAX_LINE`.
    """

    data: bytes
    overlong: bool = False


def open_log(path: Path) -> BinaryIO:
    """Open a log.

    Raises:
        Problem: it is not there, is no file, may not be read, or is compressed.
    """
    try:
        file = path.open("rb")
        magic = file.read(4)
        if file.seekable():
            file.seek(0)
    except OSError as error:
        raise Problem(f"{path} cannot be read: {error.strerror or error}", expected="a log or a JSON file") from None
    if magic.startswith((_GZIP, _ZSTD)):
        file.close()
        raise Problem(
            f"{path} is compressed",
            expected="text",
            remedy="unpack it into the command: zcat FILE | specbook ingest -",
        )
    return file


def encoding_of(start: bytes) -> str:
    """Return the encoding that the beginning of a file shows: `utf-16-le`, `utf-16-be`, or `utf-8` for the rest.

    Windows' shells write a redirected log in two bytes a character, mostly with a mark in front.
    """
    if start.startswith(codecs.BOM_UTF16_LE):
        return "utf-16-le"
    if start.startswith(codecs.BOM_UTF16_BE):
        return "utf-16-be"
    sample = start[:4096]
    odd, even = sample[1::2].count(0), sample[::2].count(0)
    if len(sample) >= 16 and odd > 0.4 * len(sample) / 2 and even < 0.05 * len(sample):
        return "utf-16-le"
    if len(sample) >= 16 and even > 0.4 * len(sample) / 2 and odd < 0.05 * len(sample):
        return "utf-16-be"
    return "utf-8"


def chunks(file: BinaryIO) -> Iterator[tuple[bytes, str]]:
    """Yield a file's bytes, one byte a character where it had two, with the encoding that was found."""
    first = file.read(BLOCK)
    encoding = encoding_of(first)
    decoder = None if encoding == "utf-8" else codecs.getincrementaldecoder(encoding)(errors="replace")
    chunk = first
    while chunk:
        yield (chunk if decoder is None else decoder.decode(chunk).encode("utf-8", "replace")), encoding
        chunk = file.read(BLOCK)


def blocks(file: BinaryIO) -> Iterator[tuple[Block, str]]:
    """Yield blocks of whole lines with the file's encoding; what is held at a time is bounded by `BLOCK`."""
    rest = b""
    encoding = "utf-8"
    for chunk, found in chunks(file):
        encoding = found
        data = rest + chunk
        end = _cut(data)
        if end == 0 and len(data) <= MAX_LINE:
            rest = data
            continue
        end = end or len(data)
        yield Block(data[:end], overlong=data[end - 1 : end] != b"\n"), encoding
        rest = data[end:]
    if rest:
        yield Block(rest), encoding


def _cut(data: bytes) -> int:
    """Return where to cut: behind the last line, but in front of a JSON object that has just begun; 0 for nowhere."""
    end = data.rfind(b"\n") + 1
    brace = data.rfind(b"{", max(0, end - MAX_LINE // 8), end)
    if brace > 0 and data.find(b"}", brace, end) < 0:
        before = data.rfind(b"\n", 0, brace) + 1
        return before or end
    return end if len(data) - end <= MAX_LINE else len(data)
