"""Findings put together that say the same of several places: what a reader sees first of a run."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import get_args

from analysis.gates.base import Evidence, Finding, Level

MOST_PLACES = 6
"""Places, or stretches of sample numbers, that are named one by one."""

_NUMBER = re.compile(r"[\d.,]*\d")


@dataclass(frozen=True, slots=True)
class Group:
    """What one gate found of one kind; `touched` counts the samples that stand behind the places."""

    level: Level
    gate: str
    findings: tuple[Finding, ...]
    touched: int

    @property
    def saw(self) -> str:
        """Return what was seen, of several things the one that was seen most often, with its count."""
        (most, times), *others = Counter(found.saw for found in self.findings).most_common()
        return f"{most} ({times} of {len(self.findings)})" if others else most

    @property
    def expected(self) -> str:
        """Return what the gate expected."""
        return self.findings[0].expected


def kind_of(saw: str) -> str:
    """Return what a finding saw without its numbers and its particulars: `loop in a cell of recall`."""
    return _NUMBER.sub("#", saw.partition(": ")[0])


def grouped(evidence: Evidence, findings: Iterable[Finding]) -> list[Group]:
    """Return findings by level, gate and kind of reason: the worst level first, then what touches most samples."""
    by_kind: dict[tuple[Level, str, str, str], list[Finding]] = {}
    for found in findings:
        by_kind.setdefault((found.level, found.gate, kind_of(found.saw), found.expected), []).append(found)
    groups = [
        Group(level, gate, tuple(members), len(set().union(*(_touched(evidence, one) for one in members))))
        for (level, gate, _, _), members in by_kind.items()
    ]
    order = get_args(Level)
    return sorted(groups, key=lambda group: (order.index(group.level), -group.touched))


def places(evidence: Evidence, group: Group) -> str:
    """Return where a group's findings are, shortened: `9 samples: 4-5, 12-13, 44-45, 53, 60-61`."""
    kinds = Counter(found.where.kind for found in group.findings)
    parts = []
    for kind, count in kinds.items():
        ids = [found.where.id for found in group.findings if found.where.kind == kind]
        if kind == "sample":
            names = stretches(sorted(map(int, ids)))
        else:
            names = [_cell_name(evidence, name) if kind == "cell" else name for name in ids]
        more = len(names) - MOST_PLACES
        said = ", ".join(names[:MOST_PLACES]) + (f" and {more} more" if more > 0 else "")
        parts.append(f"{kind} {said}" if count == 1 else f"{count} {kind}s: {said}")
    return "; ".join(parts)


def stretches(numbers: Sequence[int]) -> list[str]:
    """Return sorted numbers as text, those that follow each other as one: `4-6`, `9`."""
    found: list[list[int]] = []
    for number in numbers:
        if found and number == found[-1][-1] + 1:
            found[-1].append(number)
        else:
            found.append([number])
    return [str(one[0]) if len(one) == 1 else f"{one[0]}-{one[-1]}" for one in found]


def _cell_name(evidence: Evidence, cell_id: str) -> str:
    cell = evidence.cell(cell_id)
    if cell is None:
        return cell_id
    return f"{cell.regime} at {cell.depth} {'raw' if cell.spec_type == 'none' else cell.spec_type}"


def _touched(evidence: Evidence, found: Finding) -> set[int]:
    """Return the indexes of the samples that a finding is about; all of them where it is about the run."""
    kind, name = found.where.kind, found.where.id
    if kind == "sample":
        return {int(name)}
    if kind in ("cell", "contrast"):
        return {sample.index for sample in evidence.samples if sample.cell in name.split(" | ")}
    if kind == "server":
        return {sample.index for sample in evidence.samples if sample.server == name}
    return {sample.index for sample in evidence.samples}
