"""A duel: two ways of serving against each other, in blocks of four legs.

A block is `abba` or `baab`, as often one as the other, at random. Its first two legs work on the same prompts, and so
do its last two, on others: no server sees a prompt twice, because a repetition can replay what was drafted before. So
each block holds each prompt on both sides, and both sides at the same mean time. Each leg begins with a request that is
thrown away. Both servers stay alive and one of them idles; where memory does not hold both, each leg starts its own.

A block that is cut off is measured again from its beginning, in the next server's life.
"""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import psutil
from tqdm import tqdm

from analysis.gates.contrast import contrast
from analysis.launch import read_host_state, read_machine, resolve_engine
from analysis.measure.access import corpus_of
from analysis.measure.duel_result import block_ratios
from analysis.measure.factors import read_factor, variant
from analysis.measure.grid import Setting, lives_begun
from analysis.measure.legs import leg_of
from analysis.measure.life import SLOT_FILLS, Life, now
from analysis.measure.plan import Grid, LegPlan, check_context, load_grid, raw_leg
from analysis.measure.prompts import Prompt, build_prompts
from analysis.measure.serving import Serving, serving_of
from analysis.measure.study import run_named, study_in
from analysis.records import Block, Cell, Leg, Problem
from analysis.records.blocks import Contestant
from analysis.records.store import RunDir, RunWriter
from analysis.stats import Rule, block_orders

RAW_NAME = "raw"
"""In the place of a pair: the other side's target without speculation."""

SPARE = 1.25
"""Memory a server takes, as a multiple of its files, below which two of them are taken to fit."""


@dataclass(frozen=True)
class Side:
    """One contestant: how it is served, and the model files that takes."""

    leg: LegPlan
    files: tuple[Path, ...]


@dataclass(frozen=True)
class DuelPlan:
    """Everything that decides which run a duel belongs to, but the number of its blocks.

    The grid has one depth and one regime; its prompts are those of one leg. `restart` gives each leg a server of its
    own. `rule` may end the duel before its last block.
    """

    a: Side
    b: Side
    grid: Grid
    setting: Setting
    restart: bool = False
    rule: Rule | None = None

    def side(self, contestant: str) -> Side:
        """Return one of the two."""
        return self.a if contestant == "a" else self.b

    def cell(self, contestant: str) -> Cell:
        """Return the cell that a contestant measures."""
        return self.side(contestant).leg.cell(
            self.grid,
            depth=self.grid.depths[0],
            regime=self.grid.regimes[0],
            machine=self.setting.machine,
            engine=self.setting.engine,
        )

    @property
    def factor(self) -> str:
        """Return the one factor in which the sides differ, or `nothing`: the duel of a server against itself.

        Raises:
            Problem: they differ in several.
        """
        first, second = self.cell("a"), self.cell("b")
        if not set(first.factors_that_differ(second)) - {"pair"}:
            return "nothing"
        return contrast(first, second).factor

    @property
    def run_id(self) -> str:
        """Return the name of the run: the sides and a hash over everything but the number of blocks."""
        identity = (
            self.setting.engine,
            self.setting.corpus.sha256,
            self.grid.seed,
            self.grid.prompts,
            self.cell("a"),
            self.cell("b"),
            self.restart,
        )
        digest = hashlib.sha256(repr(identity).encode()).hexdigest()[:6]
        return f"duel-{self.a.leg.pair.name[:32]}-{self.b.leg.pair.name[:32]}-{digest}"


def plan_duel(
    a: str,
    b: str,
    *,
    profile: str = "quick",
    size: Mapping[str, object] | None = None,
    changes: tuple[Sequence[str], Sequence[str]] = ((), ()),
    corpus: str = "",
    restart: bool | None = None,
    rule: Rule | None = None,
) -> DuelPlan:
    """Return the plan of a duel.

    Args:
        a: a pair, or `raw` for the other one's target without speculation.
        b: likewise; the ratio is its speed over that of `a`.
        profile: the grid whose sizes hold unless `size` says otherwise; of it the first depth and regime are taken.
        size: fields of `Grid` to change; None as a value keeps the profile's.
        changes: factors to change on either side, as `n_max=2`.
        corpus: a directory with the text to prompt with; empty takes Python's standard library.
        restart: start a server for each leg; None does so where memory does not hold both.
        rule: ends the duel once its interval is narrow enough.

    Raises:
        Problem: the sides differ in more than one factor, or something outside is not as it must be.
    """
    grid = load_grid(profile, **dict(size or {}))
    grid = replace(grid, depths=grid.depths[:1], regimes=grid.regimes[:1])
    side_a, side_b = _sides(a, b, changes)
    for side in (side_a, side_b):
        check_context(grid, side.leg.config.context)
    found = resolve_engine()
    setting = Setting(machine=read_machine(), engine=found.engine, found=found, corpus=corpus_of(corpus))
    alone = not _both_fit(side_a, side_b) if restart is None else restart
    plan = DuelPlan(side_a, side_b, grid, setting, restart=alone, rule=rule)
    if plan.factor == "nothing" and a != b:
        raise Problem(f"{a} and {b} are served alike", expected="sides that differ, or one pair named twice")
    return plan


def measure_duel(plan: DuelPlan, blocks: int, *, again: bool = False) -> RunDir:
    """Fight a duel to its last block, or until its rule ends it; what was fought before counts.

    Args:
        plan: from `plan_duel`.
        blocks: how many blocks at most.
        again: set aside what was measured before.

    Raises:
        Problem: a server died, hung or contradicted itself. Finished blocks are recorded; run again to go on.
    """
    names = f"{plan.a.leg.pair.name} and {plan.b.leg.pair.name}"
    alone = ", a server for each leg" if plan.restart else ""
    title = f"duel of {names}, {plan.grid.title}{alone}"
    files = tuple(dict.fromkeys((*plan.a.files, *plan.b.files)))
    directory = run_named(plan.run_id, title, plan.setting, files, profile=plan.grid.title, remeasure=again)
    cells = tuple(dict.fromkeys((plan.cell("a"), plan.cell("b"))))
    with directory.writing() as writer:
        if directory.run.cells != cells:
            writer.update(cells=cells)
        fought = _fight(writer, plan, blocks)
        if fought or not directory.run.ended:
            writer.write_steps()
            writer.update(ended=now(), host_after=read_host_state(None))
    return directory


def _fight(writer: RunWriter, plan: DuelPlan, blocks: int) -> int:
    orders = block_orders(blocks, plan.grid.seed)
    done = {block.number for block in writer.directory.blocks()}
    missing = [number for number in range(blocks) if number not in done]
    fought = 0
    with ExitStack() as stack:
        ring: Ring | None = None
        for number in tqdm(missing, desc=plan.run_id, unit="block"):
            if _decided(writer, plan):
                break
            if ring is None:
                ring = stack.enter_context(open_ring(plan, writer, blocks))
            legs = [
                ring.leg(side, number, half=place // 2, order=place % 2) for place, side in enumerate(orders[number])
            ]
            writer.append_block(Block(number=number, order=orders[number], legs=tuple(legs)))
            fought += 1
    return fought


def _decided(writer: RunWriter, plan: DuelPlan) -> bool:
    if plan.rule is None:
        return False
    return plan.rule.decide(block_ratios(study_in(writer.directory))).stop


@dataclass(frozen=True)
class Ring:
    """Where a duel is fought: its prompts, and a server for a side, alive already or started for the leg."""

    plan: DuelPlan
    writer: RunWriter
    lives: Mapping[str, Life]
    prompts: Sequence[Prompt]

    def leg(self, contestant: str, number: int, *, half: int, order: int) -> Leg:
        """Measure one leg of a block: its warm-up, then its prompts one after the other."""
        each = self.plan.grid.prompts
        begin = (2 * number + half) * each
        with ExitStack() as stack:
            life = self.lives.get(contestant)
            if life is None:
                life = stack.enter_context(_life(self.plan, self.writer, contestant))
            return self._measured(life, contestant, self.prompts[begin : begin + each], order)

    def _measured(self, life: Life, contestant: str, prompts: Sequence[Prompt], order: int) -> Leg:
        cell = self.plan.cell(contestant)
        # Evaluated again before every leg, so that the first sample does not pay for having idled.
        life.prime(prompts[0].warmup(cell.depth), cell.fill)
        before = life.host()
        taken = [
            self.writer.append(life.take(cell, prompt, order=order, seed=self.plan.grid.seed)).index
            for prompt in prompts
        ]
        side: Contestant = "a" if contestant == "a" else "b"
        return Leg(contestant=side, server=life.name, samples=tuple(taken), host_before=before, host_after=life.host())


@contextmanager
def open_ring(plan: DuelPlan, writer: RunWriter, blocks: int) -> Iterator[Ring]:
    """Start the servers of a duel, unless each leg starts its own, and build its prompts."""
    with ExitStack() as stack:
        lives: dict[str, Life] = {}
        if not plan.restart:
            for ahead, side in enumerate("ab"):
                lives[side] = stack.enter_context(_life(plan, writer, side, ahead=ahead))
        tokenizer = lives.get("a")
        if tokenizer is None:
            with _life(plan, writer, "a") as short:
                prompts = _prompts(plan, short, blocks)
        else:
            prompts = _prompts(plan, tokenizer, blocks)
        yield Ring(plan, writer, lives, prompts)


def _prompts(plan: DuelPlan, life: Life, blocks: int) -> list[Prompt]:
    grid = plan.grid
    return build_prompts(
        plan.setting.corpus,
        life.client.tokenize,
        regime=grid.regimes[0],
        depths=grid.depths,
        count=2 * grid.prompts * blocks,
        local_tokens=grid.local_tokens,
        seed=grid.seed,
        bos=life.client.beginning(),
    )


def _life(plan: DuelPlan, writer: RunWriter, contestant: str, *, ahead: int = 0) -> Life:
    name = f"{contestant}-{lives_begun(writer) + ahead}"
    slots = plan.grid.fill in SLOT_FILLS
    return Life(plan.setting.found, plan.side(contestant).leg, writer, name=name, slots=slots)


def _sides(a: str, b: str, changes: tuple[Sequence[str], Sequence[str]]) -> tuple[Side, Side]:
    if a == b == RAW_NAME:
        raise Problem("raw against raw names no target", expected="a pair on at least one side")
    first, second = (_side(name, own) if name != RAW_NAME else None for name, own in zip((a, b), changes, strict=True))
    first, second = first or _raw(second, changes[0]), second or _raw(first, changes[1])
    return replace(first, leg=replace(first.leg, leg="a")), replace(second, leg=replace(second.leg, leg="b"))


def _side(pair: str, changes: Sequence[str]) -> Side:
    return Side(*leg_of(_changed(serving_of(pair), changes)))


def _raw(drafted: Side | None, changes: Sequence[str]) -> Side:
    if changes:
        raise Problem(f"{', '.join(changes)} for raw", expected="raw as it follows from the other side")
    if drafted is None or drafted.leg.config.spec_type == "none":
        raise Problem("raw against a pair without speculation", expected="a pair that drafts on the other side")
    return Side(raw_leg(drafted.leg), drafted.files[:1])


def _changed(served: Serving, changes: Sequence[str]) -> Serving:
    settings = {}
    for text in changes:
        name, values = read_factor(text)
        if len(values) != 1 or name in settings:
            raise Problem(f"{text!r} on one side of a duel", expected=f"one value of {name}")
        settings[name] = values[0]
    changed = variant(served, settings)
    if changed.served.changes.get("parallel", 1) != 1:
        raise Problem(
            f"{changed.title} on one side of a duel",
            expected="one request at a time",
            remedy="`specbook sweep` makes several at once",
        )
    if changed.size or changed.engine:
        raise Problem(
            f"{changed.title} on one side of a duel",
            expected="a factor of the server",
            remedy="`specbook sweep` varies the others",
        )
    return changed.served


def _both_fit(a: Side, b: Side) -> bool:
    needed = sum(path.stat().st_size for side in (a, b) for path in side.files)
    return bool(SPARE * needed < psutil.virtual_memory().available)
