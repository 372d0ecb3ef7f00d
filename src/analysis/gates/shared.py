"""Did two workers of a run share a host?"""

from collections.abc import Iterator, Sequence
from itertools import combinations

from analysis.gates.base import Evidence, Finding, Subject, finding
from analysis.records import ServerLife


class HostNotShared:
    """A host serves one worker of a run at a time.

    Workers of one host take turns, sample by sample, so that no two measurements overlap. Still the other worker's
    servers hold memory and caches, and load models between the samples: what was decoded stands, how fast does not.
    """

    name = "host-not-shared"
    why = (
        "The servers of two workers share memory, caches and heat, and a second worker starts while the first measures."
    )
    symptom = ""
    expected = "one worker a host"
    looks_at: Subject = "server"

    def check(self, evidence: Evidence) -> Iterator[Finding]:
        """Refuse the timings of a run in which two workers were at one host at the same time."""
        shared = sorted({one.host for one, other in combinations(evidence.lives, 2) if _together(one, other)})
        if shared:
            saw = "; ".join(f"{host} served {_workers(evidence.lives, host)} at once" for host in shared)
            yield finding(self, "refuse", "timing", evidence.run.id, saw)


def _together(one: ServerLife, other: ServerLife) -> bool:
    alike = bool(one.host) and one.host == other.host and one.worker != other.worker
    return alike and one.started < other.ended and other.started < one.ended


def _workers(lives: Sequence[ServerLife], host: str) -> str:
    return ", ".join(sorted({life.worker for life in lives if life.host == host}))
