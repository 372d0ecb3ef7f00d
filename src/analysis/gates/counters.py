"""Do stream, response and `/metrics` count alike?"""

from collections.abc import Iterator
from itertools import zip_longest

from analysis.gates.base import Evidence, Finding, Subject, finding
from analysis.records import Cell, Counters, Sample


class CountersAgree:
    """The stream of a server's life adds up to what its `/metrics` say."""

    name = "counters-agree"
    why = "Two counts of the same events that differ cannot both be right."
    symptom = "Partial acceptance is counted as none; replayed tokens are counted as accepted."
    expected = "equal counters in stream and /metrics"
    looks_at: Subject = "server"

    def check(self, evidence: Evidence) -> Iterator[Finding]:
        """Refuse servers whose counters differ; report those without `/metrics`."""
        for life in evidence.lives:
            if life.metrics is None:
                yield finding(self, "unchecked", "server", life.id, "no /metrics")
                continue
            differences = _differences(life.stream, life.metrics)
            if differences:
                yield finding(self, "refuse", "server", life.id, "; ".join(differences))


class SampleCountersAgree:
    """A sample's steps add up to the totals in its response, but for what the end of the reply cut off."""

    name = "sample-counters-agree"
    why = "The response's totals and the steps describe the same request; only its last step may be cut short."
    symptom = "A replayed token counts as accepted, so that the totals exceed what was emitted."
    expected = "draft_n and draft_n_accepted at most one draft above the steps' sums"
    looks_at: Subject = "sample"

    def check(self, evidence: Evidence) -> Iterator[Finding]:
        """Refuse samples whose totals the steps cannot explain."""
        for sample, cell in evidence.placed:
            for name, total, steps in _totals(sample):
                if not 0 <= total - steps <= _most_cut(sample, cell):
                    saw = f"{name} is {total}, the steps sum to {steps}"
                    yield finding(self, "refuse", "sample", sample.index, saw)


def _totals(sample: Sample) -> tuple[tuple[str, int, int], ...]:
    return (
        ("draft_n", sample.draft_n, sum(sample.drafted)),
        ("draft_n_accepted", sample.draft_n_accepted, sum(sample.accepted)),
    )


def _most_cut(sample: Sample, cell: Cell) -> int:
    return max(cell.n_max, max(sample.drafted, default=0))


def _differences(stream: Counters, metrics: Counters) -> list[str]:
    pairs = [(name, getattr(stream, name), getattr(metrics, name)) for name in ("drafts", "draft_tokens")]
    pairs.append(("accepted_tokens", stream.accepted_tokens, metrics.accepted_tokens))
    positions = zip_longest(stream.accepted_per_pos, metrics.accepted_per_pos, fillvalue=0)
    pairs += [(f"accepted at position {k}", ours, theirs) for k, (ours, theirs) in enumerate(positions, 1)]
    return [f"{name}: stream {ours}, /metrics {theirs}" for name, ours, theirs in pairs if ours != theirs]
