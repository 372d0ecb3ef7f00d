"""Was every leg as often first as the others?"""

from collections.abc import Iterable, Iterator

from analysis.gates.base import Evidence, Finding, Subject, finding
from analysis.records import Sample

TOLERANCE = 0.1
"""How far a leg's mean position may lie from the middle, in positions; ABBA over few blocks is not quite even."""
CELL_TOLERANCE, CELL_SAMPLES = 0.3, 4
"""The same within one depth and regime: five prompts cannot be even. Fewer than four say nothing."""


class OrderBalanced:
    """Legs take turns in being first, so that drift and position reach all alike."""

    name = "order-balanced"
    why = "If one leg always follows the other, its place in the order is confounded with what it measures."
    symptom = "A base-then-branch order hides a penalty of position."
    expected = "equal mean positions of the legs, in the run and at each depth and regime"
    looks_at: Subject = "run"

    def check(self, evidence: Evidence) -> Iterator[Finding]:
        """Warn of legs whose mean position differs, in the whole run or where they are compared."""
        means = _means(evidence.samples)
        if len(means) < 2:
            return
        if _furthest(means) > TOLERANCE:
            saw = ", ".join(f"{leg or 'no leg'} at {mean:.2f}" for leg, mean in means.items())
            yield finding(self, "warn", "run", evidence.run.id, f"mean positions {saw} of 0 to {len(means) - 1}")
            return
        cells = {cell.id: (cell.depth, cell.regime) for cell in evidence.run.cells}
        places: dict[tuple[int, str], list[Sample]] = {}
        for sample in evidence.samples:
            if sample.cell in cells:
                places.setdefault(cells[sample.cell], []).append(sample)
        uneven = [
            f"{regime} at depth {depth}"
            for (depth, regime), samples in places.items()
            if len(samples) >= CELL_SAMPLES * len(means) and _furthest(_means(samples)) > CELL_TOLERANCE
        ]
        if uneven:
            saw = f"one leg nearly always first in {', '.join(uneven)}"
            yield finding(self, "warn", "run", evidence.run.id, saw)


def _means(samples: Iterable[Sample]) -> dict[str, float]:
    """Return each leg's mean position."""
    positions: dict[str, list[int]] = {}
    for sample in samples:
        positions.setdefault(sample.leg, []).append(sample.leg_order)
    return {leg: sum(found) / len(found) for leg, found in positions.items()}


def _furthest(means: dict[str, float]) -> float:
    """Return how far the leg furthest from the middle lies from it, in positions."""
    return max(abs(mean - (len(means) - 1) / 2) for mean in means.values())
