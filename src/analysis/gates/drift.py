"""Did a server change while it was measured?"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

from analysis.gates.base import Evidence, Finding, Gate, Subject, finding
from analysis.records import Sample

ENOUGH = 3
"""Samples in a third, over all cells of a server, that a comparison needs."""

SPEED_TOLERANCE = 0.05
ACCEPTANCE_TOLERANCE = 0.10
LEVEL = 0.95

Values = Callable[[Sequence[Sample]], list[float]]


class SpeedSteady:
    """A step of a given draft length costs the same at the end of a server's life as at its beginning."""

    name = "speed-steady"
    why = "Heat, a second user or a leak make the last samples slower, and a comparison then depends on the order."
    symptom = "Throughput varies by a fifth at temperature 0."
    expected = f"step durations of the first and last third within {SPEED_TOLERANCE:.0%}"
    looks_at: Subject = "server"

    def check(self, evidence: Evidence) -> Iterator[Finding]:
        """Warn of servers whose steps became slower or faster."""
        for server, change in _changes(self, evidence, _log_durations):
            if isinstance(change, Finding):
                yield change
            elif change.sure and abs(np.expm1(change.size)) > SPEED_TOLERANCE:
                size, low, high = (float(np.expm1(value)) for value in (change.size, change.low, change.high))
                saw = f"step durations changed by {size:+.0%} [{low:+.0%}, {high:+.0%}]"
                yield finding(self, "warn", "server", server, saw)


class AcceptanceSteady:
    """Acceptance does not depend on how long a server has been running."""

    name = "acceptance-steady"
    why = "State that a drafter gathers over its life would make acceptance a matter of uptime."
    symptom = "Acceptance decays while the server is up and comes back after a restart."
    expected = f"acceptance of the first and last third within {ACCEPTANCE_TOLERANCE:.0%} of the drafted tokens"
    looks_at: Subject = "server"

    def check(self, evidence: Evidence) -> Iterator[Finding]:
        """Warn of servers whose acceptance rose or fell."""
        for server, change in _changes(self, evidence, _acceptance):
            if isinstance(change, Finding):
                yield change
            elif change.sure and abs(change.size) > ACCEPTANCE_TOLERANCE:
                saw = f"acceptance changed by {change.size:+.2f} [{change.low:+.2f}, {change.high:+.2f}]"
                yield finding(self, "warn", "server", server, saw)


@dataclass(frozen=True, slots=True)
class Change:
    """The last third less the first, with Welch's interval."""

    size: float
    low: float
    high: float

    @property
    def sure(self) -> bool:
        """Return whether the interval excludes no change."""
        return self.low > 0 or self.high < 0


def _changes(gate: Gate, evidence: Evidence, values: Values) -> Iterator[tuple[str, Change | Finding]]:
    """Yield each server's change, or that it has too few samples; servers without such values are left out."""
    for server, samples in evidence.by_server.items():
        first, last = _thirds(samples, values)
        if len(first) >= ENOUGH:
            yield server, _welch(first, last)
        elif first:
            saw = f"{len(first)} samples a third, and a comparison needs {ENOUGH}"
            yield server, finding(gate, "unchecked", "server", server, saw)


def _thirds(samples: Sequence[Sample], values: Values) -> tuple[list[float], list[float]]:
    """Return the values of the first and the last third of each cell, less the cell's mean, over all cells."""
    first: list[float] = []
    last: list[float] = []
    for cell in dict.fromkeys(sample.cell for sample in samples):
        found = values([sample for sample in samples if sample.cell == cell])
        third = len(found) // 3
        mean = sum(found) / len(found) if found else 0.0
        first += [value - mean for value in found[:third]]
        last += [value - mean for value in found[len(found) - third :] if third]
    return first, last


def _welch(first: list[float], last: list[float]) -> Change:
    size = float(np.mean(last) - np.mean(first))
    if np.ptp(first) == 0 and np.ptp(last) == 0:
        return Change(size, size, size)
    low, high = stats.ttest_ind(last, first, equal_var=False).confidence_interval(LEVEL)
    return Change(size, float(low), float(high))


def _log_durations(samples: Sequence[Sample]) -> list[float]:
    """Return one value a sample: its log step duration against the cell's, at equal numbers of drafted tokens."""
    per_sample = [_medians(sample) for sample in samples]
    counts = {count for medians in per_sample for count in medians}
    means = {count: float(np.mean([medians[count] for medians in per_sample if count in medians])) for count in counts}
    return [
        float(np.mean([value - means[count] for count, value in medians.items()])) for medians in per_sample if medians
    ]


def _medians(sample: Sample) -> dict[int, float]:
    drafted, ms = np.array(sample.drafted), np.array(sample.step_ms, dtype=np.float64)
    timed = ms > 0
    return {int(n): float(np.log(np.median(ms[timed & (drafted == n)]))) for n in np.unique(drafted[timed])}


def _acceptance(samples: Sequence[Sample]) -> list[float]:
    return [sum(sample.accepted) / sum(sample.drafted) for sample in samples if sum(sample.drafted)]
