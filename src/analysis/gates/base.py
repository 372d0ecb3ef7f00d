"""What a gate looks at, and what it says."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, Protocol

from analysis.records import Block, Cell, Run, Sample, ServerLife

Level = Literal["refuse", "warn", "unchecked", "pass"]
Subject = Literal["run", "cell", "sample", "server", "contrast", "leg", "timing"]


@dataclass(frozen=True, slots=True)
class Where:
    """What a finding is about.

    The id of a sample is its index; of a contrast, its two cells joined by ` | `; of a leg, its block and its place in
    it, as in `3.1`; of all durations and rates of a run (`timing`), the run's id. Refused timings leave acceptance
    and texts as they are.
    """

    kind: Subject
    id: str

    def __str__(self) -> str:
        """Return `sample 12`, `cell 0f3a...`."""
        return f"{self.kind} {self.id}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What one gate found at one place: what it saw, what it expected, and why that matters.

    `refuse` keeps a number off every page; `warn` travels with it; `unchecked` says that the records do not hold
    the evidence; `pass` says what was looked at and found in order.
    """

    gate: str
    level: Level
    where: Where
    saw: str
    expected: str
    why: str


@dataclass(frozen=True)
class Evidence:
    """The records of one run, indexed as gates need them.

    `contrasts` are pairs of cell ids that a page sets against each other; `blocks` are a duel's.
    """

    run: Run
    samples: Sequence[Sample]
    lives: Sequence[ServerLife] = ()
    contrasts: Sequence[tuple[str, str]] = ()
    blocks: Sequence[Block] = ()

    @cached_property
    def cells(self) -> dict[str, Cell]:
        """Return the run's cells by id."""
        return {cell.id: cell for cell in self.run.cells}

    def cell(self, cell_id: str) -> Cell | None:
        """Return a cell by id; None if the run does not know it."""
        return self.cells.get(cell_id)

    @cached_property
    def placed(self) -> tuple[tuple[Sample, Cell], ...]:
        """Return the samples whose cell the run knows, with it."""
        return tuple((sample, self.cells[sample.cell]) for sample in self.samples if sample.cell in self.cells)

    @cached_property
    def by_cell(self) -> dict[Cell, list[Sample]]:
        """Return the samples of each cell that has any, in order."""
        grouped: dict[Cell, list[Sample]] = {}
        for sample, cell in self.placed:
            grouped.setdefault(cell, []).append(sample)
        return grouped

    @cached_property
    def by_server(self) -> dict[str, list[Sample]]:
        """Return the samples of each server's life, in order."""
        grouped: dict[str, list[Sample]] = {}
        for sample in sorted(self.samples, key=lambda sample: sample.index):
            grouped.setdefault(sample.server, []).append(sample)
        return grouped


class Gate(Protocol):
    """One concern. `symptom` tells what was seen in public when it was not minded; empty where nobody reported it.

    `looks_at` names what the gate judges one by one, so that a pass can say how many it looked at.
    """

    name: str
    why: str
    symptom: str
    expected: str
    looks_at: Subject

    def check(self, evidence: Evidence) -> Iterator[Finding]:
        """Yield what is not in order, and what could not be checked."""
        ...


def finding(gate: Gate, level: Level, kind: Subject, place: object, saw: str) -> Finding:
    """Return a finding of a gate."""
    where = Where(kind, str(place))
    return Finding(gate=gate.name, level=level, where=where, saw=saw, expected=gate.expected, why=gate.why)
