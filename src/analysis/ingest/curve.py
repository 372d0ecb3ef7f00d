"""A curve of acceptance along the positions of a draft, from a run, from reports, or typed, with what is behind it."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal

from analysis.ingest.gather import Ingested
from analysis.ingest.model import MAX_POSITIONS, Reading
from analysis.records import Cell, Problem, Sample
from analysis.records.store import RunDir

Meaning = Literal["survival", "proposal", "conditional"]

MEANINGS: tuple[Meaning, ...] = ("survival", "proposal", "conditional")


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """What one request did, or all of them where they are not told apart: steps, and those that survived each position.

    `reached` counts, for each position, the steps that accepted the one before and drafted this one; where that is
    not known, the steps that survived the position before.
    """

    survived: tuple[int, ...]
    reached: tuple[int, ...]
    accepted: int = 0
    drafted: int = 0
    depth: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """A curve of conditional acceptance with the counts behind it.

    `groups` are the requests, in the order in which they were served. `typed` is a curve without counts. `cut` says
    that drafts of less than full length were seen, so that what comes from survival alone is a lower limit. `notes` say
    what was left out or put together.
    """

    title: str
    groups: tuple[Group, ...] = ()
    typed: tuple[float, ...] = ()
    spec_type: str = ""
    n_max: int | None = None
    block: int | None = None
    cut: bool = False
    replays: bool = False
    notes: tuple[str, ...] = ()

    @property
    def positions(self) -> int:
        """Return the number of positions."""
        return len(self.typed) or max((len(group.survived) for group in self.groups), default=0)

    @property
    def totals(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Return the steps that survived and reached each position, over all groups."""
        return _column_sums([g.survived for g in self.groups]), _column_sums([g.reached for g in self.groups])

    @property
    def conditional(self) -> tuple[float, ...]:
        """Return the conditional acceptance of each position; nan where no step reached it."""
        if self.typed:
            return self.typed
        survived, reached = self.totals
        return tuple(s / r if r else math.nan for s, r in zip(survived, reached, strict=True))


def typed_curve(text: str, *, meaning: Meaning, steps: int | None = None) -> Curve:
    """Return the curve that somebody typed: `0.8,0.6,0.4`, also in per cent.

    Args:
        text: numbers between 0 and 1, or per cents with their sign, separated by commas or blanks.
        meaning: which of the three acceptances they are.
        steps: the verification steps behind them; without, nothing can be said of chance.

    Raises:
        Problem: a number is none or outside 0 to 1, survival rises, or there is none.
    """
    values = [_share(part) for part in text.replace(",", " ").split()]
    if not values or len(values) > MAX_POSITIONS:
        raise Problem(f"{len(values)} positions in the curve", expected=f"1 to {MAX_POSITIONS}, such as 0.8,0.6,0.5")
    if meaning == "survival" and any(later > earlier for earlier, later in pairwise(values)):
        raise Problem(
            f"survival that rises: {text}",
            expected="shares that fall or stay",
            remedy="if they are conditional, say --meaning conditional",
        )
    conditional = _conditional(values) if meaning == "survival" else values
    if steps is None:
        return Curve(title="typed curve", typed=tuple(conditional))
    reached, survived = [], []
    left = steps
    for share in conditional:
        reached.append(left)
        left = round(left * share) if not math.isnan(share) else 0
        survived.append(left)
    group = Group(survived=tuple(survived), reached=tuple(reached), accepted=sum(survived), drafted=steps * len(values))
    return Curve(title="typed curve", groups=(group,), n_max=len(values))


def run_curves(directory: RunDir, refused: Mapping[int, str] | None = None) -> list[Curve]:
    """Return the curves of a recorded run: one for each pair, regime and leg, its depths together.

    A curve without a group is of samples that are all refused.

    Args:
        directory: the run.
        refused: why samples are left out, by their index; none is left out without.
    """
    cells = {cell.id: cell for cell in directory.run.cells}
    kept: dict[tuple[str, str, str], list[tuple[Cell, Sample]]] = {}
    for sample in directory.samples():
        cell = cells.get(sample.cell)
        if cell is not None and cell.spec_type != "none":
            kept.setdefault((cell.pair, cell.regime, sample.leg), []).append((cell, sample))
    return [_run_curve(directory.run.id, key, members, refused or {}) for key, members in kept.items()]


def _run_curve(
    run: str, key: tuple[str, str, str], members: list[tuple[Cell, Sample]], refused: Mapping[int, str]
) -> Curve:
    fit = [(cell, sample) for cell, sample in members if sample.index not in refused]
    groups = [steps_group(sample.drafted, sample.accepted, depth=cell.depth) for cell, sample in fit]
    n_max = max(max(cell.n_max, *sample.drafted, 0) for cell, sample in members)
    return Curve(
        title=f"{run}: {', '.join(key)}",
        groups=tuple(padded([group for group in groups if group is not None], n_max)),
        spec_type=members[0][0].spec_type,
        n_max=n_max,
        cut=any(0 < drafted < cell.n_max for cell, sample in fit for drafted in sample.drafted),
        notes=_left_out([refused[sample.index] for _, sample in members if sample.index in refused], len(members))
        + _pooled([cell.depth for cell, _ in fit]),
    )


def _left_out(reasons: Sequence[str], samples: int) -> tuple[str, ...]:
    if not reasons:
        return ()
    why = ", ".join(f"{reason} {count}" for reason, count in Counter(reasons).most_common())
    return (f"{len(reasons)} of {samples} samples are refused and left out ({why}); `specbook gates` says why",)


def _pooled(depths: Sequence[int]) -> tuple[str, ...]:
    counts = sorted(Counter(depths).items())
    if len(counts) < 2:
        return ()
    said = ", ".join(f"{depth} ({count} sample{'s' * (count != 1)})" for depth, count in counts)
    return (f"depths are pooled: {said}",)


def steps_group(drafted: Sequence[int], accepted: Sequence[int], *, depth: int | None = None) -> Group | None:
    """Return the counts of one request from its steps, or None if it has no draft."""
    pairs = [(d, a) for d, a in zip(drafted, accepted, strict=True) if d > 0]
    positions = min(max((d for d, _ in pairs), default=0), MAX_POSITIONS)
    if not positions:
        return None
    places = range(1, positions + 1)
    return Group(
        survived=tuple(sum(a >= k for _, a in pairs) for k in places),
        reached=tuple(sum(a >= k - 1 and d >= k for d, a in pairs) for k in places),
        accepted=sum(a for _, a in pairs),
        drafted=sum(d for d, _ in pairs),
        depth=depth,
    )


def report_curves(ingested: Ingested) -> list[Curve]:
    """Return the curves of ingested files: one for each server and scope that has curves with their steps."""
    by_key: dict[tuple[str, str, str], list[Reading]] = {}
    for reading in (*ingested.readings, *ingested.running):
        if not reading.fit or not reading.steps.value or not (reading.survival_counts or reading.step_drafted):
            continue
        if reading.scope == "cumulative" and reading not in ingested.running:
            continue
        kind = reading.format if reading.scope == "cumulative" else reading.scope
        members = by_key.setdefault((reading.source, reading.server, f"{kind} {reading.spec_type}".strip()), [])
        if reading not in members:
            members.append(reading)
    return [_report_curve(ingested, key, readings) for key, readings in by_key.items()]


def _report_curve(ingested: Ingested, key: tuple[str, str, str], readings: list[Reading]) -> Curve:
    setup = ingested.setup(key[0], key[1])
    limits = {reading.n_max.value for reading in readings if reading.n_max.value is not None}
    n_max = max(limits) if limits else setup.n_max
    groups = [_group(reading) for reading in readings]
    positions = max(len(group.survived) for group in groups)
    full = all((r.drafted or 0) >= (r.steps.value or 0) * positions for r in readings)
    spec_type = readings[0].spec_type or (setup.spec_types[0] if len(setup.spec_types) == 1 else "")
    return Curve(
        title=" ".join(part for part in key if part), groups=tuple(padded(groups, positions)), spec_type=spec_type,
        n_max=n_max, cut=not full, replays=setup.checkpoints or any(r.restored for r in readings),
    )  # fmt: skip


def _group(reading: Reading) -> Group:
    if reading.step_drafted:
        made = steps_group(reading.step_drafted, reading.step_accepted, depth=reading.depth)
        if made is not None:
            return made
    counts = reading.survival_counts
    return Group(
        survived=counts, reached=(reading.steps.value or 0, *counts[:-1]), accepted=reading.accepted or 0,
        drafted=reading.drafted or 0, depth=reading.depth,
    )  # fmt: skip


def padded(groups: Sequence[Group], positions: int) -> list[Group]:
    """Return groups with as many positions; one that no step of a request reached has no counts there."""
    return [
        replace(
            group,
            survived=group.survived + (0,) * (positions - len(group.survived)),
            reached=group.reached + (0,) * (positions - len(group.reached)),
        )
        for group in groups
    ]


def _column_sums(rows: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    return tuple(map(sum, zip(*rows, strict=True))) if rows else ()


def _conditional(survival: Sequence[float]) -> list[float]:
    before = [1.0, *survival[:-1]]
    return [share / earlier if earlier else math.nan for share, earlier in zip(survival, before, strict=True)]


def _share(text: str) -> float:
    try:
        value = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        value = math.nan
    if not 0 <= value <= 1:
        raise Problem(f"{text!r} in the curve", expected="a share between 0 and 1, or a per cent with its sign")
    return value
