"""All gates in order, and what their findings leave fit to publish."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from analysis.gates.base import Evidence, Finding, Gate, finding
from analysis.gates.canary import DeeperPositionsHold, FirstPositionAlive, SecondPositionHolds
from analysis.gates.contrast import OneFactor
from analysis.gates.control import ControlHoldsOne
from analysis.gates.counters import CountersAgree, SampleCountersAgree
from analysis.gates.depth import DepthReal
from analysis.gates.drafts import DraftsHappened, DraftsWithinLimit
from analysis.gates.drift import AcceptanceSteady, SpeedSteady
from analysis.gates.emitted import EmittedAddsUp
from analysis.gates.engine import CountersSound, PartialAcceptanceSeen
from analysis.gates.fit import PairFits
from analysis.gates.host import HostQuiet
from analysis.gates.interaction import InteractionInOneRow
from analysis.gates.intervals import IntervalsPresent
from analysis.gates.known import CellKnown, LifeRecorded
from analysis.gates.legs import LegsAlike, LegUndisturbed, samples_of_legs
from analysis.gates.memory import MemoryStill
from analysis.gates.order import OrderBalanced
from analysis.gates.prompts import EnoughPrompts
from analysis.gates.regime import TextOfItsRegime
from analysis.gates.repeated import PromptNotRepeated
from analysis.gates.short import RepliesLongEnough
from analysis.gates.thinking import ThinkingRecorded
from analysis.gates.warmup import WarmupDiscarded
from analysis.records import Block, Sample

GATES: tuple[Gate, ...] = (
    CellKnown(),
    LifeRecorded(),
    DepthReal(),
    EmittedAddsUp(),
    SampleCountersAgree(),
    TextOfItsRegime(),
    PromptNotRepeated(),
    RepliesLongEnough(),
    CountersAgree(),
    CountersSound(),
    PartialAcceptanceSeen(),
    PairFits(),
    DraftsHappened(),
    DraftsWithinLimit(),
    FirstPositionAlive(),
    SecondPositionHolds(),
    DeeperPositionsHold(),
    ThinkingRecorded(),
    WarmupDiscarded(),
    MemoryStill(),
    HostQuiet(),
    LegUndisturbed(),
    LegsAlike(),
    OneFactor(),
)
"""Gates that judge samples, servers, cells and the run as they are."""

LATE_GATES: tuple[Gate, ...] = (
    EnoughPrompts(),
    OrderBalanced(),
    SpeedSteady(),
    AcceptanceSteady(),
    InteractionInOneRow(),
    ControlHoldsOne(),
    IntervalsPresent(),
)
"""Gates that judge what the others leave."""


def check_all(evidence: Evidence) -> list[Finding]:
    """Return what every gate finds, in the order of the gates. A gate with nothing to say against says what it saw."""
    findings = [found for gate in GATES for found in _check(gate, evidence)]
    rest = replace(evidence, samples=publishable(evidence.samples, findings, evidence.blocks))
    return findings + [found for gate in LATE_GATES for found in _check(gate, rest)]


def publishable(samples: Iterable[Sample], findings: Iterable[Finding], blocks: Sequence[Block] = ()) -> list[Sample]:
    """Return the samples that no finding refuses: neither they, nor their leg, cell, server or run."""
    refused_places = refused(findings)
    in_legs = samples_of_legs(blocks, {place for kind, place in refused_places if kind == "leg"})
    if any(kind == "run" for kind, _ in refused_places):
        return []
    return [
        sample
        for sample in samples
        if sample.index not in in_legs
        and not refused_places & {("sample", str(sample.index)), ("cell", sample.cell), ("server", sample.server)}
    ]


def refused(findings: Iterable[Finding]) -> set[tuple[str, str]]:
    """Return the kinds and ids of everything that is refused."""
    return {(found.where.kind, found.where.id) for found in findings if found.level == "refuse"}


def _check(gate: Gate, evidence: Evidence) -> Sequence[Finding]:
    found = list(gate.check(evidence))
    if any(one.level != "pass" for one in found):
        return found
    judged = _judged(gate, evidence)
    run = evidence.run.id
    if not judged and gate.looks_at == "leg":
        return found  # only duels have legs in blocks
    if not judged:
        return [*found, finding(gate, "unchecked", "run", run, f"no {gate.looks_at} to look at")]
    plural = "" if judged == 1 else "s"
    return [*found, finding(gate, "pass", "run", run, f"{judged} {gate.looks_at}{plural} in order")]


def _judged(gate: Gate, evidence: Evidence) -> int:
    return {
        "run": 1,
        "cell": len(evidence.by_cell),
        "sample": len(evidence.samples),
        "server": len(evidence.lives),
        "contrast": len(evidence.contrasts),
        "leg": sum(len(block.legs) for block in evidence.blocks),
    }[gate.looks_at]
