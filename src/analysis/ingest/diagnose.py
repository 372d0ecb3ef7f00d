"""What may be wrong with a drafter, from its curve: the sign, its causes, and what would tell them apart."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import isnan
from pathlib import Path
from typing import Any, Literal

from analysis.ingest.curve import Curve
from analysis.ingest.signs import Evidence, Sign, Threshold, falls, read_signs, shapes, signs_file, thresholds
from analysis.records import Problem
from analysis.stats.intervals import exact_share

SIGNS: dict[Sign, str] = {
    "ones": "all positions are accepted nearly always",
    "nothing": "almost nothing is accepted anywhere",
    "cliff": "good up to one position, and nothing behind it",
    "collapse": "a good first position, then a collapse",
    "decay": "acceptance falls from position to position",
    "weak": "level and low",
    "flat": "level: a healthy curve",
    "depth": "acceptance falls with depth",
    "uptime": "acceptance falls along the order of requests",
}
_FALLS: tuple[Literal["depth", "uptime"], ...] = ("depth", "uptime")

UNTESTED = "a typed curve without its steps: chance is not in this; --steps puts it in"
NOTHING = "none: no sample with a draft that may be used"
CORRELATED = "one group of steps: steps of one text resemble each other, so that this looks surer than it is"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """What makes a sign; `seen` names where, `favoured` what of the setup speaks for it."""

    id: str
    sign: Sign
    title: str
    evidence: str
    apart: str
    seen: tuple[str, ...]
    favoured: Mapping[str, Sequence[Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """What was found of one curve.

    `named` is the sign, or None where no shape is sure enough; `evidence` holds all that fit, most first. `also`
    are falls with depth or time, which a curve may have beside its shape. `causes` belong to the named sign and to
    `also`, in the order of what the setup speaks for. `notes` limit what was said.
    """

    curve: Curve
    named: Evidence | None
    evidence: tuple[Evidence, ...]
    also: tuple[Evidence, ...]
    causes: tuple[Cause, ...]
    notes: tuple[str, ...]

    @property
    def verdict(self) -> str:
        """Return the sign in words, that it is undecided, or that there is no curve to judge."""
        if not self.curve.positions:
            return NOTHING
        if self.named is None:
            return "undecided"
        where = f" (behind position {self.named.position})" if self.named.position else ""
        return SIGNS[self.named.sign] + where


def causes(file: Path | None = None) -> tuple[Cause, ...]:
    """Return all causes, in the order of the file.

    Raises:
        Problem: the file is not there or is damaged.
    """
    table = read_signs(file or signs_file()).get("cause")
    if not isinstance(table, list):
        raise Problem(f"{file or signs_file()} holds no causes")
    return tuple(
        Cause(
            id=one["id"],
            sign=one["sign"],
            title=one["title"],
            evidence=one["evidence"],
            apart=one["apart"],
            seen=tuple(one["seen"]),
            favoured=one.get("favoured", {}),
        )
        for one in table
    )


def diagnose(curve: Curve, *, seed: int = 0, file: Path | None = None) -> Diagnosis:
    """Return what a curve shows and what may stand behind it.

    Raises:
        Problem: the file of thresholds and causes is damaged.
    """
    limits = thresholds(file)
    if not curve.positions:
        return Diagnosis(curve=curve, named=None, evidence=(), also=(), causes=(), notes=curve.notes)
    sure = limits["sure"].value
    evidence = shapes(curve, limits, seed=seed)
    named = evidence[0] if evidence and evidence[0].share >= sure else None
    also = _falls(curve, limits, sure, seed)
    signs = {one.sign for one in ((named,) if named else tuple(evidence[:2]))} | {one.sign for one in also}
    chosen = sorted((c for c in causes(file) if c.sign in signs), key=lambda cause: -_favour(cause, curve))
    return Diagnosis(
        curve=curve, named=named, evidence=tuple(evidence), also=also, causes=tuple(chosen), notes=_notes(curve)
    )


def _falls(curve: Curve, limits: Mapping[str, Threshold], sure: float, seed: int) -> tuple[Evidence, ...]:
    found = []
    for sign in _FALLS:
        share = falls(curve.groups, limits[sign].value, by=sign, seed=seed)
        if share is not None and share >= sure:
            found.append(Evidence(sign=sign, share=share))
    return tuple(found)


def favoured(cause: Cause, curve: Curve) -> bool:
    """Return whether what is known of the setup speaks for a cause."""
    return _favour(cause, curve) > 0


def _favour(cause: Cause, curve: Curve) -> int:
    evidence = shapes_position(curve)
    known: dict[str, Any] = {
        "spec_type": curve.spec_type or None,
        "cut": curve.cut,
        "replays": curve.replays,
        "at_block": curve.block is not None and evidence == curve.block,
    }
    return sum(known.get(name) in values for name, values in cause.favoured.items())


def shapes_position(curve: Curve) -> int:
    """Return the position in front of the steepest fall of a curve."""
    values = [value for value in curve.conditional if not isnan(value)]
    drops = [later - earlier for earlier, later in pairwise(values)]
    return drops.index(min(drops)) + 1 if drops else 0


def _notes(curve: Curve) -> tuple[str, ...]:
    notes = list(curve.notes)
    if curve.typed:
        notes.append(UNTESTED)
    elif len(curve.groups) < 5:
        notes.append(CORRELATED)
    if curve.cut:
        notes.append("drafts of less than full length were seen: what comes from survival alone is a lower limit")
    if curve.replays:
        notes.append("the server restores checkpoints: builds before 10210 count replayed tokens as accepted")
    if curve.positions == 1:
        notes.append("one position has no shape")
    return tuple(notes)


def rows(curve: Curve) -> list[dict[str, Any]]:
    """Return the curve position by position; limits are of independent steps and shown for single groups as such."""
    survived, reached = curve.totals if curve.groups else ((), ())
    found = []
    for place, share in enumerate(curve.conditional, 1):
        row: dict[str, Any] = {"position": place, "conditional": None if isnan(share) else share}
        if curve.groups and reached[place - 1]:
            limits = exact_share(survived[place - 1], reached[place - 1], unit="steps").limits
            row |= {"accepted": survived[place - 1], "reached": reached[place - 1], "limits": limits}
        found.append(row)
    return found
