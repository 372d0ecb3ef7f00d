"""Does every number come with an interval, or with the reason why it has none?"""

from collections.abc import Iterator, Sequence

from analysis.gates.base import Evidence, Finding, Subject, finding
from analysis.records import Cell, Sample
from analysis.stats import Interval, acceptance, decode_rate


class IntervalsPresent:
    """A cell's estimates have intervals. Where they cannot, the page shows points and says why."""

    name = "intervals-present"
    why = "An estimate without an interval looks as certain as one with a narrow interval."
    symptom = ""
    expected = "an interval for the mean accepted length and the decode rate"
    looks_at: Subject = "cell"

    def check(self, evidence: Evidence) -> Iterator[Finding]:
        """Warn of cells whose estimates have no interval, with the reason."""
        for cell, samples in evidence.by_cell.items():
            reasons = [
                f"{name}: {interval.note}" for name, interval in estimates(cell, samples).items() if not interval.shown
            ]
            if reasons:
                yield finding(self, "warn", "cell", cell.id, "; ".join(reasons))


def estimates(cell: Cell, samples: Sequence[Sample]) -> dict[str, Interval]:
    """Return the estimates that every page shows of a cell, by name."""
    prompts = [sample.prompt_id for sample in samples]
    rate = decode_rate([sample.emitted for sample in samples], [sum(sample.step_ms) for sample in samples], prompts)
    if cell.spec_type == "none":
        return {"decode rate": rate}
    drafted = [count for sample in samples for count in sample.drafted]
    accepted = [count for sample in samples for count in sample.accepted]
    who = [sample.prompt_id for sample in samples for _ in sample.drafted]
    found = acceptance(drafted, accepted, who, n_max=max(cell.n_max, *drafted, 0))
    return {"mean accepted length": found.mean_length, "decode rate": rate}
