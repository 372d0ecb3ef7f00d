"""Did anything disturb a leg of a duel?"""

from collections.abc import Iterator, Sequence

from analysis.gates.base import Evidence, Finding, Subject, finding
from analysis.gates.host import BUSY
from analysis.gates.memory import has_gpu, movements
from analysis.records import Block, HostState, Leg

CLOCK_TOLERANCE = 0.05
HEAT_TOLERANCE = 10.0


class LegUndisturbed:
    """Neither swap nor major page faults nor evictions from a GPU move during a leg."""

    name = "leg-undisturbed"
    why = "A page that comes from a disk costs as much as many steps, and only the leg that needed it pays."
    symptom = "Swap lowers the rate; graphics memory spills in silence and 42 tokens a second become 18."
    expected = "no swapping, no major page fault and no eviction between the first and the last request of a leg"
    looks_at: Subject = "leg"

    def check(self, evidence: Evidence) -> Iterator[Finding]:
        """Refuse legs during which a counter moved; report counters that nobody read."""
        on_gpu = has_gpu(evidence)
        for block in evidence.blocks:
            for place, leg in enumerate(block.legs):
                moved, unknown = movements(leg.host_before, leg.host_after, on_gpu=on_gpu)
                if moved:
                    yield finding(self, "refuse", "leg", leg_id(block, place), ", ".join(moved))
                elif unknown:
                    saw = f"not known at both ends: {', '.join(unknown)}"
                    yield finding(self, "unchecked", "leg", leg_id(block, place), saw)


class LegsAlike:
    """Load, clock and temperature are the same for all legs of a duel."""

    name = "legs-alike"
    why = "Legs that ran on a busier, slower or hotter machine do not compare with the others."
    symptom = "Throughput varies by a fifth at temperature 0."
    expected = (
        f"a load per core below {BUSY}, clocks within {CLOCK_TOLERANCE:.0%} of their median "
        f"and temperatures within {HEAT_TOLERANCE:g} °C of theirs"
    )
    looks_at: Subject = "leg"

    def check(self, evidence: Evidence) -> Iterator[Finding]:
        """Warn of legs that stand out."""
        legs = [(leg_id(block, place), leg) for block in evidence.blocks for place, leg in enumerate(block.legs)]
        clock = _median([leg.host_after.frequency_mhz for _, leg in legs])
        heat = _median([leg.host_after.temperature_c for _, leg in legs])
        for place, leg in legs:
            complaints = list(_complaints(leg.host_before, leg.host_after, evidence.run.machine.cores, clock, heat))
            if complaints:
                yield finding(self, "warn", "leg", place, "; ".join(complaints))


def leg_id(block: Block, place: int) -> str:
    """Return the name of a leg in findings: its block and its place in it, both from 1."""
    return f"{block.number + 1}.{place + 1}"


def samples_of_legs(blocks: Sequence[Block], places: set[str]) -> set[int]:
    """Return the indices of the samples of the named legs."""
    named: list[Leg] = [
        leg for block in blocks for place, leg in enumerate(block.legs) if leg_id(block, place) in places
    ]
    return {index for leg in named for index in leg.samples}


def _complaints(
    before: HostState, after: HostState, cores: int, clock: float | None, heat: float | None
) -> Iterator[str]:
    if before.load1 is not None and before.load1 > BUSY * cores:
        yield f"a load of {before.load1:g} on {cores} cores"
    if clock and after.frequency_mhz is not None and abs(after.frequency_mhz / clock - 1) > CLOCK_TOLERANCE:
        yield f"{after.frequency_mhz:.0f} MHz where the median is {clock:.0f}"
    if heat is not None and after.temperature_c is not None and abs(after.temperature_c - heat) > HEAT_TOLERANCE:
        yield f"{after.temperature_c:.0f} °C where the median is {heat:.0f}"


def _median(values: list[float | None]) -> float | None:
    known = sorted(value for value in values if value is not None)
    return known[len(known) // 2] if known else None
