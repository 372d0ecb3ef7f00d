"""Does a contrast in which no factor can act show nothing?"""

from collections.abc import Iterator, Sequence

from analysis.gates.base import Evidence, Finding, Level, Subject, finding
from analysis.records import Sample
from analysis.stats import Interval, speed_ratio

RAW, CONTROL = "raw", "control"


class ControlHoldsOne:
    """Two servers that are served alike are equally fast; how far apart they look is the noise floor of the run."""

    name = "control-holds-one"
    why = "An effect smaller than the difference between a server and itself is no effect."
    symptom = "A factor seems to act where it cannot, as on a row whose answers come from a cache."
    expected = "a ratio of control to raw whose interval holds 1"
    looks_at: Subject = "run"

    def check(self, evidence: Evidence) -> Iterator[Finding]:
        """Warn of a control that does not hold 1; report a run without one; tell the noise floor."""
        floor = noise_floor(evidence.samples)
        run = evidence.run.id
        if floor.n == 0:
            yield finding(self, "unchecked", "run", run, "no control leg")
        elif floor.limits is None:
            yield finding(self, "unchecked", "run", run, f"control over raw {floor.estimate:.3f}: {floor.note}")
        else:
            level: Level = "pass" if floor.contains(1.0) else "warn"
            half = (floor.limits[1] - floor.limits[0]) / 2
            saw = f"control over raw {floor.format(decimals=3)} from {floor.n} prompts: a noise floor of {half:.1%}"
            yield finding(self, level, "run", run, saw)


def noise_floor(samples: Sequence[Sample]) -> Interval:
    """Return the speed of the control leg over that of the raw one, paired by cell and prompt, over prompts."""
    timed = [sample for sample in samples if sample.emitted > 1 and sum(sample.step_ms) > 0]
    raw = {(s.cell, s.prompt_id): s for s in timed if s.leg == RAW}
    pairs = [(raw[key], s) for s in timed if s.leg == CONTROL and (key := (s.cell, s.prompt_id)) in raw]
    return speed_ratio(
        [_rate(first) for first, _ in pairs],
        [_rate(second) for _, second in pairs],
        [second.prompt_id for _, second in pairs],
    )


def _rate(sample: Sample) -> float:
    return 1e3 * (sample.emitted - 1) / sum(sample.step_ms)
