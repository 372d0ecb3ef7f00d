"""Counters of a Prometheus page, and what vLLM writes into its log every few seconds."""

import re
from collections.abc import Iterator

from analysis.ingest import derive
from analysis.ingest.lines import Match
from analysis.ingest.model import MAX_POSITIONS, UNKNOWN, Reading, Scope, exactly
from analysis.ingest.text import clean

MOST_SERIES = 64

_POSITION = re.compile(rb'(?:^|,)pos(?:ition)?="(\d{1,4})"')
_PAIR = re.compile(rb"([A-Z][\w -]{2,60}): *(-?(?:[\d.]+|nan|inf)(?:, *-?[\d.]+(?=,|\s|$))*)(%?)")


class Scrapes:
    """Collects the counters of one scrape of a page; a counter that comes again begins the next."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.series: dict[bytes, dict[str, float]] = {}
        self.lines: dict[bytes, int] = {}
        self.seen = 0

    def take(self, message: Match, line: int) -> Iterator[Reading]:
        """Take one counter and yield the scrape that it ends, if it does."""
        engine, name, labels, value = message.groups()
        position = _POSITION.search(labels or b"")
        key = engine + b" " + _POSITION.sub(b"", labels or b"").strip(b",")
        counter = name.decode() if position is None else f"{name.decode()} {int(position[1])}"
        amount = derive.number(value)
        if key in self.series and counter in self.series[key]:
            yield from self.finish()
        if amount is None or (key not in self.series and len(self.series) >= MOST_SERIES):
            return
        self.lines.setdefault(key, line)
        values = self.series.setdefault(key, {})
        if len(values) < MAX_POSITIONS + 4:
            values[counter] = amount

    def finish(self) -> Iterator[Reading]:
        """Yield the scrape that is open."""
        for key, values in self.series.items():
            self.seen += 1
            yield _scrape(self.source, self.lines[key], key, values)
        self.series, self.lines = {}, {}


def _scrape(source: str, line: int, key: bytes, values: dict[str, float]) -> Reading:
    odd = tuple(f"{name} is {value:g}" for name, value in values.items() if not 0 <= value <= derive.ABSURD)
    whole = {} if odd else {name: round(value) for name, value in values.items()}
    drafts = whole.get("drafts")
    positions = sorted(int(name.split()[1]) for name in whole if " " in name)
    counts = tuple(whole[f"accepted_tokens_per_pos {position}"] for position in positions)
    if positions != list(range(len(positions))):
        odd, counts = (*odd, "positions that are missing"), ()
    survival = tuple(count / drafts for count in counts) if drafts else ()
    drafted, accepted = whole.get("draft_tokens"), whole.get("accepted_tokens")
    if counts and accepted is not None and sum(counts) != accepted and not odd:
        odd = (f"{accepted} accepted tokens where the positions add up to {sum(counts)}",)
    return Reading(
        source=source, line=line, format="metrics page", scope="cumulative",
        server=clean(key.decode("utf-8", "replace")), drafted=drafted, accepted=accepted,
        steps=UNKNOWN if drafts is None else exactly(drafts), survival=survival, survival_counts=counts,
        n_max=exactly(len(counts)) if counts else UNKNOWN,
        problems=odd or derive.problems_of(drafted=drafted, accepted=accepted, survival=survival, half=0.0),
    )  # fmt: skip


def vllm_reading(source: str, line: int, text: bytes) -> Reading | None:
    """Return what vLLM reports of an interval, in any of its wordings since 2024; None if it says nothing known."""
    found = {name.strip().lower(): (value, percent) for name, value, percent in _PAIR.findall(text)}
    accepted, drafted = _count(found, b"accepted", b"number of accepted tokens"), _count(
        found, b"drafted", b"number of draft tokens"
    )  # fmt: skip
    rate_text, percent = found.get(b"avg draft acceptance rate", found.get(b"draft acceptance rate", (b"", b"")))
    rate, scale = derive.number(rate_text) if rate_text else None, 100.0 if percent else 1.0
    mean_text = found.get(b"mean acceptance length", (b"", b""))[0]
    mean = derive.number(mean_text) if mean_text else None
    survival, half, wrong = derive.curve(found.get(b"per-position acceptance rate", (None, b""))[0])
    if accepted is None and drafted is None and rate is None and mean is None and not survival:
        return None
    rate = None if rate is None else rate / scale
    problems = (*wrong, *derive.problems_of(
        drafted=drafted, accepted=accepted, rate=rate, rate_half=derive.half_unit(rate_text) / scale,
        mean_length=mean, survival=survival, half=half,
    ))  # fmt: skip
    length = None if mean is None else (mean, derive.half_unit(mean_text))
    steps = UNKNOWN if problems else derive.steps_of(
        accepted, drafted, mean_length=length, survival=survival, half=half)  # fmt: skip
    speculative = _count(found, b"number of speculative tokens")
    scope: Scope = "unknown" if b"number of accepted tokens" in found else "window"
    n_max = speculative if speculative is not None else len(survival) or None
    return Reading(
        source=source, line=line, format="vLLM log", scope=scope, drafted=drafted, accepted=accepted, rate=rate,
        steps=steps, n_max=UNKNOWN if n_max is None else exactly(n_max), mean_length=mean, survival=survival,
        survival_counts=derive.counts_of(survival, steps.value, half) if steps.value and survival else (),
        problems=problems,
    )  # fmt: skip


def _count(found: dict[bytes, tuple[bytes, bytes]], *names: bytes) -> int | None:
    for name in names:
        value = derive.number(found[name][0]) if name in found else None
        if value is not None and abs(value) < derive.ABSURD * 10:
            return round(value)
    return None
