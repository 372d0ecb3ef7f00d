"""From a pair's name to a run with its samples and what the gates say of them. What notebooks call."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

from analysis.convert.fetch import fetch
from analysis.convert.pairs import load_pair
from analysis.gates import Evidence, Finding, check_all, publishable
from analysis.launch import ServerConfig, read_host_state, read_machine, resolve_engine
from analysis.measure.corpus import Corpus
from analysis.measure.grid import Setting, measure_grid
from analysis.measure.life import now
from analysis.measure.plan import DRAFTED, RAW, Grid, LegPlan, check_context, load_grid, raw_leg
from analysis.measure.provenance import command_line, commit, file_hashes, package_versions
from analysis.records import Cell, Pair, Problem, Regime, Run, Sample, ServerLife
from analysis.records.places import local_dir
from analysis.records.store import RunDir, find_run


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
    def publishable(self) -> tuple[Sample, ...]:
        """Return the samples that no gate refuses."""
        return tuple(publishable(self.samples, self.findings))


def open_study(name: str) -> Study:
    """Return a recorded run, by id or path, with the gates' findings.

    Raises:
        Problem: there is no such run, it is damaged or too new.
    """
    return _study(find_run(name))


def measure_study(
    pair: str,
    *,
    profile: str = "quick",
    depths: Sequence[int] | None = None,
    regimes: Sequence[Regime] | None = None,
    prompts: int | None = None,
    n_predict: int | None = None,
    corpus: str = "",
    server_url: str = "",
    api_key_file: str = "",
    raw: bool = True,
    remeasure: bool = False,
) -> Study:
    """Measure a pair over a grid, resuming what an earlier call left, and return the study.

    Args:
        pair: a name from `data/pairs` or the path of a TOML file.
        profile: a name from `data/grids`.
        depths: tokens in the cache when generation begins; None takes the profile's.
        regimes: kinds of text; None takes the profile's.
        prompts: prompts a cell; None takes the profile's.
        n_predict: tokens to generate a sample; None takes the profile's.
        corpus: a directory with the text to prompt with; empty takes Python's standard library.
        server_url: a server somebody else runs; it is then the only leg.
        api_key_file: a file with the key of that server.
        raw: also measure the target without the drafter, prompt by prompt beside it.
        remeasure: set aside what was measured before.

    Raises:
        Problem: something outside is not as it must be; the message says what to do.
    """
    grid = load_grid(profile, depths=depths, regimes=regimes, prompts=prompts, n_predict=n_predict)
    definition = load_pair(pair)
    text = Corpus.from_directory(Path(corpus)) if corpus else Corpus.standard_library()
    key = _read_key(api_key_file)
    found = resolve_engine(server_url or None, api_key=key)
    setting = Setting(machine=read_machine(), engine=found.engine, found=found, corpus=text, api_key=key)
    if server_url:
        legs, files = [_attached_leg(definition)], ()
    else:
        legs, files = _legs(definition, raw=raw)
    check_context(grid, definition.context)
    directory = _open_run(definition, profile, legs, files, grid, setting, remeasure=remeasure)
    _measure(directory, legs, grid, setting)
    return _study(directory)


def _measure(directory: RunDir, legs: Sequence[LegPlan], grid: Grid, setting: Setting) -> None:
    with directory.writing() as writer:
        cells = [cell for leg in legs for cell in leg.cells(grid, machine=setting.machine, engine=setting.engine)]
        known = dict.fromkeys((*directory.run.cells, *cells))
        writer.update(cells=tuple(known), ended="")
    taken = measure_grid(directory, legs, grid, setting)
    with directory.writing() as writer:
        if taken or not directory.run.ended:
            writer.update(ended=now(), host_after=read_host_state(None))


def _legs(pair: Pair, *, raw: bool) -> tuple[list[LegPlan], tuple[Path, ...]]:
    target = fetch(pair.target)
    drafter = fetch(pair.drafter) if pair.drafter else None
    files = tuple(path for path in (target, drafter) if path)
    hashes = {file: record.sha256 for file, record in zip(files, file_hashes(files), strict=True)}
    config = ServerConfig(
        model=target,
        drafter=drafter,
        spec_type=pair.spec_type,
        n_max=pair.n_max,
        n_min=pair.n_min,
        p_min=pair.p_min,
        context=pair.context,
        threads=psutil.cpu_count(logical=False) or 1,
        extra_args=pair.extra_args,
    )
    plan = LegPlan(
        leg=DRAFTED,
        pair=pair,
        config=config,
        target_sha256=hashes[target],
        drafter_sha256=hashes[drafter] if drafter else "",
    )
    if pair.spec_type == "none":
        return [raw_leg(plan)], files
    return ([raw_leg(plan), plan] if raw else [plan]), files


def _attached_leg(pair: Pair) -> LegPlan:
    config = ServerConfig(
        model=None,
        spec_type=pair.spec_type,
        n_max=pair.n_max,
        n_min=pair.n_min,
        p_min=pair.p_min,
        context=pair.context,
    )
    return LegPlan(leg=RAW if pair.spec_type == "none" else DRAFTED, pair=pair, config=config)


def _open_run(
    pair: Pair,
    profile: str,
    legs: Sequence[LegPlan],
    files: Sequence[Path],
    grid: Grid,
    setting: Setting,
    *,
    remeasure: bool,
) -> RunDir:
    """Open the run that holds this pair, profile, machine, engine and text, or create it."""
    identity = (
        setting.machine.name,
        setting.engine,
        setting.corpus.sha256,
        grid.local_tokens,
        grid.seed,
        [(leg.leg, leg.target_sha256, leg.drafter_sha256) for leg in legs],
    )
    digest = hashlib.sha256(repr(identity).encode()).hexdigest()[:6]
    folder = local_dir() / "runs" / f"{pair.name}-{profile}-{digest}"
    if remeasure and folder.exists():
        folder.rename(folder.with_name(f"{folder.name}.{now().replace(':', '')}"))
    if (folder / "run.json").exists():
        return RunDir.open(folder)
    head, dirty = commit()
    run = Run(
        id=folder.name,
        title=f"{pair.title}, {grid.title}",
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
        host_before=read_host_state(None),
    )
    return RunDir.create(folder, run)


def _study(directory: RunDir) -> Study:
    samples, lives = tuple(directory.samples()), tuple(directory.lives())
    findings = tuple(check_all(Evidence(run=directory.run, samples=samples, lives=lives)))
    return Study(directory=directory, samples=samples, lives=lives, findings=findings)


def _read_key(file: str) -> str:
    if not file:
        return ""
    try:
        return Path(file).read_text(encoding="utf-8").strip()
    except OSError as error:
        raise Problem(f"the API key file {file} cannot be read: {error.strerror}") from None
