"""The shape of a curve: named only where most of the curves that fit the counts have it.

A thousand curves are drawn that the counts allow: requests are resampled where there are several (the prompt
is the unit of replication), else each position's share is drawn from its beta distribution with Jeffreys' prior. Each
is put to the same rules. The share of them that shows a sign is the evidence for it.
"""

import math
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from analysis.ingest.curve import Curve, Group
from analysis.records import Problem
from analysis.records.places import data_dir

Shape = Literal["ones", "nothing", "cliff", "collapse", "weak", "decay", "flat"]
Sign = Literal["ones", "nothing", "cliff", "collapse", "weak", "decay", "flat", "depth", "uptime"]
SHAPES: tuple[Shape, ...] = ("ones", "nothing", "cliff", "collapse", "weak", "decay", "flat")

DRAWS = 1000
ENOUGH_GROUPS = 5
"""Requests from which resampling them says how much they differ."""

MIN_TRIALS = 8
"""Steps that must reach a position for it to say anything."""

_OF_ONE_POSITION = ("ones", "nothing")
"""What one position can show; every other shape needs a second."""

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Threshold:
    """A limit between two shapes, what it says, and where it comes from."""

    value: float
    says: str
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """How much speaks for a sign. `position` is the cliff's: the last one in front of it."""

    sign: Sign
    share: float
    position: int = 0


def signs_file() -> Path:
    """Return the file of thresholds and causes."""
    return data_dir() / "diagnosis" / "signs.toml"


@cache
def read_signs(file: Path) -> Mapping[str, object]:
    """Return the content of the file of thresholds and causes.

    Raises:
        Problem: it is not there or is damaged.
    """
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise Problem(f"{file} cannot be read: {error}", expected="thresholds and causes") from None


def thresholds(file: Path | None = None) -> dict[str, Threshold]:
    """Return the thresholds by name."""
    table = read_signs(file or signs_file())["threshold"]
    if not isinstance(table, dict):
        raise Problem(f"{file or signs_file()} holds no thresholds")
    return {name: Threshold(float(t["value"]), str(t["says"]), str(t["source"])) for name, t in table.items()}


def shape(conditional: Sequence[float], limits: Mapping[str, Threshold]) -> tuple[Shape, int]:
    """Return the shape of a curve without noise, and the position of a cliff.

    Args:
        conditional: conditional acceptance at positions 1.., as far as it is known; at least one.
        limits: from `thresholds`.
    """
    first, rest = conditional[0], conditional[1:]
    if min(conditional) >= limits["ones"].value:
        return "ones", 0
    if first < limits["nothing"].value:
        return "nothing", 0
    if first >= limits["first"].value and rest:
        if np.median(rest) <= limits["collapse"].value * first and rest[0] <= limits["collapse"].value * first:
            return "collapse", 0
        for place in range(1, len(rest)):
            if rest[place] <= limits["cliff"].value * min(conditional[: place + 1]):
                return "cliff", place + 1
    if len(conditional) > 1:
        half = len(conditional) // 2
        early, late = np.mean(conditional[:half]), np.mean(conditional[-half:])
        if late < limits["decay"].value * early:
            return "decay", 0
    return ("weak", 0) if np.mean(conditional) < limits["weak"].value else ("flat", 0)


def shapes(curve: Curve, limits: Mapping[str, Threshold], *, seed: int = 0, draws: int = DRAWS) -> list[Evidence]:
    """Return how much speaks for each shape, most first; for a typed curve without counts, the shape as it stands."""
    drawn = _drawn(curve, seed=seed, draws=draws) if curve.groups else np.array([_leading(curve.typed)])
    if not drawn.size:
        return []
    found = [shape(row, limits) for row in drawn.tolist()]
    shares = {name: sum(one == name for one, _ in found) / len(found) for name in SHAPES}
    cliffs = [position for name, position in found if name == "cliff"]
    usual = max(set(cliffs), key=cliffs.count) if cliffs else 0
    evidence = [
        Evidence(sign=name, share=share, position=usual if name == "cliff" else 0)
        for name, share in shares.items()
        if share and (drawn.shape[1] > 1 or name in _OF_ONE_POSITION)
    ]
    return sorted(evidence, key=lambda one: -one.share)


def falls(
    groups: Sequence[Group], limit: float, *, by: Literal["depth", "uptime"], seed: int = 0, draws: int = DRAWS
) -> float | None:
    """Return how much speaks for a fall with depth or along the order of requests; None where nothing can be said.

    Acceptance of the deeper half of the requests is set against that of the shallower half, or that of the last third
    against the first. Fewer than three requests on a side say nothing.
    """
    first, last = _sides(groups, by)
    if min(len(first), len(last)) < 3:
        return None
    rng = np.random.default_rng(seed)
    before, after = _resampled(first, rng, draws), _resampled(last, rng, draws)
    with np.errstate(invalid="ignore"):
        return float(np.mean(after <= limit * before))


def _sides(groups: Sequence[Group], by: Literal["depth", "uptime"]) -> tuple[Sequence[Group], Sequence[Group]]:
    used = [group for group in groups if group.drafted]
    if by == "uptime":
        third = len(used) // 3
        return used[:third], used[len(used) - third :] if third else []
    deep = [group for group in used if group.depth is not None]
    depths = sorted({group.depth or 0 for group in deep})
    if len(depths) < 2 or depths[-1] < 2 * max(depths[0], 1):
        return [], []
    middle = math.sqrt(max(depths[0], 1) * depths[-1])
    return [g for g in deep if (g.depth or 0) <= middle], [g for g in deep if (g.depth or 0) > middle]


def _resampled(groups: Sequence[Group], rng: np.random.Generator, draws: int) -> Floats:
    sums = np.array([(group.accepted, group.drafted) for group in groups], dtype=np.float64)
    totals = sums[rng.integers(0, len(sums), size=(draws, len(sums)))].sum(axis=1)
    return np.asarray(totals[:, 0] / totals[:, 1])


def _drawn(curve: Curve, *, seed: int, draws: int) -> Floats:
    """Return curves that fit the counts: shape (draws, positions that enough steps reached)."""
    survived, reached = (np.array(column, dtype=np.float64) for column in curve.totals)
    enough = reached >= MIN_TRIALS
    positions = int(np.argmin(enough)) if not enough.all() else len(enough)
    if positions == 0:
        return np.empty((0, 0))
    rng = np.random.default_rng(seed)
    if len(curve.groups) >= ENOUGH_GROUPS:
        s = np.array([group.survived[:positions] for group in curve.groups], dtype=np.float64)
        r = np.array([group.reached[:positions] for group in curve.groups], dtype=np.float64)
        chosen = rng.integers(0, len(s), size=(draws, len(s)))
        survived_drawn, reached_drawn = s[chosen].sum(axis=1), r[chosen].sum(axis=1)
        return np.asarray((survived_drawn + 0.5) / (reached_drawn + 1.0))
    alpha, beta = survived[:positions] + 0.5, np.maximum(reached - survived, 0)[:positions] + 0.5
    return rng.beta(alpha, beta, size=(draws, positions))


def _leading(values: Sequence[float]) -> list[float]:
    usable = []
    for value in values:
        if math.isnan(value):
            break
        usable.append(value)
    return usable
