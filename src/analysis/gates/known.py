"""Do the records name each other?"""

from collections.abc import Iterator

from analysis.gates.base import Evidence, Finding, Subject, finding


class CellKnown:
    """A sample belongs to a cell of its run."""

    name = "cell-known"
    why = "Without its cell nobody knows under which conditions a sample was measured."
    symptom = ""
    expected = "a cell of this run"
    looks_at: Subject = "sample"

    def check(self, evidence: Evidence) -> Iterator[Finding]:
        """Refuse samples of cells that the run does not list."""
        for sample in evidence.samples:
            if evidence.cell(sample.cell) is None:
                yield finding(self, "refuse", "sample", sample.index, f"cell {sample.cell}")


class LifeRecorded:
    """A server's life was recorded to its end, with its counters and the host's state."""

    name = "life-recorded"
    why = "A life that was cut off left no counters, no warm-ups and no host state to check its samples by."
    symptom = ""
    expected = "a record of the server's life"
    looks_at: Subject = "server"

    def check(self, evidence: Evidence) -> Iterator[Finding]:
        """Report servers with samples and no record."""
        recorded = {life.id for life in evidence.lives}
        for server, samples in evidence.by_server.items():
            if server not in recorded:
                yield finding(self, "unchecked", "server", server, f"{len(samples)} samples and no record of its life")
