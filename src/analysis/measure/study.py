"""From a pair's name to a run with its samples and what the gates say of them. What notebooks call."""

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from analysis.gates import Evidence, Finding, check_all, publishable
from analysis.launch import resolve_engine
from analysis.measure.access import ServerAccess, corpus_of
from analysis.measure.attached import attach_to, attached_leg, machine_of
from analysis.measure.grid import Setting, is_measured, measure_grid
from analysis.measure.legs import legs_of
from analysis.measure.life import host_state, now
from analysis.measure.plan import CONTROL, RAW, Grid, LegPlan, check_context, control_leg, load_grid
from analysis.measure.provenance import command_line, commit, file_hashes, package_versions
from analysis.measure.serving import Serving, serving_as_published, serving_of
from analysis.records import Cell, Machine, Pair, Problem, Run, Sample, ServerLife
from analysis.records.places import local_dir
from analysis.records.store import RunDir, find_run, set_aside


@dataclass(frozen=True)
class Study:
    """A run that is being looked at: its samples, its servers' lives and the findings of the gates."""

    directory: RunDir
    samples: tuple[Sample, ...]
    lives: tuple[ServerLife, ...]
    findings: tuple[Finding, ...]

    @property
    def run(self) -> Run:
        """Return the run's provenance."""
        return self.directory.run

    @property
    def cells(self) -> dict[str, Cell]:
        """Return the run's cells by id."""
        return {cell.id: cell for cell in self.run.cells}

    @property
    def calls(self) -> int:
        """Return in how many calls the samples were measured: as many as a leg had servers, or connections to one."""
        servers = {sample.server for sample in self.samples}
        return max(Counter(name.rpartition("-")[0] for name in servers).values(), default=0)

    @property
    def publishable(self) -> tuple[Sample, ...]:
        """Return the samples that no gate refuses."""
        return tuple(publishable(self.samples, self.findings, self.directory.blocks()))

    @property
    def refusals(self) -> dict[int, str]:
        """Return the gate that refuses each sample that may not be published, by index; the first if several do."""
        gates: dict[tuple[str, str], str] = {}
        for found in self.findings:
            if found.level == "refuse":
                gates.setdefault((found.where.kind, found.where.id), found.gate)
        fit = {sample.index for sample in self.publishable}
        refused = {}
        for sample in self.samples:
            if sample.index not in fit:
                own = (("sample", str(sample.index)), ("cell", sample.cell), ("server", sample.server))
                places = (*own, ("run", self.run.id))
                refused[sample.index] = next((gates[place] for place in places if place in gates), "its leg")
        return refused

    def refused_by(self, cell: Cell) -> Counter[str]:
        """Count, by gate, the samples of a cell that may not be published, but those of a negative control."""
        gate_of = self.refusals
        own = (sample for sample in self.samples if sample.cell == cell.id and sample.leg != CONTROL)
        return Counter(gate_of[sample.index] for sample in own if sample.index in gate_of)


def open_study(name: str) -> Study:
    """Return a recorded run, by id or path, with the gates' findings.

    Of a run of several machines, `RUN@MACHINE` returns what one of them measured.

    Raises:
        Problem: there is no such run, it is damaged or too new, or that machine has no part in it.
    """
    run, at, machine = name.rpartition("@")
    return study_on(study_in(find_run(run)), machine) if at and run else study_in(find_run(name))


def machines_of(run: Run) -> tuple[Machine, ...]:
    """Return the machines that a run was measured on."""
    return run.machines or (run.machine,)


def study_on(study: Study, machine: str) -> Study:
    """Return what one machine measured of a run, by the machine's name, as a study of its own.

    Raises:
        Problem: that machine has no part in the run.
    """
    found = {known.name: known for known in machines_of(study.run)}
    if machine not in found:
        raise Problem(f"no machine {machine!r} in {study.run.id}", expected=f"one of {', '.join(found)}")
    if len(found) == 1:
        return study
    cells = tuple(cell for cell in study.run.cells if cell.machine == machine)
    ids = {cell.id for cell in cells}
    run = replace(study.run, machine=found[machine], machines=(), cells=cells)
    return _judged(
        RunDir(study.directory.path, run),
        [sample for sample in study.samples if sample.cell in ids],
        [life for life in study.lives if life.machine in ("", machine)],
    )


def measure_study(
    pair: str,
    *,
    profile: str = "quick",
    serving: str = "",
    size: Mapping[str, object] | None = None,
    corpus: str = "",
    server: ServerAccess | None = None,
    raw: bool = True,
    remeasure: bool = False,
) -> Study:
    """Measure a pair over a grid, resuming what an earlier call left, and return the study.

    Args:
        pair: a name from `data/pairs` or the path of a TOML file.
        profile: a name from `data/grids`.
        serving: a name from `data/profiles`: serve, and prompt, as that published row was; it names its own pair.
        size: fields of `Grid` to change; None as a value keeps the profile's.
        corpus: a directory with the text to prompt with; empty takes Python's standard library.
        server: a server somebody else runs; it is then the only leg.
        raw: also measure the target without the drafter, prompt by prompt beside it. Without it, a finished run of
            both legs over the same grid serves as well: its drafted leg is the same.
        remeasure: set aside what was measured before.

    Raises:
        Problem: something outside is not as it must be; the message says what to do.
    """
    served, grid = sized(pair, profile, serving, size or {})
    plan, files = plan_of(served, serving or profile, grid, server or ServerAccess(), corpus)
    if not raw and not remeasure and (found := finished(wanted(plan, raw=True))):
        return study_in(found)
    return measure_plan(wanted(plan, raw=raw), files, remeasure=remeasure)


def sized(pair: str, profile: str, serving: str, size: Mapping[str, object]) -> tuple[Serving, Grid]:
    """Return how a pair is served and the grid it is measured over; arguments as for `measure_study`.

    Raises:
        Problem: no such pair, profile or published row; or the grid contradicts itself.
    """
    served = serving_as_published(serving) if serving else serving_of(pair)
    return served, load_grid(profile, **(dict(served.size) | dict(size)))


@dataclass(frozen=True)
class Plan:
    """Everything that decides which run a measurement belongs to."""

    pair: Pair
    profile: str
    legs: tuple[LegPlan, ...]
    grid: Grid
    setting: Setting

    @property
    def run_id(self) -> str:
        """Return the name of the run: pair, profile, and a hash of every factor but depth and regime.

        So the cells of one run differ in depth, regime and leg alone, and a grid with other depths resumes it.
        """
        setting, depth = self.setting, self.grid.depths[0]
        cells = [
            leg.cell(self.grid, depth=depth, regime="prose", machine=setting.machine, engine=setting.engine)
            for leg in self.legs
        ]
        identity = (
            setting.engine,
            setting.corpus.sha256,
            self.grid.seed,
            [replace(cell, depth=0) for cell in cells],
        )
        digest = hashlib.sha256(repr(identity).encode()).hexdigest()[:6]
        return f"{self.pair.name}-{self.profile}-{digest}"

    def cells(self) -> list[Cell]:
        """Return every cell; legs that are served alike share theirs."""
        return list(dict.fromkeys(cell for _, cell in self.places()))

    def places(self) -> list[tuple[str, Cell]]:
        """Return every leg's name with each of its cells."""
        setting = self.setting
        return [
            (leg.leg, cell)
            for leg in self.legs
            for cell in leg.cells(self.grid, machine=setting.machine, engine=setting.engine)
        ]


def plan_of(
    served: Serving, profile: str, grid: Grid, access: ServerAccess, corpus: str
) -> tuple[Plan, tuple[Path, ...]]:
    """Return the plan of both legs, or of the only one that a running server can supply; and the files they serve.

    Raises:
        Problem: a file, the engine, the text or the running server is not as it must be.
    """
    files: tuple[Path, ...] = ()
    if access.url:
        found, seen = attach_to(access)
        legs = [attached_leg(served.pair, seen, grid)]
    else:
        check_context(grid, served.pair.context)
        found = resolve_engine()
        legs, files = legs_of(served)
    setting = Setting(machine_of(access), found.engine, found, corpus_of(corpus), found.api_key)
    return Plan(served.pair, profile, tuple(legs), grid, setting), files


def wanted(plan: Plan, *, raw: bool) -> Plan:
    """Return a plan of both legs with the control that its grid asks for; without `raw`, its last leg alone."""
    if not raw:
        return replace(plan, legs=plan.legs[-1:])
    if plan.grid.control and plan.legs[0].leg == RAW and not plan.setting.found.url:
        return replace(plan, legs=(*plan.legs, control_leg(plan.legs[0])))
    return plan


def measure_plan(plan: Plan, files: Sequence[Path], *, remeasure: bool = False) -> Study:
    """Measure what a run still lacks, opening or creating it, and return the study.

    Args:
        plan: what is to be measured.
        files: the model files that take part.
        remeasure: set aside what was measured before.

    Raises:
        Problem: see `measure_study`.
    """
    directory = open_run(plan, files, remeasure=remeasure)
    _measure(directory, plan)
    return study_in(directory)


def _measure(directory: RunDir, plan: Plan) -> None:
    known = tuple(dict.fromkeys((*directory.run.cells, *plan.cells())))
    if known != directory.run.cells:
        with directory.writing() as writer:
            writer.update(cells=known, ended="")
    taken = measure_grid(directory, plan.legs, plan.grid, plan.setting)
    if taken or not directory.run.ended:
        with directory.writing() as writer:
            writer.update(ended=now(), host_after=host_state(plan.setting.found.url))


def finished(plan: Plan) -> RunDir | None:
    """Return the run of this machine that holds every sample of a plan, if there is one."""
    folder = local_dir() / "runs" / plan.run_id
    if not (folder / "run.json").exists():
        return None
    directory = RunDir.open(folder)
    return directory if is_measured(directory, plan.places(), plan.grid.prompts) else None


def open_run(plan: Plan, files: Sequence[Path], *, remeasure: bool) -> RunDir:
    """Open the run that holds this pair, profile, machine, engine and text, or create it."""
    title = f"{plan.pair.title}, {plan.grid.title}"
    return run_named(plan.run_id, title, plan.setting, files, profile=plan.profile, remeasure=remeasure)


def run_named(
    run_id: str, title: str, setting: Setting, files: Sequence[Path], *, profile: str = "", remeasure: bool = False
) -> RunDir:
    """Open the run of this name on this machine, or create it with its provenance.

    Args:
        run_id: the name; it must say all that tells runs apart.
        title: for readers.
        setting: machine, engine and text.
        files: the model files that take part.
        profile: the grid's name.
        remeasure: set aside a run that is there.

    Raises:
        Problem: the run that is there is damaged or too new, or another process is writing it.
    """
    folder = local_dir() / "runs" / run_id
    if remeasure and folder.exists():
        set_aside(folder, now())
    if (folder / "run.json").exists():
        return RunDir.open(folder)
    return RunDir.create(folder, describe_run(run_id, title, setting, files, profile=profile))


def describe_run(run_id: str, title: str, setting: Setting, files: Sequence[Path], *, profile: str = "") -> Run:
    """Return a new run's provenance as of now: machine, engine, files, packages, commit, text."""
    head, dirty = commit()
    return Run(
        id=run_id,
        title=title,
        created=now(),
        profile=profile,
        machine=setting.machine,
        engine=setting.engine,
        files=file_hashes(files),
        packages=package_versions(),
        argv=command_line(),
        commit=head,
        dirty=dirty,
        corpus=setting.corpus.title,
        corpus_sha256=setting.corpus.sha256,
        host_before=host_state(setting.found.url),
    )


def raw_beside_drafted(run: Run) -> list[tuple[str, str]]:
    """Return the ids of the cells that pages set against each other: raw and drafted, at one depth and regime."""
    raw = {_place(cell): cell for cell in run.cells if cell.spec_type == "none"}
    drafted = [cell for cell in run.cells if cell.spec_type != "none"]
    return [(raw[_place(cell)].id, cell.id) for cell in drafted if _place(cell) in raw]


def _place(cell: Cell) -> tuple[str, int, str]:
    return cell.machine, cell.depth, cell.regime


def study_in(directory: RunDir) -> Study:
    """Return the run of a directory with the gates' findings."""
    return _judged(directory, directory.samples(), directory.lives())


def _judged(directory: RunDir, samples: Sequence[Sample], lives: Sequence[ServerLife]) -> Study:
    evidence = Evidence(
        run=directory.run,
        samples=samples,
        lives=lives,
        contrasts=raw_beside_drafted(directory.run),
        blocks=directory.blocks(),
    )
    findings = tuple(check_all(evidence))
    return Study(directory=directory, samples=tuple(samples), lives=tuple(lives), findings=findings)
