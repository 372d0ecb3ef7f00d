"""Did the host run short of memory while a server was measured?"""

from collections.abc import Iterator

from analysis.gates.base import Evidence, Finding, Subject, finding
from analysis.records import HostState

COUNTERS = {
    "swap_in": "bytes swapped in",
    "swap_out": "bytes swapped out",
    "major_faults": "major page faults",
    "gpu_evicted": "bytes of GPU memory evicted",
}


class MemoryStill:
    """Neither swap nor major page faults nor evictions from a GPU move while a server is measured."""

    name = "memory-still"
    why = "A page that comes from a disk costs as much as many steps."
    symptom = "Swap lowers the rate; graphics memory spills in silence and 42 tokens a second become 18."
    expected = "no swapping and no major page fault between the first and the last sample"
    looks_at: Subject = "server"

    def check(self, evidence: Evidence) -> Iterator[Finding]:
        """Refuse servers during whose life a counter moved; report counters that nobody read."""
        on_gpu = has_gpu(evidence)
        for life in evidence.lives:
            moved, unknown = movements(life.host_before, life.host_after, on_gpu=on_gpu)
            if moved:
                yield finding(self, "refuse", "server", life.id, ", ".join(moved))
            elif unknown:
                yield finding(self, "unchecked", "server", life.id, f"not known at both ends: {', '.join(unknown)}")


def has_gpu(evidence: Evidence) -> bool:
    """Return whether the run's engine computes on a device, so that its memory can be evicted."""
    return evidence.run.engine.backend not in ("", "CPU", "unknown")


def movements(before: HostState, after: HostState, *, on_gpu: bool) -> tuple[list[str], list[str]]:
    """Return which counters moved between two states, in words, and which were not known at both ends."""
    moved, unknown = [], []
    for name, title in COUNTERS.items():
        first, last = getattr(before, name), getattr(after, name)
        if first is None or last is None:
            if on_gpu or name != "gpu_evicted":
                unknown.append(name)
        elif last != first:
            moved.append(f"{last - first} {title}")
    return moved, unknown
