"""What the reports of one server come to: the three acceptances with their intervals, and how each number is known."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from analysis.ingest.gather import Totals
from analysis.ingest.model import UNKNOWN, How, Reading, Setup
from analysis.stats.acceptance import acceptance
from analysis.stats.intervals import POSITIVE, SHARE, Interval, Scale, interval_of, no_interval
from analysis.stats.resampling import Floats, Statistic

Meaning = Literal["survival", "proposal", "conditional", "aggregate", "mean length", "decode rate"]
Relation = Literal["is", "at least", "not known"]

UNIT = "requests"
"""What is resampled. A log does not say whether two requests had the same prompt."""

_WINDOWS = "intervals of the server's time are no prompts"


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """One number of one server; `position` is 0 where it has none.

    `relation` says whether it is the quantity or only a lower limit of it.
    """

    source: str
    server: str
    scope: str
    meaning: Meaning
    position: int
    interval: Interval
    relation: Relation = "is"
    successes: int | None = None
    trials: int | None = None
    how: How = "counted"


@dataclass(frozen=True, slots=True)
class Fact:
    """A quantity of a server, how it is known and from what, or why it is not."""

    quantity: str
    how: How
    value: str
    why: str


def estimates(totals: Totals, readings: Sequence[Reading]) -> list[Estimate]:
    """Return the acceptances of one group of reports, and its decode rate where it is printed.

    Args:
        totals: its sums.
        readings: its fit reports that are held, in order.
    """
    return _acceptances(totals, readings) + _decode_rate(totals, readings)


def _decode_rate(totals: Totals, readings: Sequence[Reading]) -> list[Estimate]:
    """Return what a group's requests printed of their decode rate in tokens/s; an interval where all are held."""
    if not totals.timed_ms:
        return []
    used = [(r.predicted_per_s or 0, r.predicted_ms or 0) for r in readings if r.fit]
    pairs = [(per_s * ms / 1e3, ms / 1e3) for per_s, ms in used if per_s > 0 and ms]
    made = _Maker(totals, held=len(pairs), of=totals.timed)
    rate = made.interval(pairs, 1e3 * totals.timed_tokens / totals.timed_ms, POSITIVE)
    return [made.estimate("decode rate", 0, rate, how="printed")]


def _acceptances(totals: Totals, readings: Sequence[Reading]) -> list[Estimate]:
    used = [reading for reading in readings if reading.fit and reading.drafted]
    if not totals.drafting:
        return []
    made = _Maker(totals, held=len(used), of=totals.drafting)
    aggregate = made.interval([(r.accepted or 0, r.drafted or 0) for r in used], totals.accepted / totals.drafted)
    found = [made.estimate("aggregate", 0, aggregate, totals.accepted, totals.drafted)]
    if totals.steps.value:
        pairs = [(r.accepted or 0, r.steps.value or 0) for r in used]
        mean = made.interval(pairs, 1 + totals.accepted / totals.steps.value, Scale(1.0, 257.0), 1.0)
        found.append(made.estimate("mean length", 0, mean, how=totals.steps.how))
    if used and all(reading.step_drafted for reading in used):
        return found + made.from_steps(used)
    return found + made.from_counts([r for r in used if r.survival_counts and r.steps.value])


def running_estimates(reading: Reading) -> list[Estimate]:
    """Return the acceptances of counters that run on over a server's life: points without intervals."""
    note = "one counter over a server's life, whose requests are not told apart"
    totals = Totals(reading.source, reading.server, " ".join((reading.format, reading.spec_type)).strip())
    made = _Maker(totals, held=0, of=1, note=note)
    found = []
    if reading.drafted and reading.accepted is not None:
        share = no_interval(reading.accepted / reading.drafted, n=1, note=note, unit=UNIT)
        found.append(made.estimate("aggregate", 0, share, reading.accepted, reading.drafted))
    if reading.steps.value and reading.accepted is not None:
        mean = no_interval(1 + reading.accepted / reading.steps.value, n=1, note=note, unit=UNIT)
        found.append(made.estimate("mean length", 0, mean, how=reading.steps.how))
    totals.drafted = reading.drafted or 0
    totals.steps = reading.steps
    return found + made.from_counts([reading] if reading.survival_counts and reading.steps.value else [])


class _Maker:
    """Makes estimates of one group; where not all its reports are held, or they are no requests, points only."""

    def __init__(self, totals: Totals, *, held: int, of: int, note: str = "") -> None:
        self.totals, self.of = totals, of
        self.note = note or ("" if held == of else "more reports than are held")
        if not self.note and totals.scope.startswith(("window", "unknown")):
            self.note = _WINDOWS

    def interval(
        self, pairs: Sequence[tuple[float, float]], point: float, scale: Scale = SHARE, offset: float = 0.0
    ) -> Interval:
        if self.note:
            return no_interval(point, n=self.of, note=self.note, unit=UNIT)
        sums = np.array([pair for pair in pairs if pair[1] > 0], dtype=np.float64).reshape(-1, 2)
        return interval_of(sums, _ratio(offset), scale=scale, unit=UNIT)

    def estimate(
        self,
        meaning: Meaning,
        position: int,
        interval: Interval,
        successes: int | None = None,
        trials: int | None = None,
        *,
        relation: Relation = "is",
        how: How = "counted",
    ) -> Estimate:
        totals = self.totals
        return Estimate(
            source=totals.source, server=totals.server, scope=totals.scope, meaning=meaning, position=position,
            interval=interval, relation=relation, successes=successes, trials=trials, how=how,
        )  # fmt: skip

    def from_steps(self, used: Sequence[Reading]) -> list[Estimate]:
        drafted = [count for reading in used for count in reading.step_drafted]
        accepted = [count for reading in used for count in reading.step_accepted]
        who = [place for place, reading in enumerate(used) for _ in reading.step_drafted]
        n_max = min(max(drafted), 64)
        clipped = np.minimum(drafted, n_max)
        found = acceptance(clipped, np.minimum(accepted, clipped), who, n_max=n_max)
        by_meaning: tuple[Meaning, ...] = ("survival", "proposal", "conditional")
        return [
            self.estimate(meaning, place, replace(rate.interval, unit=UNIT), rate.successes, rate.trials)
            for meaning in by_meaning
            for place, rate in enumerate(getattr(found, meaning), 1)
        ]

    def from_counts(self, used: Sequence[Reading]) -> list[Estimate]:
        if not used:
            return []
        how: How = "derived" if any(reading.steps.how == "derived" for reading in used) else "counted"
        positions = max(len(reading.survival_counts) for reading in used)
        counts = [[0] * positions for _ in used]
        for row, reading in zip(counts, used, strict=True):
            row[: len(reading.survival_counts)] = reading.survival_counts
        steps = [reading.steps.value or 0 for reading in used]
        full = all((r.drafted or 0) == (r.steps.value or 0) * positions for r in used)
        found = []
        for place in range(positions):
            alive = [row[place] for row in counts]
            before = steps if place == 0 else [row[place - 1] for row in counts]
            share = self.interval(list(zip(alive, steps, strict=True)), _share(sum(alive), sum(steps)))
            found.append(self.estimate("survival", place + 1, share, sum(alive), sum(steps), how=how))
            ratio = self.interval(list(zip(alive, before, strict=True)), _share(sum(alive), sum(before)))
            relation: Relation = "is" if full else "at least"
            found.append(
                self.estimate("conditional", place + 1, ratio, sum(alive), sum(before), relation=relation, how=how)
            )
        return found


def facts(totals: Totals, setup: Setup, readings: Sequence[Reading]) -> list[Fact]:
    """Return what is known of a server and what is not, quantity by quantity."""
    used = [reading for reading in readings if reading.fit and reading.drafted]
    n_max = {reading.n_max.value for reading in used if reading.n_max.value is not None}
    emitted = totals.emitted or None
    limit: Fact
    if len(n_max) == 1:
        where = "the server's start" if setup.n_max is not None else _LIMITS[any(r.survival for r in used)]
        limit = Fact("n_max", "printed", str(n_max.pop()), where)
    elif setup.n_max is not None:
        limit = Fact("n_max", "printed", str(setup.n_max), "the server's start")
    elif totals.longest:
        limit = Fact("n_max", "bounded", f"at least {totals.longest}", "the longest draft of a step that is shown")
    else:
        limit = Fact("n_max", "unknown", "", "no curve, no step and not the server's start")
    kinds = ", ".join(setup.spec_types)
    return [
        _fact("drafted tokens", totals.drafted or None, "the reports"),
        _fact("accepted tokens", totals.accepted if totals.drafting else None, "the reports; also those past the stop"),
        Fact("verification steps", totals.steps.how, str(totals.steps) if totals.steps != UNKNOWN else "",
             _steps_from(totals.steps.how, used)),
        limit,
        _fact("p_min", setup.p_min, "the server's start", "the server's start is not in the file"),
        _fact("speculation type", kinds or None, "the server's start", "it is printed only at the server's start"),
        _depth(totals),
        _fact("emitted tokens", emitted, "the reports of times"),
        Fact("step durations", "unknown", "", "a log shows a request's time, in which steps without a draft are mixed"),
        Fact("regime", "unknown", "", "a log holds no emitted text"),
        Fact("prompts", "unknown", "", "a log does not say whether two requests had the same prompt"),
        _fact("build", _build(setup), "the server's start", "the server's start is not in the file"),
    ]  # fmt: skip


_STEPS: dict[How, str] = {
    "counted": "every step is shown",
    "printed": "the report",
    "derived": "the one number that fits what is printed and its rounding",
    "bounded": "the printed mean and the drafted tokens leave a range",
    "unknown": "neither printed nor to be worked out from what is",
}


_LIMITS = {True: "positions of the printed curves", False: "the reports"}


def _steps_from(how: How, used: Sequence[Reading]) -> str:
    """Return from what the number of steps is known: a stream of timings prints neither mean nor curve."""
    if how == "derived" and all(reading.format == "llama.cpp timings" for reading in used):
        return "what the counts grew by from one streamed token to the next"
    if how == "derived":
        kinds = (
            ("mean lengths", any(r.mean_length is not None for r in used)),
            ("curves", any(r.survival for r in used)),
        )
        printed = " and ".join(name for name, there in kinds if there)
        return f"the one number that fits the printed {printed} and their rounding" if printed else _STEPS[how]
    return _STEPS[how]


def _fact(quantity: str, value: object, why: str, missing: str = "the reports do not say") -> Fact:
    if value is None or value == "":
        return Fact(quantity, "unknown", "", missing)
    return Fact(quantity, "printed", f"{value:,}" if isinstance(value, int) else str(value), why)


def _depth(totals: Totals) -> Fact:
    if totals.shallowest is None or totals.deepest is None:
        return Fact("depth", "unknown", "", "tokens that were reused from the cache are not in these lines")
    low, high = totals.shallowest, totals.deepest
    return Fact("depth", "printed", f"{low:,}" if low == high else f"{low:,} to {high:,}", "prompt tokens, reused too")


def _build(setup: Setup) -> str:
    return f"{setup.build} {setup.commit}" if setup.build is not None else ""


def _share(successes: int, trials: int) -> float:
    return successes / trials if trials else float("nan")


def _ratio(offset: float) -> Statistic:
    def statistic(sums: Floats) -> Floats:
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray(offset + sums[..., 0] / sums[..., 1])

    return statistic
