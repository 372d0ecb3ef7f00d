"""Logs of up to a gigabyte through `specbook ingest`'s reader: bytes a second on one core, and how far memory grows.

The logs are made of those that are kept with the tests, and are read without touching a disk. Five kinds:

- what the bundled server wrote at its ordinary verbosity for twenty requests, over and over, each time with later
  clocks, other tasks and other counts, so that no request is like one before it within 8 MiB. Four of its eight lines
  a request are read. Longer replies have more of the others: this is as dense as such a log gets;
- the same of a server of August 2025, whose lines are read one by one: some six of twelve a request;
- what the bundled one writes at its highest verbosity, where every step is shown and 55 other lines stand between two
  that are read;
- nothing but lines of acceptance, every one of another request: the worst case, which no server writes;
- one line without an end.
"""

import argparse
import random
import re
import resource
import time
from io import RawIOBase
from pathlib import Path

from analysis.ingest.gather import Ingested, gather
from analysis.ingest.read import read_stream

LOGS = Path(__file__).resolve().parent.parent / "tests" / "ingest" / "logs"
GIB = 1 << 30
UNIT = 8 << 20
OTHER = b"0.06.711.902 D spec        draft:  - seq_id 0, draft candidate   2, pos   1:   1706 (   0.104) ' return'\n"
OTHERS = 55
MINUTES = 2
"""By how much the clock goes on from one time that the twenty requests are repeated to the next."""

OLDER_PART, WORST_PART = 4, 16
"""These are read up to a fourth and a sixteenth of the size: they take that much longer."""

_CLOCK = re.compile(rb"(?m)^(\d+)(\.\d\d\.\d{3}\.\d{3} )")
_TASK = re.compile(rb"(?m)(\| task )(\d+)")
_DRAFT = re.compile(rb"draft acceptance (?:rate )?= .*")


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


def server_log(name: str, first_word: bytes, generator: random.Random) -> bytes:
    """Return a server's start and then its requests over and over, never the same; a word is in the first's line."""
    lines = (LOGS / name).read_bytes().splitlines(keepends=True)
    first = next(place for place, line in enumerate(lines) if first_word in line)
    requests = b"".join(lines[first:-1])
    tasks = 1 + max(int(task) for _, task in _TASK.findall(requests))
    parts, size = [b"".join(lines[:first])], 0
    while size < UNIT:
        times = len(parts) - 1
        part = _CLOCK.sub(lambda hit, later=MINUTES * times: b"%d%s" % (int(hit[1]) + later, hit[2]), requests)
        part = _TASK.sub(lambda hit, later=tasks * times: b"%s%d" % (hit[1], int(hit[2]) + later), part)
        part = _DRAFT.sub(lambda hit: acceptance(generator, older=hit[0].startswith(b"draft acceptance rate")), part)
        parts.append(part)
        size += len(part)
    return b"".join(parts)


def acceptance(generator: random.Random, *, older: bool = False) -> bytes:
    """Return what a server prints of the drafts of one request, as it rounds."""
    steps = generator.randint(2, 400)
    drafted = steps + generator.randint(0, 7 * steps)
    accepted = generator.randint(0, drafted)
    rate, mean = accepted / drafted, 1 + accepted / steps
    counts = f"{rate:.5f} ({accepted:5d} accepted / {drafted:5d} generated)"
    text = f"draft acceptance rate = {counts}" if older else f"draft acceptance = {counts}, mean len = {mean:5.2f}"
    return text.encode()


def worst(generator: random.Random) -> bytes:
    """Return lines of acceptance, each of another request."""
    head = "0.{:02d}.{:03d}.000 I slot print_timing: id  {} | task {} | "
    lines = (
        head.format(task // 1000 % 60, task % 1000, task % 4, task).encode() + acceptance(generator) + b"\n"
        for task in range(60_000)
    )
    return b"".join(lines)


def contents() -> dict[str, tuple[bytes, int]]:
    """Return what is repeated and into how many parts the size is divided, by name."""
    generator = random.Random(1)
    steps = (LOGS / "bundled-dspark.log").read_bytes().splitlines(keepends=True)
    return {
        "a server's at ordinary verbosity": (server_log("bundled-ngram-twenty.log", b"get_availabl", generator), 1),
        "a server's of August 2025": (server_log("2025-08-built.log", b"launch_slot_", generator), OLDER_PART),
        "highest verbosity": (b"".join(line + OTHER * OTHERS for line in steps), 1),
        "nothing but lines of acceptance": (worst(generator), WORST_PART),
        "one line without an end": (b"draft acceptance ", 1),
    }


def timed(content: bytes, size: int) -> tuple[float, int, Ingested]:
    """Return the seconds and the highest resident memory so far in bytes, and what was read."""
    started = time.perf_counter()
    found = gather(read_stream(Repeated(content, size), "repeated.log"))
    seconds = time.perf_counter() - started
    return seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10, found


def measure(size: int = GIB) -> list[dict[str, str]]:
    """Read each kind of log at a sixteenth of its size and at its size, and return rates and growth of memory."""
    rows = []
    for name, (content, part) in contents().items():
        whole = size // part
        _, before, _ = timed(content, whole // 16)
        seconds, after, found = timed(content, whole)
        more, most = (after - before) / 2**20, after / 2**20
        reports = len(found.readings) + found.left_out
        rows.append(
            {
                "quantity": f"{_size(whole)} of log, {name}",
                "measured": f"{whole / seconds / 1e6:.0f} MB/s; {more:.1f} MiB more than a sixteenth",
                "target": "constant memory" if part > 1 else "≥ 50 MB/s; constant memory",
                "note": f"{reports:,} reports; one process, no disk; {most:.0f} MiB at most",
            }
        )
    return rows


def _size(size: int) -> str:
    return f"{size / GIB:.3g} GiB" if size >= GIB else f"{size >> 20} MiB"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mib", type=int, default=1024)
    for row in measure(parser.parse_args().mib << 20):
        print(f"{row['quantity']}: {row['measured']} ({row['note']})")
