"""A grid of cells, measured sample by sample: legs interleaved, finished samples never measured again."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import groupby

from tqdm import tqdm

from analysis.launch.engine import FoundEngine
from analysis.measure.continued import before
from analysis.measure.filler import Tokenize
from analysis.measure.life import SLOT_FILLS, Life
from analysis.measure.plan import Grid, LegPlan, balanced_order
from analysis.measure.prompts import Corpus, Prompt, build_prompts
from analysis.measure.timebar import TimeBar
from analysis.measure.together import group_of
from analysis.records import Cell, Engine, Machine, Regime, Sample
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
    `progress` is shown in place of a bar that counts all samples: where time ends the measuring, so many are never
    reached.
    """

    machine: Machine
    engine: Engine
    found: FoundEngine
    corpus: Corpus
    api_key: str = ""
    allowed: Callable[[Task], bool] = always
    progress: TimeBar | None = None


def tasks(legs: Sequence[LegPlan], grid: Grid, setting: Setting) -> list[Task]:
    """Return every sample of the grid in the order of measuring.

    Depths ascend, so that each context extends the one before it in the server's cache. Within a depth, one
    prompt is measured on every leg before the next, in balanced order: drift reaches all legs alike. The order is
    balanced over the prompts of each cell, and over the regimes at each prompt: were it counted through, four regimes
    would give each of them the same order at every prompt. Where requests are made several at once, a group of prompts
    (see `together`) takes the place of one.
    """
    planned = []
    at_once = max(leg.at_once for leg in legs)
    for depth in grid.depths:
        for block, first in enumerate(range(0, grid.prompts, at_once)):
            numbers = range(first, min(first + at_once, grid.prompts))
            for place, regime in enumerate(grid.regimes):
                order = balanced_order(balanced_order(legs, block), place)
                for position, leg in enumerate(order):
                    cell = leg.cell(grid, depth=depth, regime=regime, machine=setting.machine, engine=setting.engine)
                    planned += [Task(leg=leg, cell=cell, prompt_number=n, order=position) for n in numbers]
    return planned


def groups(planned: Iterable[Task]) -> list[list[Task]]:
    """Return the samples that are measured together, each alone where a leg makes one request at a time."""

    def group(task: Task) -> tuple[str, str, int]:
        return task.leg.leg, task.cell.id, task.prompt_number // task.leg.at_once

    return [list(tasks_of) for _, tasks_of in groupby(planned, key=group)]


def is_measured(run: RunDir, places: Iterable[tuple[str, Cell]], prompts: int) -> bool:
    """Return whether a run holds samples of that many prompts for each of some legs and cells."""
    measured = Counter((leg, cell) for leg, cell, _ in done_in(run))
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
        return _measure(writer, planned, done_in(run), grid, setting)


def done_in(run: RunDir) -> set[tuple[str, str, str]]:
    """Return leg, cell and prompt of every sample; a control measures the raw leg's cells."""
    return {(sample.leg, sample.cell, sample.prompt_id) for sample in run.samples()}


def _measure(
    writer: RunWriter, planned: Sequence[Task], done: set[tuple[str, str, str]], grid: Grid, setting: Setting
) -> int:
    taken = 0
    with ExitStack() as stack:
        lives = _start(stack, writer, planned, setting)
        client = next(iter(lives.values())).client
        prompts = prompts_of(grid, setting.corpus, client.tokenize, client.beginning())
        primed: dict[str, int] = {}
        title = f"{planned[0].leg.pair.name} {grid.title}"
        counted = tqdm(total=len(planned), desc=title, unit="sample", disable=setting.progress is not None)
        stack.enter_context(counted)
        for group in groups(planned):
            one = group[0]
            texts = prompts[one.cell.regime]
            missing = [
                task.prompt_number
                for task in group
                if setting.allowed(task) and (one.leg.leg, one.cell.id, texts[task.prompt_number].id) not in done
            ]
            if missing:
                life = lives[one.leg.leg]
                if primed.get(one.leg.leg) != one.cell.depth:
                    life.prime(texts[0].warmup(one.cell.depth), one.cell.fill)
                    primed[one.leg.leg] = one.cell.depth
                for sample in _samples(life, one, texts, missing, grid):
                    writer.append(sample)
            taken += len(missing)
            counted.update(len(group))
            if setting.progress:
                setting.progress.update(len(missing))
    writer.write_steps()
    return taken


def _samples(life: Life, one: Task, texts: Sequence[Prompt], missing: Sequence[int], grid: Grid) -> list[Sample]:
    """Measure what is missing of the group that begins with a task: one sample, or all of them at once."""
    if one.leg.at_once == 1:
        return [life.take(one.cell, texts[one.prompt_number], order=one.order, seed=grid.seed)]
    numbers = group_of(one.prompt_number, one.leg.at_once, grid.prompts)
    slots = [slot for slot, number in enumerate(numbers) if number in missing]
    return life.take_together(one.cell, [texts[n] for n in numbers], slots, order=one.order, seed=grid.seed)


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
                before=before(writer.directory, name) if (leg.found or setting.found).url else None,
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


def prompts_of(grid: Grid, corpus: Corpus, tokenize: Tokenize, bos: Sequence[int]) -> dict[Regime, list[Prompt]]:
    """Return the prompts of a grid by regime, in their order.

    Raises:
        Problem: see `build_prompts`.
    """
    return {
        regime: build_prompts(
            corpus,
            tokenize,
            regime=regime,
            depths=grid.depths,
            count=grid.prompts,
            local_tokens=grid.local_tokens,
            seed=grid.seed,
            bos=bos,
        )
        for regime in grid.regimes
    }
