"""Was every leg as often first as the others?"""

from collections.abc import Iterator

from analysis.gates.base import Evidence, Finding, Subject, finding
from analysis.records import Sample

TOLERANCE = 0.1
"""How far a leg's mean position may lie from the middle, in positions; ABBA over few blocks is not quite even."""


class OrderBalanced:
    """Legs take turns in being first, so that drift and position reach all alike."""

    name = "order-balanced"
    why = "If one leg always follows the other, its place in the order is confounded with what it measures."
    symptom = "A base-then-branch order hides a penalty of position."
    expected = "equal mean positions of the legs"
    looks_at: Subject = "run"

    def check(self, evidence: Evidence) -> Iterator[Finding]:
        """Warn of legs whose mean position differs."""
        legs: dict[str, list[Sample]] = {}
        for sample in evidence.samples:
            legs.setdefault(sample.leg, []).append(sample)
        if len(legs) < 2:
            return
        means = {leg: sum(sample.leg_order for sample in samples) / len(samples) for leg, samples in legs.items()}
        middle = (len(legs) - 1) / 2
        if any(abs(mean - middle) > TOLERANCE for mean in means.values()):
            saw = ", ".join(f"{leg or 'no leg'} at {mean:.2f}" for leg, mean in means.items())
            yield finding(self, "warn", "run", evidence.run.id, f"mean positions {saw} of 0 to {len(legs) - 1}")
