"""The outcome of a calibration: coverage tables with where they come from, written to `data/calibration`."""

import json
from collections.abc import Sequence
from pathlib import Path

from analysis.launch import FoundEngine, read_machine
from analysis.measure.calibration.coverage import (
    SIZES,
    STOPPING_REQUESTS,
    Coverage,
    Stopping,
    coverage_of,
    merged,
    stopping_of,
)
from analysis.measure.calibration.population import population_coverage
from analysis.measure.calibration.selfduels import SelfDuel, self_coverage
from analysis.measure.calibration.synthetic import Campaign, SyntheticCell
from analysis.measure.life import now
from analysis.measure.provenance import commit
from analysis.measure.study import Study
from analysis.records import Engine, Machine, Problem
from analysis.records.model import Count, Share, parse, plain, record
from analysis.records.places import data_dir
from analysis.records.store import write_atomically


@record
class Population:
    """Cells drawn from the prompts of one recorded cell, which are taken for all there are."""

    run: str
    pair: str
    regime: str
    depth: Count
    prompts: Count
    replications: Count
    coverage: tuple[Coverage, ...]


@record
class Calibration:
    """What was measured, on what, and how often intervals held the truth. Parts that were not run are empty.

    `stopping` is over cells of `stopping_requests` requests, made of several of the `cells`.
    """

    at: str
    machine: Machine
    engine: Engine
    commit: str
    dirty: bool
    cells: Count
    requests: Count
    emitted: Count
    rates: tuple[tuple[Share, ...], ...]
    coverage: tuple[Coverage, ...] = ()
    stopping: tuple[Stopping, ...] = ()
    stopping_requests: Count = STOPPING_REQUESTS
    population: Population | None = None
    duels: Coverage | None = None


def calibration_file() -> Path:
    """Return the file of the published calibration."""
    return data_dir() / "calibration" / "result.json"


def read_calibration(path: Path | None = None) -> Calibration:
    """Return a calibration; the published one by default.

    Raises:
        Problem: there is none, or it is damaged.
    """
    file = path or calibration_file()
    try:
        return parse(Calibration, json.loads(file.read_text(encoding="utf-8")), where=str(file))
    except FileNotFoundError:
        raise Problem(
            f"no calibration at {file}", expected="one that was written", remedy="run `specbook calibrate --write`"
        ) from None
    except ValueError as error:
        raise Problem(f"{file} cannot be read: {error}") from None


def write_calibration(found: Calibration, path: Path | None = None) -> Path:
    """Write a calibration, by default to where the book reads it, and return the file."""
    file = path or calibration_file()
    file.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(file, json.dumps(plain(found), indent=1) + "\n")
    return file


def calibration_of(
    campaign: Campaign,
    found: FoundEngine,
    cells: Sequence[SyntheticCell],
    duels: Sequence[SelfDuel] = (),
    population: Population | None = None,
) -> Calibration:
    """Return the coverage tables of what was measured."""
    head, dirty = commit()
    sizes = [size for size in SIZES if size <= campaign.requests]
    long_cells = merged(cells, STOPPING_REQUESTS)
    return Calibration(
        at=now(),
        machine=read_machine(),
        engine=found.engine,
        commit=head,
        dirty=dirty,
        cells=len(cells),
        requests=campaign.requests,
        emitted=campaign.emitted,
        rates=campaign.rates,
        coverage=tuple(coverage_of(cells, sizes)),
        stopping=tuple(stopping_of(long_cells)) if long_cells else (),
        population=population,
        duels=self_coverage(duels) if duels else None,
    )


def population_of(study: Study, *, replications: int = 1000) -> Population:
    """Return what drawing cells from the largest drafted cell of a run shows.

    Raises:
        Problem: no cell of the run has a publishable sample with drafts.
    """
    drafted = [cell for cell in study.run.cells if cell.spec_type != "none"]
    by_cell = {cell: [s for s in study.publishable if s.cell == cell.id and any(s.drafted)] for cell in drafted}
    cell = max(by_cell, key=lambda one: len(by_cell[one]), default=None)
    if cell is None or len(by_cell[cell]) < 2 * SIZES[0]:
        raise Problem(f"run {study.run.id} has no drafted cell to draw from", expected="a cell with many prompts")
    samples = by_cell[cell]
    sizes = [size for size in SIZES if 2 * size <= len(samples)]
    return Population(
        run=study.run.id,
        pair=cell.pair,
        regime=cell.regime,
        depth=cell.depth,
        prompts=len(samples),
        replications=replications,
        coverage=tuple(population_coverage(samples, cell.n_max, sizes=sizes, replications=replications)),
    )
