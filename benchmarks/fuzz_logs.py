"""Damaged logs, counters and results: each is read or left, quickly, and nothing that is read can be untrue by itself.

Lines of the excerpts are cut, doubled, swapped, joined across files, and have bytes and numbers replaced. Each input is
read twice, with the ends of requests read at once and line by line, and must say the same. Every hundredth input also
goes through the tables and the gates.
"""

import argparse
import hashlib
import json
import math
import random
import re
import sys
import time
from collections import Counter
from io import BytesIO
from pathlib import Path
from unittest import mock

from analysis.ingest import read
from analysis.ingest.checks import check
from analysis.ingest.frames import tables
from analysis.ingest.gather import gather
from analysis.ingest.model import Reading
from analysis.ingest.read import Found, read_stream

INPUTS = 100_000
LOGS = Path(__file__).resolve().parent.parent / "tests" / "ingest" / "logs"
DONE = LOGS.parent.parent.parent / "local" / "fuzz_logs.json"
EXTREME = [b"-1", b"0", b"1e999", b"nan", b"99999999999999999999", b"0.0000001", b"2.5", b"", b"1,000", b"\xd9\xa3"]
BYTES = [b"\x00", b"\xff", b"\x1b[2J", b"\r", b"{", b"}", b'"', b"(", b")", b"|", b"\xe2\x80\xae", b"<script>"]
NUMBER = re.compile(rb"\d+(?:\.\d+)?")


def damaged(lines: list[bytes], generator: random.Random) -> bytes:
    """Return some lines with one to six changes."""
    start = generator.randrange(len(lines))
    picked = lines[start : start + generator.randint(1, 24)]
    for _ in range(generator.randint(1, 6)):
        at = generator.randrange(len(picked))
        line = picked[at]
        match generator.randrange(7):
            case 0:
                numbers = list(NUMBER.finditer(line))
                if numbers:
                    hit = generator.choice(numbers)
                    line = line[: hit.start()] + generator.choice(EXTREME) + line[hit.end() :]
            case 1:
                place = generator.randrange(len(line) + 1)
                line = line[:place] + generator.choice(BYTES) + line[place:]
            case 2:
                line = line[: generator.randrange(len(line) + 1)]
            case 3:
                line = line[generator.randrange(len(line) + 1) :]
            case 4:
                line = generator.choice(lines)
            case 5:
                line = line.rstrip(b"\n") + generator.choice(lines)
            case 6:
                line = line * generator.randint(2, 5)
        picked[at] = line
    return b"".join(picked)


def look(content: bytes, outcome: Counter[str], *, whole: bool) -> None:
    """Read one input and count what came of it.

    Raises:
        AssertionError: a report that was called fit cannot be true, or depends on the way it was read.
    """
    found: list[Found] = list(read_stream(BytesIO(content), "fuzz.log"))
    with mock.patch.object(read, "endings", return_value=()):
        one_by_one = list(read_stream(BytesIO(content), "fuzz.log"))
    assert repr(found) == repr(one_by_one), "what is read at once differs from what is read line by line"
    for one in found:
        if isinstance(one, Reading):
            outcome["reports"] += 1
            outcome["reports refused"] += not one.fit
            if one.fit:
                assert (one.drafted or 0) >= 0 <= (one.accepted or 0)
                assert one.drafted is None or one.accepted is None or one.accepted <= one.drafted
                assert all(0 <= share <= 1 for share in one.survival)
                assert all(text.isprintable() for text in (one.label, one.server, one.spec_type, one.source))
    if whole:
        ingested = gather(found)
        tables(ingested)
        check(ingested)
        outcome["through the tables"] += 1


def measure(inputs: int = INPUTS, seed: int = 1, seconds: float = math.inf) -> list[dict[str, str]]:
    """Read damaged inputs and return how many came through, and the slowest.

    What was done is kept in a file of its own, and the next call goes on behind it: the whole takes some minutes.

    Args:
        inputs: how many in all.
        seed: of the damage; each input follows from it and its own number.
        seconds: to stop after, at the next hundred.

    Raises:
        AssertionError: an input was not read as it must be; it says which.
    """
    lines = [line for path in sorted(LOGS.iterdir()) for line in path.read_bytes().splitlines(keepends=True)]
    outcome = _done(seed)
    started = time.perf_counter()
    for number in range(outcome["inputs"], inputs):
        content = damaged(lines, random.Random(f"{seed} {number}"))
        begun = time.perf_counter()
        try:
            look(content, outcome, whole=number % 100 == 0)
        except Exception as error:
            raise AssertionError(f"input {number} of seed {seed}: {content!r}") from error
        outcome["slowest, µs"] = max(outcome["slowest, µs"], int(1e6 * (time.perf_counter() - begun)))
        outcome["inputs"] += 1
        if number % 100 == 99 and time.perf_counter() - started > seconds:
            break
    DONE.parent.mkdir(exist_ok=True)
    DONE.write_text(json.dumps({"state": _state(seed), "outcome": outcome}))
    return [
        {
            "quantity": "damaged logs and results read, or left",
            "measured": f"{outcome['inputs']:,} of {inputs:,}",
            "target": "all, at least 100,000",
            "note": (
                f"{outcome['reports']:,} reports, {outcome['reports refused']:,} refused; each read in both ways; "
                f"{outcome['through the tables']:,} through tables and gates; "
                f"slowest {outcome['slowest, µs'] / 1e3:.0f} ms"
            ),
        }
    ]


def _done(seed: int) -> Counter[str]:
    """Return what earlier calls did with the same reader and the same excerpts."""
    kept = json.loads(DONE.read_text()) if DONE.exists() else {}
    return Counter(kept["outcome"] if kept.get("state") == _state(seed) else {})


def _state(seed: int) -> str:
    digest = hashlib.sha256(str(seed).encode())
    loaded = [
        Path(module.__file__ or "") for name, module in sys.modules.items() if name.startswith("analysis.ingest.")
    ]
    for path in sorted([Path(__file__), *LOGS.iterdir(), *loaded]):
        digest.update(path.read_bytes())
    return digest.hexdigest()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--inputs", type=int, default=INPUTS)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=math.inf, help="stop after; the next call goes on from there")
    options = parser.parse_args()
    for row in measure(options.inputs, options.seed, options.seconds):
        print(f"{row['quantity']}: {row['measured']} ({row['note']})")
