"""The outcome of a calibration: coverage tables with where they come from, written to `data/calibration`."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

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
from analysis.measure.calibration.selfduels import GROUND, SelfDuel, self_coverage
from analysis.measure.calibration.synthetic import CELLS, MADE, Made, SyntheticCell
from analysis.measure.life import now
from analysis.measure.study import Study
from analysis.records import Engine, Machine, Problem
from analysis.records.model import Count, Share, parse, plain, record
from analysis.records.places import data_dir
from analysis.records.store import read_lines, write_atomically


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

    `stopping` is over cells of `stopping_requests` requests, made of several of the `cells`. The duels may have been
    fought on another machine than the one that measured the cells.
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
    duels_machine: Machine | None = None


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


@dataclass(frozen=True)
class Journals:
    """What a calibration left: `made` by what, its cells and its duels."""

    made: Made
    cells: tuple[SyntheticCell, ...]
    duels: tuple[SelfDuel, ...] = ()
    duels_machine: Machine | None = None


def read_journals(folder: Path) -> Journals:
    """Return the cells and duels of a `calibration` folder, of this machine or of another.

    Raises:
        Problem: it holds no campaign or several, several journals of duels, or something damaged.
    """
    campaigns = sorted(folder.glob(f"synthetic-*/{CELLS}"))
    fought = sorted(folder.glob("self-duels-*.jsonl"))
    if len(campaigns) != 1 or len(fought) > 1:
        raise Problem(
            f"{folder} holds {len(campaigns)} campaigns and {len(fought)} journals of duels",
            expected="one campaign (synthetic-*) and at most one journal (self-duels-*.jsonl)",
            remedy="name the `calibration` folder of a machine, with the others moved away",
        )
    beside = campaigns[0].with_name(MADE)
    made = parse(Made, _beside(beside), where=str(beside))
    cells = tuple(read_lines(campaigns[0], SyntheticCell))
    if not fought:
        return Journals(made, cells)
    ground = fought[0].with_suffix(GROUND)
    machine = parse(Machine, _beside(ground), where=str(ground))
    return Journals(made, cells, tuple(read_lines(fought[0], SelfDuel)), machine)


def _beside(file: Path) -> Any:
    try:
        return json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise Problem(f"{file} cannot be read: {error}", expected="what `specbook calibrate` left there") from None


def calibration_of(journals: Journals, population: Population | None = None) -> Calibration:
    """Return the coverage tables of what was measured."""
    made, cells, duels = journals.made, journals.cells, journals.duels
    sizes = [size for size in SIZES if size <= made.requests]
    long_cells = merged(cells, STOPPING_REQUESTS)
    return Calibration(
        at=now(),
        machine=made.machine,
        engine=made.engine,
        commit=made.commit,
        dirty=made.dirty,
        cells=len(cells),
        requests=made.requests,
        emitted=made.emitted,
        rates=made.rates,
        coverage=tuple(coverage_of(cells, sizes)),
        stopping=tuple(stopping_of(long_cells)) if long_cells else (),
        population=population,
        duels=self_coverage(duels) if duels else None,
        duels_machine=journals.duels_machine if duels else None,
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
