"""What the way a context came into the cache does to acceptance: one set of prompts, every way beside the others.

A target's cache is the same whether its text was evaluated for this sample, reused from the sample before, or restored
from a saved slot. A drafter has a context of its own, which a slot does not save. In a server that was running all the
time it may still hold what the slot lost, so slots are also restored into a server that never saw the text, and whose
drafter holds another one: once up to the text that is shared by all prompts, so that each prompt's own text is
evaluated after the restore, and once with all of it.

That other text is as long as the context. Where it is shorter, the first request after the restore fails in this
engine: the positions of the drafter's context would not be consecutive ("failed to process speculative batch").
"""

import hashlib
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np
from tqdm import tqdm

from analysis.convert.dsv4 import TINY
from analysis.convert.dsv4.tokenizer import ordinary_ids
from analysis.launch import Server, read_host_state, read_machine, resolve_engine
from analysis.measure.corpus import Corpus
from analysis.measure.failures import fresh_folder
from analysis.measure.grid import Setting
from analysis.measure.legs import leg_of
from analysis.measure.life import SLOT_FILLS, Life, now
from analysis.measure.plan import Grid, LegPlan, check_context
from analysis.measure.prompts import Prompt, build_prompts
from analysis.measure.serving import serving_of
from analysis.measure.study import Study, describe_run, open_study
from analysis.records import Cell, Problem
from analysis.records.model import Fill
from analysis.records.places import local_dir
from analysis.records.store import RunDir, RunWriter

GRID = Grid(
    title="ways to fill a context", depths=(512,), regimes=("invention",), prompts=20, n_predict=96, local_tokens=128
)


@dataclass(frozen=True)
class Way:
    """One way for a context to come into the cache.

    Attributes:
        name: short, as it stands in the records (`Sample.leg`).
        title: what happens before a sample.
        fill: as it stands in the cell.
        restores: what another server saved and this one restores before each sample: the shared text, or the whole
            context; empty where it does neither.
    """

    name: str
    title: str
    fill: Fill
    restores: Literal["", "shared", "whole"] = ""


WAYS = (
    Way("reused", "the shared text is reused in the same slot", "reused"),
    Way("cold", "the slot is emptied, and everything evaluated", "cold"),
    Way("uncached", "the prompt cache is forbidden, and everything evaluated", "uncached"),
    Way("restored", "the shared text is restored into the server that saved it", "restored"),
    Way("restored-elsewhere", "the shared text is restored into a server that never saw it", "restored", "shared"),
    Way("restored-whole", "the whole context is restored into a server that never saw it", "restored", "whole"),
)
FIRST = WAYS[0]


def measure_fills(pair: str, *, prompts: int = GRID.prompts, depth: int = GRID.depths[0]) -> Study:
    """Measure a pair's acceptance over the same prompts in every way, record it as one run, and return its study.

    A run that was measured with these settings is opened, not measured again.

    Args:
        pair: one that drafts, by name or path.
        prompts: how many, each in every way.
        depth: tokens of context.

    Raises:
        Problem: the pair drafts nothing, a file or the engine is not as it must be, or a server contradicted itself.
    """
    served = serving_of(pair)
    if served.pair.spec_type == "none":
        raise Problem(f"pair {pair} drafts nothing", expected="a pair that drafts")
    grid = replace(GRID, prompts=prompts, depths=(depth,))
    check_context(grid, served.pair.context)
    found = resolve_engine()
    setting = Setting(machine=read_machine(), engine=found.engine, found=found, corpus=Corpus.standard_library())
    leg, files = leg_of(served)
    identity = (setting.engine, setting.machine, setting.corpus.sha256, grid, leg.target_sha256, leg.drafter_sha256)
    run_id = f"{served.pair.name}-fills-{hashlib.sha256(repr(identity).encode()).hexdigest()[:6]}"
    folder = local_dir() / "runs" / run_id
    if not ((folder / "run.json").exists() and RunDir.open(folder).run.ended):
        title = f"{served.pair.title}, {grid.title}"
        run = describe_run(run_id, title, setting, files, profile="fills")
        _record(RunDir.create(fresh_folder(folder), run), leg, grid, setting)
    return open_study(str(folder))


def _record(directory: RunDir, leg: LegPlan, grid: Grid, setting: Setting) -> None:
    cells = {way.name: _cell(leg, way, grid, setting) for way in WAYS}
    with (
        tempfile.TemporaryDirectory(prefix="specbook-") as folder,
        directory.writing() as writer,
        ExitStack() as stack,
    ):
        writer.update(cells=tuple(dict.fromkeys(cells.values())))
        # Not only those that restore another server's slot: all are told of the folder, and so are served alike.
        plan = replace(leg, config=replace(leg.config, slot_save_path=Path(folder)))
        donor = stack.enter_context(Server(setting.found, plan.config))
        lives = {way.name: stack.enter_context(_life(plan, way, writer, setting)) for way in WAYS}
        texts = _prompts(lives[FIRST.name], grid, setting)
        _prepare(donor, lives, texts[0], grid.depths[0])
        for number, prompt in enumerate(tqdm(texts, desc=directory.run.id, unit="prompt")):
            _save(donor, prompt.tokens(grid.depths[0]), "whole")
            turned = number % len(WAYS)
            for place, way in enumerate((*WAYS[turned:], *WAYS[:turned])):
                life = lives[way.name]
                if way.restores:
                    life.client.slot(0, "restore", _file(way.restores))
                writer.append(life.take(cells[way.name], prompt, order=place, seed=grid.seed))
        writer.update(ended=now(), host_after=read_host_state(None))
        writer.write_steps()


def _cell(leg: LegPlan, way: Way, grid: Grid, setting: Setting) -> Cell:
    wanted = replace(grid, fill=way.fill)
    return leg.cell(
        wanted, depth=grid.depths[0], regime=grid.regimes[0], machine=setting.machine, engine=setting.engine
    )


def _life(plan: LegPlan, way: Way, writer: RunWriter, setting: Setting) -> Life:
    own_slots = way.fill in SLOT_FILLS and not way.restores
    return Life(setting.found, replace(plan, leg=way.name), writer, name=f"{way.name}-0", slots=own_slots)


def _prepare(donor: Server, lives: Mapping[str, Life], prompt: Prompt, depth: int) -> None:
    """Fill and save what the prompts share; a server that shall never have seen it warms up with another text."""
    _save(donor, prompt.filler(depth), "shared")
    other = (prompt.local * -(-depth // len(prompt.local)))[:depth]
    for way in WAYS:
        lives[way.name].prime(other if way.restores else prompt.filler(depth), way.fill)


def _save(donor: Server, tokens: Sequence[int], what: str) -> None:
    donor.client.complete(tokens, n_predict=1, seed=0)
    donor.client.slot(0, "save", _file(what))


def _file(what: str) -> str:
    return f"{what}.bin"


def _prompts(life: Life, grid: Grid, setting: Setting) -> list[Prompt]:
    if life.leg.pair.target.kind == "fixture":
        return _tokens_at_random(grid)
    return build_prompts(
        setting.corpus,
        life.client.tokenize,
        regime=grid.regimes[0],
        depths=grid.depths,
        count=grid.prompts,
        local_tokens=grid.local_tokens,
        bos=life.client.beginning(),
    )


def _tokens_at_random(grid: Grid) -> list[Prompt]:
    """Return prompts for the synthetic pair, which knows no language and goes on by its tables from any token."""
    rng = np.random.default_rng(grid.seed)
    ordinary, depth = ordinary_ids(TINY.vocabulary), grid.depths[0]

    def drawn(count: int) -> tuple[int, ...]:
        return tuple(int(token) for token in rng.choice(ordinary, count))

    shared = drawn(depth - grid.local_tokens)
    return [
        Prompt(
            id=f"random-{number}",
            regime=grid.regimes[0],
            source="tokens at random",
            stub="",
            original="",
            depths=grid.depths,
            local=drawn(grid.local_tokens),
            shared_filler=shared,
        )
        for number in range(grid.prompts)
    ]
