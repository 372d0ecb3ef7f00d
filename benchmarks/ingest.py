"""A gigabyte of log through `specbook ingest`'s reader: bytes a second, and how far memory grows with the size.

The log is made of the excerpts that are kept with the tests, repeated without touching a disk. Three kinds: what a
server writes at ordinary verbosity with short replies, where four lines in ten are read; what it writes at its highest,
where every step is shown and 55 other lines stand between two that are read; and one line without an end.
"""

import argparse
import resource
import time
from io import RawIOBase
from pathlib import Path

from analysis.ingest.gather import Ingested, gather
from analysis.ingest.read import read_stream

LOGS = Path(__file__).resolve().parent.parent / "tests" / "ingest" / "logs"
GIB = 1 << 30
UNIT = 4 << 20
OTHER = b"0.06.711.902 D spec        draft:  - seq_id 0, draft candidate   2, pos   1:   1706 (   0.104) ' return'\n"
OTHERS = 55


class Repeated(RawIOBase):
    """A file that repeats some bytes until it is as large as asked."""

    def __init__(self, content: bytes, size: int) -> None:
        self.content = content * (UNIT // len(content) + 1)
        self.left, self.at = size, 0

    def read(self, size: int = -1) -> bytes:
        """Return the next bytes."""
        size = min(size if size >= 0 else self.left, self.left, len(self.content) - self.at)
        piece = self.content[self.at : self.at + size]
        self.left -= size
        self.at = (self.at + size) % len(self.content)
        return piece


def contents() -> dict[str, bytes]:
    """Return what is repeated, by name."""
    ordinary = (LOGS / "bundled-ngram.log").read_bytes()
    steps = (LOGS / "bundled-dspark.log").read_bytes().splitlines(keepends=True)
    verbose = b"".join(line + OTHER * OTHERS for line in steps)
    return {
        "short replies at ordinary verbosity": ordinary,
        "highest verbosity": verbose,
        "one line without an end": b"draft acceptance ",
    }


def timed(content: bytes, size: int) -> tuple[float, int, Ingested]:
    """Return the seconds and the highest resident memory so far in bytes, and what was read."""
    started = time.perf_counter()
    found = gather(read_stream(Repeated(content, size), "repeated.log"))
    seconds = time.perf_counter() - started
    return seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10, found


def measure(size: int = GIB) -> list[dict[str, str]]:
    """Read each kind of log at a sixteenth of the size and at the size, and return rates and growth of memory."""
    rows = []
    for name, content in contents().items():
        _, before, _ = timed(content, size // 16)
        seconds, after, found = timed(content, size)
        reports = len(found.readings) + found.left_out
        growth = (after - before) / 2**20
        rows.append(
            {
                "quantity": f"{size / GIB:.3g} GiB of log, {name}",
                "measured": f"{size / seconds / 1e6:.0f} MB/s; {growth:.1f} MiB more than a sixteenth",
                "target": "≥ 50 MB/s; constant memory",
                "note": f"{reports:,} reports; one process, no disk",
            }
        )
    return rows


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mib", type=int, default=1024)
    for row in measure(parser.parse_args().mib << 20):
        print(f"{row['quantity']}: {row['measured']} ({row['note']})")
