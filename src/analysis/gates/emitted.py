"""Do emitted tokens and steps add up?"""

from collections.abc import Iterator

from analysis.gates.base import Evidence, Finding, Subject, finding


class EmittedAddsUp:
    """Every emitted token is the fill's, an accepted one, or the one that each evaluation adds."""

    name = "emitted-adds-up"
    why = "Steps are derived from the stream; if they do not add up to the text, a step was lost or counted twice."
    symptom = "Accepted tokens exceed the emitted ones at the stop; the response holds no number of steps."
    expected = "emitted = 1 + sum(accepted + 1) over the evaluations"
    looks_at: Subject = "sample"

    def check(self, evidence: Evidence) -> Iterator[Finding]:
        """Refuse samples that do not add up."""
        for sample in evidence.samples:
            implied = 1 + sum(sample.accepted) + len(sample.accepted)
            if sample.emitted != implied:
                saw = f"{sample.emitted} emitted tokens where the steps imply {implied}"
                yield finding(self, "refuse", "sample", sample.index, saw)
