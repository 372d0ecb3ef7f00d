"""A mechanistic model of the step: the bytes that it must move, over a memory bandwidth, plus a fixed cost.

An evaluation of w rows reads every dense weight once, the distinct experts that the rows are routed to, and the part
of the cache that grows with depth. If rows were routed independently and uniformly, a layer with E experts of which
each row uses k would need E (1 - (1 - k/E)^w) distinct ones on average; rows that all agree need k. Text that
continues a thought lies in between, so the model gives an interval with these two as bounds. A drafted step is one
evaluation of the drafter over its block and one of the target over n + 1 rows.

The model knows nothing of kernels: a backend that changes its matrix routine at some number of rows, sorts on another
processor or runs layers one by one is slower than it says.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from pathlib import Path
from types import MappingProxyType

from analysis.evidence import tables
from analysis.evidence.cells import Drafted, drafted
from analysis.evidence.interval import Interval
from analysis.evidence.published import Row, constants

# Where a card does not say which drafter file a row was measured with.
ASSUMED_DRAFTER = {"A": "drafter_mxfp4", "B": "drafter_q2k"}


@dataclass(frozen=True, slots=True)
class Model:
    """Sizes of a target or a drafter. Parameters are weights, `*_bits` bits per weight on average.

    `dense_parameters` are read by every evaluation, `expert_parameters` belong to one expert of one layer;
    `cache_bytes_per_token` is what an evaluation reads of the cache for each token of depth.
    """

    id: str
    title: str
    role: str
    names: str
    layers: int
    experts: int
    experts_used: int
    expert_parameters: int
    expert_bits: Fraction
    dense_parameters: int
    dense_bits: Fraction
    cache_bytes_per_token: int
    source: str

    @property
    def dense_bytes(self) -> Fraction:
        """Return the bytes that every evaluation reads."""
        return self.dense_parameters * self.dense_bits / 8

    def expert_bytes(self, rows: int) -> Interval:
        """Return the bytes of routed experts that an evaluation of several rows reads, all layers together."""
        return distinct_experts(self.experts, self.experts_used, rows) * (
            self.layers * self.expert_parameters * self.expert_bits / 8
        )

    def evaluation_bytes(self, rows: int, depth: int) -> Interval:
        """Return the bytes that one evaluation of several rows reads at a depth in tokens."""
        return self.expert_bytes(rows) + self.dense_bytes + self.cache_bytes_per_token * depth


@dataclass(frozen=True, slots=True)
class Predicted:
    """A published cell beside the model.

    `raw_steps` is the drafted step in raw steps, `measured` what the card implies. `bandwidth` is the bytes of a raw
    step over its measured duration, GB/s: what the model needs to give the raw rate without a fixed cost.
    """

    cell: Drafted
    target: Model
    drafter: Model
    drafter_stated: bool
    raw_steps: Interval
    measured: Interval
    bandwidth: Interval

    @property
    def error(self) -> Interval:
        """Return by how many percent the model's step is longer than the measured one."""
        return (self.raw_steps / self.measured - 1) * 100


def distinct_experts(experts: int, used: int, rows: int) -> Interval:
    """Return how many distinct experts of a layer several rows need: from all agreeing to routed independently.

    The centre is the upper bound, the expectation for independent rows.
    """
    independent = experts * (1 - (1 - Fraction(used, experts)) ** rows)
    return Interval(Fraction(used), independent, independent)


def step_bytes(target: Model, drafter: Model, n: int, block: int, depth: int) -> Interval:
    """Return the bytes that a drafted step moves: the drafter over its block, the target over n + 1 rows."""
    return drafter.evaluation_bytes(block, 0) + target.evaluation_bytes(n + 1, depth)


def step_ms(moved: Interval, bandwidth: float, fixed_ms: float = 0.0) -> Interval:
    """Return a duration in ms from bytes, a bandwidth in GB/s and a fixed cost in ms."""
    return moved / Fraction(bandwidth) / 10**6 + Fraction(fixed_ms)


def raw_steps(target: Model, drafter: Model, n: int, machine: Mapping[str, float]) -> Interval:
    """Return the drafted step in raw steps on a machine.

    `machine` has `bandwidth` in GB/s, and may have `fixed_ms` (each evaluation of the target), `draft_ms` (each of the
    drafter) and `depth` in tokens.
    """
    depth = int(machine.get("depth", 0))
    block = int(constants()["v4_draft_block_size"].interval.centre)
    fixed = machine.get("fixed_ms", 0.0)
    raw = step_ms(target.evaluation_bytes(1, depth), machine["bandwidth"], fixed)
    drafted_step = step_ms(
        step_bytes(target, drafter, n, block, depth), machine["bandwidth"], fixed + machine.get("draft_ms", 0.0)
    )
    return drafted_step / raw


def speed_ratio(target: Model, drafter: Model, n: int, length: Interval, machine: Mapping[str, float]) -> Interval:
    """Return drafted over raw decode rate on a machine (see `raw_steps`), for a mean accepted length."""
    return length / raw_steps(target, drafter, n, machine)


def missed_by(found: Iterable[Predicted]) -> Interval:
    """Return measured over predicted drafted steps, from the smallest to the largest of the published cells.

    Predicted is the step of rows that are routed independently. The centre is the median.

    Raises:
        ValueError: there is no cell.
    """
    factors = sorted((p.measured / p.raw_steps.high for p in found), key=lambda factor: factor.centre)
    if not factors:
        raise ValueError("no published cell to hold the model against")
    centre = factors[len(factors) // 2].centre
    return Interval(min(f.low for f in factors), centre, max(f.high for f in factors))


def verdict(ratio: Interval) -> str:
    """Return `pays` if the whole interval lies above 1, `loses` if it lies below, else `undecided`."""
    return "pays" if ratio.low > 1 else "loses" if ratio.high < 1 else "undecided"


@cache
def models(folder: Path | None = None) -> Mapping[str, Model]:
    """Return the sizes of the cards' targets and drafters by id.

    Raises:
        Problem: a line of `models.csv` is wrong (file, line, reason).
    """
    return MappingProxyType({line.cells["id"]: _model(line.cells) for line in tables.read("models", folder)})


def compare(rows: Mapping[str, Row]) -> list[Predicted]:
    """Return every published cell that has an implied step, a raw rate and a target of known size, with the model's."""
    return [found for cell in drafted(rows) if (found := _predict(cell)) is not None]


def _predict(cell: Drafted) -> Predicted | None:
    target = _named(cell.row.factors.get("target", ""), "target")
    measured, raw = cell.raw_steps, cell.raw
    if target is None or measured is None or raw is None or cell.n is None:
        return None
    stated = _named(cell.row.factors.get("drafter_file", ""), "drafter")
    drafter = stated or models()[ASSUMED_DRAFTER[cell.row.card]]
    depth = cell.row.factors.get("depth", "short")
    tokens = int(depth) if depth.isdigit() else 0
    block = int(constants()["v4_draft_block_size"].interval.centre)
    one = target.evaluation_bytes(1, tokens)
    moved = step_bytes(target, drafter, min(cell.n, block), block, tokens)
    bandwidth = one * raw.printed.interval / 10**9
    return Predicted(cell, target, drafter, stated is not None, moved / one, measured, bandwidth)


def _named(name: str, role: str) -> Model | None:
    return next((model for model in models().values() if model.names == name and model.role == role), None)


def _model(cells: Mapping[str, str]) -> Model:
    return Model(
        id=cells["id"],
        title=cells["title"],
        role=cells["role"],
        names=cells["names"],
        layers=int(cells["layers"]),
        experts=int(cells["experts"]),
        experts_used=int(cells["experts_used"]),
        expert_parameters=int(cells["expert_parameters"]),
        expert_bits=Fraction(cells["expert_bits"]),
        dense_parameters=int(cells["dense_parameters"]),
        dense_bits=Fraction(cells["dense_bits"]),
        cache_bytes_per_token=int(cells["cache_bytes_per_token"]),
        source=cells["source"],
    )
