"""Was the server warm?"""

from collections.abc import Iterator

from analysis.gates.base import Evidence, Finding, Subject, finding


class WarmupDiscarded:
    """The first request of a server is thrown away."""

    name = "warmup-discarded"
    why = "The first request pays for page faults, compiled kernels and cold caches."
    symptom = "The first leg of a comparison is the slow one, whichever it is."
    expected = "at least one discarded request before the first sample"
    looks_at: Subject = "server"

    def check(self, evidence: Evidence) -> Iterator[Finding]:
        """Refuse servers that measured without warming up."""
        for life in evidence.lives:
            if life.warmups < 1 and life.id in evidence.by_server:
                yield finding(self, "refuse", "server", life.id, "no discarded request")
