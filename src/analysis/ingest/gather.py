"""Reports gathered by server: sums that can be added, the last of the counters that run on, and what is left out."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from analysis.ingest.model import UNKNOWN, How, Known, Reading, Scanned, Setup, Speed
from analysis.ingest.read import Found, read_log

KEPT = 10_000
"""Reports that are held; all of them enter the sums, and all are written by `--out`."""

MOST_GROUPS = 256

Sink = Callable[[Reading], None]

_WORST: tuple[How, ...] = ("unknown", "bounded", "derived", "counted", "printed")


@dataclass(slots=True)
class Totals:
    """Sums over the fit reports of one server that can be added: of requests, or of intervals of its time.

    `curve` adds up the steps that survived each position over those reports that have the counts and their steps;
    `curve_steps` are these steps. `timed` reports print a decode rate: `timed_tokens` in `timed_ms`.
    """

    source: str
    server: str
    scope: str
    reports: int = 0
    drafting: int = 0
    refused: int = 0
    drafted: int = 0
    accepted: int = 0
    emitted: int = 0
    predicted_ms: float = 0.0
    steps: Known = UNKNOWN
    timed: int = 0
    timed_tokens: float = 0.0
    timed_ms: float = 0.0
    curve: list[int] = field(default_factory=list)
    curve_steps: int = 0
    curve_reports: int = 0
    shallowest: int | None = None
    deepest: int | None = None
    longest: int = 0
    restored: int = 0

    def add(self, reading: Reading) -> None:
        """Add a report; one that contradicts itself is only counted."""
        self.reports += 1
        if reading.problems:
            self.refused += 1
            return
        self.emitted += reading.emitted or 0
        self.predicted_ms += reading.predicted_ms or 0.0
        self.restored += reading.restored
        if reading.predicted_per_s and reading.predicted_ms and reading.predicted_per_s > 0:
            self.timed += 1
            self.timed_ms += reading.predicted_ms
            self.timed_tokens += reading.predicted_per_s * reading.predicted_ms / 1e3
        if reading.depth is not None:
            self.shallowest = min(reading.depth, self.shallowest if self.shallowest is not None else reading.depth)
            self.deepest = max(reading.depth, self.deepest or 0)
        if not reading.drafted:
            return
        self.drafting += 1
        self.drafted += reading.drafted
        self.accepted += reading.accepted or 0
        self.steps = reading.steps if self.drafting == 1 else added(self.steps, reading.steps)
        if reading.step_drafted:
            self.longest = max(self.longest, *reading.step_drafted)
        if reading.survival_counts and reading.steps.value:
            self.curve_reports += 1
            self.curve_steps += reading.steps.value
            self.curve += [0] * (len(reading.survival_counts) - len(self.curve))
            for place, count in enumerate(reading.survival_counts):
                self.curve[place] += count


@dataclass(frozen=True, slots=True, kw_only=True)
class Ingested:
    """What files say together.

    `readings` are the first `KEPT` reports and `left_out` counts the others, which are in the sums all the same;
    `running` are the last reports of counters that run on over a server's life, by what counts. `same_server` says, on
    somebody's word, that all files are of one server.
    """

    readings: tuple[Reading, ...]
    left_out: int
    speeds: tuple[Speed, ...]
    setups: dict[tuple[str, str], Setup]
    totals: tuple[Totals, ...]
    running: tuple[Reading, ...]
    files: tuple[Scanned, ...]
    same_server: bool = False

    def setup(self, source: str, server: str) -> Setup:
        """Return what was said of a server; nothing is said of one that only counters name."""
        return self.setups.get((source, server), Setup(server=server))


def added(one: Known, other: Known) -> Known:
    """Return the sum of two numbers; it is known as well as the worse of them."""
    if one.low is None or one.high is None or other.low is None or other.high is None:
        return UNKNOWN
    same = one.how == other.how
    worse = one.how if same else _WORST[min(_WORST.index(one.how), _WORST.index(other.how))]
    return Known(one.low + other.low, one.high + other.high, worse)


def gather(found: Iterable[Found], sink: Sink | None = None) -> Ingested:
    """Return what a stream of findings comes to, holding at most `KEPT` of them.

    Args:
        found: from `read_log`, of one file or of several.
        sink: gets every report, also those that are not held.
    """
    held = _Held()
    for one in found:
        if isinstance(one, Reading):
            if sink is not None:
                sink(one)
            held.add_reading(one)
        elif isinstance(one, Speed):
            held.speeds += [one] if len(held.speeds) < KEPT else []
        elif isinstance(one, Setup):
            held.pending[one.server] = one
        else:
            held.end_file(one)
    return Ingested(
        readings=tuple(held.readings), left_out=held.left_out, speeds=tuple(held.speeds), setups=held.setups,
        totals=tuple(held.totals.values()), running=tuple(held.running.values()), files=tuple(held.files),
    )  # fmt: skip


@dataclass(slots=True)
class _Held:
    """What is held while findings go by."""

    readings: list[Reading] = field(default_factory=list)
    left_out: int = 0
    speeds: list[Speed] = field(default_factory=list)
    files: list[Scanned] = field(default_factory=list)
    pending: dict[str, Setup] = field(default_factory=dict)
    setups: dict[tuple[str, str], Setup] = field(default_factory=dict)
    totals: dict[tuple[str, ...], Totals] = field(default_factory=dict)
    running: dict[tuple[str, str, str, int | None], Reading] = field(default_factory=dict)

    def add_reading(self, reading: Reading) -> None:
        if len(self.readings) < KEPT:
            self.readings.append(reading)
        else:
            self.left_out += 1
        if reading.scope != "cumulative":
            _total(self.totals, reading).add(reading)
            return
        key = _running_key(reading)
        if key in self.running or len(self.running) < MOST_GROUPS:
            self.running[key] = reading

    def end_file(self, scanned: Scanned) -> None:
        self.files.append(scanned)
        self.setups |= {(scanned.source, server): setup for server, setup in self.pending.items()}
        self.pending = {}


def ingest(paths: Iterable[Path], sink: Sink | None = None) -> Ingested:
    """Return what files say together.

    Raises:
        Problem: one cannot be read, or is compressed.
    """
    return gather((one for path in paths for one in read_log(path)), sink)


def _running_key(reading: Reading) -> tuple[str, str, str, int | None]:
    return reading.source, reading.server, f"{reading.format} {reading.spec_type}", reading.slot


def _total(totals: dict[tuple[str, ...], Totals], reading: Reading) -> Totals:
    key: tuple[str, ...] = (reading.source, reading.server, reading.format, reading.scope, reading.label)
    found = totals.get(key)
    if found is None and len(totals) >= MOST_GROUPS:
        found = next(iter(totals.values()))
    if found is None:
        scope = " ".join(part for part in (reading.scope, reading.label) if part)
        found = totals[key] = Totals(reading.source, reading.server, scope)
    return found
