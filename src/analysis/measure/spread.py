"""A grid measured by several machines: dealt to Dask workers, recorded by this process alone.

Workers come and go while a run is measured. One that comes is asked what it is and joins; one that goes, in whatever
way, loses the sample it was measuring: that sample goes to another worker, and the lives of its servers are recorded as
they were after their last samples. The run directory has one writer, here; a sample is recorded when it arrives.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from queue import Empty, SimpleQueue
from time import monotonic
from typing import Any

from distributed import Client, Future
from tqdm import tqdm

from analysis.launch import read_host_state
from analysis.measure.access import ServerAccess
from analysis.measure.bench import Closed, Job, Seat, Taken, close_bench, open_bench, seat_of, take
from analysis.measure.cluster import LOCAL, answer_of, connected, engines_of, first_seats, submit
from analysis.measure.deal import Deal
from analysis.measure.grid import Task, done_in, lives_begun, prompts_of, tasks
from analysis.measure.life import now
from analysis.measure.prompts import Prompt
from analysis.measure.provenance import commit
from analysis.measure.serving import Serving
from analysis.measure.study import Plan, Study, finished, plan_of, run_named, sized, study_in, wanted
from analysis.measure.vocabulary import tokenizer_of
from analysis.records import Engine, Problem, Regime, ServerLife
from analysis.records.store import RunWriter

PATIENCE_S = 60.0
"""How long to wait for a new worker once all have gone; a nanny restarts one within seconds."""


def measure_spread(
    pair: str,
    *,
    scheduler: str = LOCAL,
    workers: int = 1,
    profile: str = "quick",
    size: Mapping[str, object] | None = None,
    corpus: str = "",
    raw: bool = True,
    remeasure: bool = False,
) -> Study:
    """Measure what a run still lacks of a pair's grid on the workers of a Dask scheduler, and return all of it.

    Args:
        pair: as for `measure_study`.
        scheduler: the address of a scheduler, or `local` for one that lasts as long as this call. The run is then the
            one that `measure_study` makes; the name of a run of other machines does not depend on this one.
        workers: how many workers a local scheduler gets. They share one host, so that their run claims no timings.
        profile: as for `measure_study`.
        size: as for `measure_study`.
        corpus: as for `measure_study`; the text is read here, and workers are sent what they need of it.
        raw: as for `measure_study`.
        remeasure: as for `measure_study`.

    Raises:
        Problem: no scheduler there; no worker that declares an engine; a worker with another build, other files or
            another commit, or without this library; a server failed; or no worker is left. What was measured is
            recorded, and the next call goes on there.
    """
    served, grid = sized(pair, profile, "", size or {})
    plan, files = plan_of(served, profile, grid, ServerAccess(), corpus)
    plan = wanted(plan, raw=raw)
    here = scheduler == LOCAL
    if here and not remeasure and (found := finished(plan)):
        return study_in(found)
    vocabulary = tokenizer_of(files[0])
    prompts = prompts_of(grid, plan.setting.corpus, vocabulary, vocabulary.bos)
    job = _job(served, plan)
    with connected(scheduler, workers) as client:
        seats = first_seats(client, job)
        first = next(iter(seats.values()))
        setting = plan.setting if here else replace(plan.setting, machine=first.machine)
        name = plan.run_id if here else _anywhere(plan).run_id
        title = f"{plan.pair.title}, {grid.title}"
        directory = run_named(name, title, setting, files, profile=plan.profile, remeasure=remeasure)
        with directory.writing() as writer:
            if not here and not directory.run.machines:
                writer.update(host_before=first.state)
            Round(client, job, plan, writer, prompts).play(seats)
            if not directory.run.ended:
                writer.update(ended=now(), host_after=read_host_state() if here else None)
    return study_in(directory)


def _job(served: Serving, plan: Plan) -> Job:
    return Job(
        served=served,
        grid=plan.grid,
        legs=tuple(leg.leg for leg in plan.legs),
        engine=plan.setting.engine,
        files=frozenset(sha for leg in plan.legs for sha in (leg.target_sha256, leg.drafter_sha256) if sha),
        commit=commit()[0],
    )


def _anywhere(plan: Plan) -> Plan:
    """Return a plan that is the same on every machine, for the name of a run that any machine may join."""
    engine = plan.setting.engine
    build = Engine(source="path", version=engine.version, build=engine.build, commit=engine.commit)
    machine = replace(plan.setting.machine, name="any")
    legs = tuple(replace(leg, config=replace(leg.config, threads=1)) for leg in plan.legs)
    return replace(plan, legs=legs, setting=replace(plan.setting, machine=machine, engine=build))


@dataclass
class _Worker:
    """A worker that takes part, its servers if they run, and their lives as last heard of."""

    number: int
    host: str
    seat: Seat
    bench: Future | None = None
    lives: dict[str, ServerLife] = field(default_factory=dict)


class Round:
    """One call's dealing: workers by address, what each was last asked, and the run that records the answers."""

    def __init__(
        self, client: Client, job: Job, plan: Plan, writer: RunWriter, prompts: Mapping[Regime, Sequence[Prompt]]
    ) -> None:
        self._client = client
        self._job = job
        self._plan = plan
        self._writer = writer
        self._prompts = prompts
        self._workers: dict[str, _Worker] = {}
        self._asked: dict[str, Future] = {}
        self._answered: SimpleQueue[Future] = SimpleQueue()
        self._unfit: set[str] = set()
        self._hosts: dict[str, str] = {}
        self._joined = 0
        self._next_life = lives_begun(writer)
        self._complaints: list[str] = []
        done = done_in(writer.directory)
        self._deal = Deal(lambda task: (task.leg.leg, task.cell.id, self._prompt(task).id) in done)

    def play(self, seats: Mapping[str, Seat]) -> None:
        """Measure all that is missing, on the workers that are there and on those that come.

        Raises:
            Problem: see `measure_spread`.
        """
        with tqdm(desc=self._plan.grid.title, unit="sample") as self._bar:
            try:
                for address, seat in seats.items():
                    self._join(address, seat)
                self._measure()
                self._close()
            finally:
                for worker in self._workers.values():
                    self._record_lives(worker, tuple(worker.lives.values()))
                self._writer.write_steps()
        if self._complaints:
            raise Problem(self._complaints[0])

    def _measure(self) -> None:
        alone_since = monotonic()
        while self._deal.missing:
            self._look_round()
            self._hand_out()
            if self._asked:
                alone_since = monotonic()
            elif monotonic() - alone_since > PATIENCE_S:
                raise Problem(
                    f"no worker is left for {self._deal.missing} samples",
                    expected="a worker of the same kind of machine as those that have gone",
                    remedy="start one and run again: what was measured is recorded",
                )
            self._hear()

    def _close(self) -> None:
        """Stop the servers and hear how their lives ended; of a worker that goes meanwhile the last word stands."""
        for address, worker in self._workers.items():
            if worker.bench:
                self._ask(address, close_bench, worker.bench)
        while self._asked:
            self._look_round()
            self._hear()

    def _look_round(self) -> None:
        """Let go of workers that have gone, and ask new ones what they are."""
        present = engines_of(self._client)
        for address in (self._workers.keys() | self._asked.keys()) - present:
            self._lose(address)
        if self._deal.missing:
            for address in sorted(present - self._workers.keys() - self._asked.keys() - self._unfit):
                self._ask(address, seat_of, self._job)

    def _hand_out(self) -> None:
        for address, worker in self._workers.items():
            if address in self._asked or (task := self._deal.next(address)) is None:
                continue
            if worker.bench is None:
                legs = len(worker.seat.legs)
                worker.bench = submit(self._client, address, open_bench, worker.seat, self._job.grid, self._next_life)
                self._next_life += legs
            self._ask(address, take, worker.bench, task, self._prompt(task))

    def _ask(self, address: str, function: Callable[..., Any], *arguments: Any) -> None:
        self._asked[address] = future = submit(self._client, address, function, *arguments)
        future.add_done_callback(self._answered.put)

    def _hear(self) -> None:
        """Take one answer, or give the look round its turn after a second without any."""
        try:
            future = self._answered.get(timeout=1.0)
        except Empty:
            return
        address = next((address for address, asked in self._asked.items() if asked is future), None)
        if address is None:
            return  # of a worker that was let go
        try:
            answer = answer_of(address, self._asked.pop(address))
        except Problem as problem:
            if address in self._workers:
                raise
            self._unfit.add(address)  # it came later: the others go on without it
            self._bar.write(f"not taking part: {problem}")
            return
        match answer:
            case Seat() if self._deal.missing:
                self._join(address, answer)
            case Taken():
                self._writer.append(answer.sample)
                self._workers[address].lives[answer.life.id] = answer.life
                self._deal.measured(address)
                self._bar.update()
            case Closed():
                worker = self._workers.pop(address)
                self._record_lives(worker, answer.lives)
                self._complaints += [answer.complaint] if answer.complaint else []
            case _:
                self._lose(address)

    def _join(self, address: str, seat: Seat) -> None:
        run, setting = self._writer.directory.run, self._plan.setting
        twin = next((known for known in run.machines if known.name == seat.machine.name), seat.machine)
        if (twin.cpu, twin.cores) != (seat.machine.cpu, seat.machine.cores):
            raise Problem(
                f"worker {address}: another machine of this run is called {seat.machine.name} too",
                expected="one name for one kind of machine",
                remedy="set SPECBOOK_MACHINE there to a name of its own",
            )
        planned = tasks(seat.legs, self._job.grid, replace(setting, machine=seat.machine, engine=seat.engine))
        cells = tuple(dict.fromkeys((*run.cells, *(task.cell for task in planned))))
        if cells != run.cells or twin not in run.machines:
            self._writer.update(cells=cells, machines=tuple(dict.fromkeys((*run.machines, twin))), ended="")
        self._joined += 1
        host = self._hosts.setdefault(seat.host, f"host-{len(self._hosts) + 1}")
        self._workers[address] = _Worker(self._joined, host, seat)
        self._deal.join(address, planned)
        self._bar.total = self._bar.n + self._deal.missing
        self._bar.refresh()

    def _lose(self, address: str) -> None:
        """Take back what a worker had in hand, and keep what is known of its servers."""
        worker = self._workers.pop(address, None)
        # Else Dask would run it on the next worker at this address.
        for future in (self._asked.pop(address, None), worker.bench if worker else None):
            if future:
                future.cancel()
        if worker:
            self._deal.leave(address)
            self._record_lives(worker, tuple(worker.lives.values()))

    def _record_lives(self, worker: _Worker, lives: Sequence[ServerLife]) -> None:
        for life in lives:
            self._writer.append_life(
                replace(life, worker=f"worker-{worker.number}", host=worker.host, machine=worker.seat.machine.name)
            )

    def _prompt(self, task: Task) -> Prompt:
        return self._prompts[task.cell.regime][task.prompt_number]
