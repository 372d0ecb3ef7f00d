"""Did the host run short of memory while a server was measured?"""

from collections.abc import Iterator

from analysis.gates.base import Evidence, Finding, Subject, finding
from analysis.records import HostState

COUNTERS = {"swap_in": "bytes swapped in", "swap_out": "bytes swapped out", "major_faults": "major page faults"}


class MemoryStill:
    """Neither swap nor major page faults move while a server is measured."""

    name = "memory-still"
    why = "A page that comes from a disk costs as much as many steps."
    symptom = "Swap lowers the rate; graphics memory spills in silence and 42 tokens a second become 18."
    expected = "no swapping and no major page fault between the first and the last sample"
    looks_at: Subject = "server"

    def check(self, evidence: Evidence) -> Iterator[Finding]:
        """Refuse servers during whose life a counter moved; report counters that nobody read."""
        for life in evidence.lives:
            moved, unknown = [], []
            for name, title in COUNTERS.items():
                delta = _delta(life.host_before, life.host_after, name)
                if delta is None:
                    unknown.append(name)
                elif delta:
                    moved.append(f"{delta} {title}")
            if moved:
                yield finding(self, "refuse", "server", life.id, ", ".join(moved))
            elif unknown:
                yield finding(self, "unchecked", "server", life.id, f"not known at both ends: {', '.join(unknown)}")


def _delta(before: HostState, after: HostState, name: str) -> int | None:
    first, last = getattr(before, name), getattr(after, name)
    return None if first is None or last is None else int(last - first)
