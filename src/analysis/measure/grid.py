"""A grid of cells, measured sample by sample: legs interleaved, finished samples never measured again."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from tqdm import tqdm

from analysis.launch.engine import FoundEngine
from analysis.measure.life import SLOT_FILLS, Life
from analysis.measure.plan import Grid, LegPlan, balanced_order
from analysis.measure.prompts import Corpus, Prompt, build_prompts
from analysis.records import Cell, Engine, Machine
from analysis.records.store import RunDir, RunWriter


@dataclass(frozen=True)
class Task:
    """One sample that is still to be measured."""

    leg: LegPlan
    cell: Cell
    prompt_number: int
    order: int


def always(task: Task) -> bool:
    """Return that a sample may be measured."""
    del task
    return True


@dataclass(frozen=True)
class Setting:
    """What every sample of a run shares: the hardware, the engine and the text.

    `allowed` is asked before every sample, in the order of measuring; one that is not allowed is passed over.
    """

    machine: Machine
    engine: Engine
    found: FoundEngine
    corpus: Corpus
    api_key: str = ""
    allowed: Callable[[Task], bool] = always


def tasks(legs: Sequence[LegPlan], grid: Grid, setting: Setting) -> list[Task]:
    """Return every sample of the grid in the order of measuring.

    Depths ascend, so that each context extends the one before it in the server's cache. Within a depth, one
    prompt is measured on every leg before the next, in balanced order: drift reaches all legs alike. The order is
    balanced over the prompts of each cell, and over the regimes at each prompt: were it counted through, four regimes
    would give each of them the same order at every prompt.
    """
    planned = []
    for depth in grid.depths:
        for number in range(grid.prompts):
            for place, regime in enumerate(grid.regimes):
                order = balanced_order(balanced_order(legs, number), place)
                for position, leg in enumerate(order):
                    cell = leg.cell(grid, depth=depth, regime=regime, machine=setting.machine, engine=setting.engine)
                    planned.append(Task(leg=leg, cell=cell, prompt_number=number, order=position))
    return planned


def is_measured(run: RunDir, places: Iterable[tuple[str, Cell]], prompts: int) -> bool:
    """Return whether a run holds samples of that many prompts for each of some legs and cells."""
    measured = Counter((leg, cell) for leg, cell, _ in _done(run))
    return all(measured[leg, cell.id] >= prompts for leg, cell in places)


def measure_grid(run: RunDir, legs: Sequence[LegPlan], grid: Grid, setting: Setting) -> int:
    """Measure what a run still lacks of a grid; return the number of new samples.

    Raises:
        Problem: a server died, hung or contradicted itself. What was measured is recorded; run again to resume.
    """
    with run.writing() as writer:
        planned = tasks(legs, grid, setting)
        if is_measured(run, [(task.leg.leg, task.cell) for task in planned], grid.prompts):
            return 0
        return _measure(writer, planned, _done(run), grid, setting)


def _done(run: RunDir) -> set[tuple[str, str, str]]:
    """Return leg, cell and prompt of every sample; a control measures the raw leg's cells."""
    return {(sample.leg, sample.cell, sample.prompt_id) for sample in run.samples()}


def _measure(
    writer: RunWriter, planned: Sequence[Task], done: set[tuple[str, str, str]], grid: Grid, setting: Setting
) -> int:
    taken = 0
    with ExitStack() as stack:
        lives = _start(stack, writer, planned, setting)
        prompts = _prompts(grid, setting.corpus, next(iter(lives.values())))
        primed: dict[str, int] = {}
        for task in tqdm(planned, desc=f"{planned[0].leg.pair.name} {grid.title}", unit="sample"):
            prompt = prompts[task.cell.regime][task.prompt_number]
            if not setting.allowed(task) or (task.leg.leg, task.cell.id, prompt.id) in done:
                continue
            life = lives[task.leg.leg]
            if primed.get(task.leg.leg) != task.cell.depth:
                if filler := prompt.filler(task.cell.depth):
                    life.prime(filler, task.cell.fill)
                primed[task.leg.leg] = task.cell.depth
            writer.append(life.take(task.cell, prompt, order=task.order, seed=grid.seed))
            taken += 1
    writer.write_steps()
    return taken


def _start(stack: ExitStack, writer: RunWriter, planned: Sequence[Task], setting: Setting) -> dict[str, Life]:
    """Start one server a leg. All stay alive; while one decodes, the others idle."""
    begun = lives_begun(writer)
    legs = {task.leg.leg: task.leg for task in planned}
    slots = any(task.cell.fill in SLOT_FILLS for task in planned)
    return {
        name: stack.enter_context(
            Life(
                leg.found or setting.found,
                leg,
                writer,
                name=f"{name}-{begun + number}",
                api_key=_key(leg, setting),
                slots=slots,
            )
        )
        for number, (name, leg) in enumerate(legs.items())
    }


def _key(leg: LegPlan, setting: Setting) -> str:
    return leg.found.api_key if leg.found else setting.api_key


def lives_begun(writer: RunWriter) -> int:
    """Return how many lives a run has seen; one that was killed left samples but no record."""
    directory = writer.directory
    names = {life.id for life in directory.lives()} | {sample.server for sample in directory.samples()}
    return 1 + max((int(name.rsplit("-", 1)[-1]) for name in names), default=-1)


def _prompts(grid: Grid, corpus: Corpus, life: Life) -> dict[str, list[Prompt]]:
    bos = life.client.beginning()
    return {
        regime: build_prompts(
            corpus,
            life.client.tokenize,
            regime=regime,
            depths=grid.depths,
            count=grid.prompts,
            local_tokens=grid.local_tokens,
            seed=grid.seed,
            bos=bos,
        )
        for regime in grid.regimes
    }
