"""The worker's side of a grid that is dealt to several machines.

A bench is a worker's servers, one a leg, alive from one sample to the next. It stays in the memory of the Dask worker
that opened it: the samples are tasks that take it as an argument and return one record each. When whoever deals lets
go of it, or is gone, Dask drops it and its servers stop.

Whatever uses the host's processors (starting a server, filling a context, a sample) happens under the host's lock.
"""

import socket
import weakref
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from distributed import Lock, get_worker

from analysis.launch import read_host_state, read_machine, resolve_engine
from analysis.measure.grid import Task
from analysis.measure.legs import legs_of
from analysis.measure.life import SLOT_FILLS, Life
from analysis.measure.plan import CONTROL, Grid, Leg, LegPlan, control_leg
from analysis.measure.prompts import Prompt
from analysis.measure.provenance import commit
from analysis.measure.serving import Serving
from analysis.records import Engine, HostState, Machine, Problem, Sample, ServerLife


class WorkerReplaced(Exception):
    """Another process works at a worker's address: the one that was asked is gone."""


@dataclass(frozen=True)
class Job:
    """What every worker of a run is asked for, and what it must have: the engine's build, the files, the commit."""

    served: Serving
    grid: Grid
    legs: tuple[Leg, ...]
    engine: Engine
    files: frozenset[str]
    commit: str = ""


@dataclass(frozen=True)
class Seat:
    """What a worker says of itself: how it would serve each leg, and where it runs.

    `host` is the same for all workers that share a kernel, whatever network or container they are in; `process` is
    another after a restart.
    """

    legs: tuple[LegPlan, ...]
    machine: Machine
    engine: Engine
    host: str
    process: str
    state: HostState


@dataclass(frozen=True)
class Taken:
    """One sample, and the life of its server as it then was: of a worker that dies this is what remains."""

    sample: Sample
    life: ServerLife


@dataclass(frozen=True)
class Closed:
    """The lives of a bench, and the first complaint about them."""

    lives: tuple[ServerLife, ...]
    complaint: str = ""


class Lives(list[ServerLife]):
    """The records of lives that ended here, on their way to the run."""

    def append_life(self, life: ServerLife) -> None:
        """Keep a record."""
        self.append(life)


def host_key() -> str:
    """Return what all processes under one kernel have in common, and no others."""
    boot = Path("/proc/sys/kernel/random/boot_id")
    return boot.read_text(encoding="ascii").strip() if boot.exists() else socket.gethostname()


def seat_of(job: Job) -> Seat:
    """Return what this worker is, after bringing the files of the pair here.

    Raises:
        Problem: it has another build of the engine, other files or another commit; or no engine, or not the files.
    """
    with _plainly():
        found = resolve_engine()
        _check_same("llama.cpp", _build(found.engine), _build(job.engine), "set LLAMA_SERVER there to the same build")
        here = commit()[0]
        if here and job.commit:
            _check_same("the checkout", here[:12], job.commit[:12], "bring both to the same commit")
        legs, _ = legs_of(job.served)
        if CONTROL in job.legs:
            legs.append(control_leg(legs[0]))
        legs = [leg for leg in legs if leg.leg in job.legs]
        hashes = {sha for leg in legs for sha in (leg.target_sha256, leg.drafter_sha256) if sha}
        if hashes != job.files:
            raise Problem("the pair's files there are others", expected="the files of the machine that deals")
        return Seat(tuple(legs), read_machine(), found.engine, host_key(), get_worker().id, read_host_state())


class Bench:
    """The servers of one worker."""

    def __init__(self, seat: Seat, grid: Grid, first: int) -> None:
        self._lock = Lock(f"specbook-{seat.host}")
        self._lives: dict[Leg, Life] = {}
        self._primed: dict[Leg, int] = {}
        self._seed = grid.seed
        self._ended = Lives()
        found = resolve_engine()
        slots = grid.fill in SLOT_FILLS
        with self._lock, ExitStack() as starting:
            for number, leg in enumerate(seat.legs, first):
                life = Life(found, leg, self._ended, name=f"{leg.leg}-{number}", slots=slots)
                self._lives[leg.leg] = starting.enter_context(life)
            self._stack = starting.pop_all()
        self._let_go = weakref.finalize(self, self._stack.close)

    def take(self, task: Task, prompt: Prompt) -> Taken:
        """Measure one sample; its context is primed first where the depth is new to its server."""
        leg, depth = task.leg.leg, task.cell.depth
        life = self._lives[leg]
        with self._lock:
            if self._primed.get(leg) != depth:
                life.prime(prompt.warmup(depth), task.cell.fill)
                self._primed[leg] = depth
            sample = life.take(task.cell, prompt, order=task.order, seed=self._seed)
        return Taken(sample, life.record())

    def close(self) -> Closed:
        """Stop the servers and return their lives; counters that disagree become the complaint."""
        self._let_go.detach()
        complaint = ""
        with self._lock:
            try:
                self._stack.close()
            except Problem as problem:
                complaint = str(problem)
        return Closed(tuple(self._ended), complaint)


def open_bench(seat: Seat, grid: Grid, first: int) -> Bench:
    """Start a server a leg; their lives are numbered from `first` on.

    Raises:
        WorkerReplaced: the worker that gave the seat has ended, and this is another at its address.
        Problem: a server does not start.
    """
    if get_worker().id != seat.process:
        raise WorkerReplaced(seat.process)
    with _plainly():
        return Bench(seat, grid, first)


def take(bench: Bench, task: Task, prompt: Prompt) -> Taken:
    """Measure one sample on this worker's bench.

    Raises:
        Problem: see `Life.take`.
    """
    with _plainly():
        return bench.take(task, prompt)


def close_bench(bench: Bench) -> Closed:
    """Stop this worker's servers and return their lives."""
    return bench.close()


@contextmanager
def _plainly() -> Iterator[None]:
    """Let a kind of problem that does not survive the way between processes travel as its message."""
    try:
        yield
    except Problem as problem:
        raise Problem(str(problem)) from None


def _build(engine: Engine) -> str:
    return f"{engine.version} {engine.commit}".strip()


def _check_same(what: str, here: str, there: str, remedy: str) -> None:
    if here != there:
        raise Problem(f"{what} is {here}", expected=f"{there}, as where the run is dealt", remedy=remedy)
