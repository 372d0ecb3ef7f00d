"""Known ways in which speculation goes wrong without a word, re-enacted with the shipped drafter and recorded.

Some are faults of files, made from the sound drafter and served by a real llama-server. Others are faults of an engine
that the bundled one does not have; they are committed in this process, step by step beside the sound way.
"""

import hashlib
import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from tqdm import tqdm

from analysis.convert.broken import permute_rotary, untrained
from analysis.convert.fetch import fetch
from analysis.convert.pairs import load_pair
from analysis.gates.labels import label
from analysis.launch import ServerConfig, read_host_state, read_machine, resolve_engine
from analysis.launch.drafting import Drafter, Fault, Generation, generate
from analysis.launch.inside import Context, Model
from analysis.measure.corpus import Corpus
from analysis.measure.grid import Setting
from analysis.measure.life import Life, now, request_seed
from analysis.measure.plan import Grid, LegPlan
from analysis.measure.prompts import Prompt, build_prompts
from analysis.measure.provenance import file_hashes
from analysis.measure.serving import serving_of
from analysis.measure.study import Study, describe_run, open_study
from analysis.measure.vocabulary import Vocabulary, tokenizer_of
from analysis.records import Cell, Counters, Sample, ServerLife, SpecType
from analysis.records.places import local_dir
from analysis.records.store import RunDir, RunWriter, set_aside

PAIR = "smollm2-dspark"
GRID = Grid(title="failure modes", depths=(256,), regimes=("invention",), prompts=6, n_predict=64, local_tokens=128)
Make = Callable[[Path, Path], object]


@dataclass(frozen=True)
class Mode:
    """One way to go wrong, or the sound way beside it.

    Attributes:
        name: short, as it stands in the records (`Sample.leg`).
        title: what is wrong.
        make: how its drafter is made from the sound one; None takes that.
        spec_type: what the server is told.
        stale: whether the slot is restored over another prompt's.
        fault: what is done wrong in this process; None runs a server.
        beside: the sound mode it is compared with.
    """

    name: str
    title: str
    make: Make | None = None
    spec_type: SpecType = "draft-dspark"
    stale: bool = False
    fault: Fault | None = None
    beside: str = "sound"


MODES = (
    Mode("sound", "nothing (llama-server)"),
    Mode("wrong-type", "run as draft-dflash", spec_type="draft-dflash"),
    Mode("rotary-pairs", "heads reordered from halves to pairs", lambda a, b: permute_rotary(a, b, "to pairs")),
    Mode("rotary-halves", "heads reordered from pairs to halves", lambda a, b: permute_rotary(a, b, "to halves")),
    Mode("untrained", "a drafter of the same shape that learnt nothing", untrained),
    Mode("stale-slot", "a slot restored over another prompt's drafter context", stale=True),
    Mode("sound-inside", "nothing (in process)", fault=Fault(), beside="sound-inside"),
    Mode(
        "stale-noise",
        "placeholders' keys and values left in the cache",
        fault=Fault(keep_noise=True),
        beside="sound-inside",
    ),
    Mode("late", "the target's features one position late", fault=Fault(late=True), beside="sound-inside"),
    Mode("forgotten", "the prompt missing from the drafter's context", fault=Fault(forget=True), beside="sound-inside"),
)


def mode_of(name: str) -> Mode:
    """Return a mode by name.

    Raises:
        KeyError: there is none.
    """
    return {mode.name: mode for mode in MODES}[name]


def measure_failures(*, prompts: int = GRID.prompts, modes: Sequence[Mode] = MODES) -> Study:
    """Re-enact the modes over the same prompts, record them as one run, and return its study.

    A run that was measured with these settings is opened, not measured again.

    Raises:
        Problem: a file or the engine is not as it must be, or a server contradicted itself.
    """
    grid = replace(GRID, prompts=prompts)
    found = resolve_engine()
    setting = Setting(machine=read_machine(), engine=found.engine, found=found, corpus=Corpus.standard_library())
    identity = (setting.engine, setting.machine, setting.corpus.sha256, grid, [mode.name for mode in modes])
    run_id = f"{PAIR}-failures-{hashlib.sha256(repr(identity).encode()).hexdigest()[:6]}"
    folder = local_dir() / "runs" / run_id
    if (folder / "run.json").exists() and RunDir.open(folder).run.ended:
        return open_study(str(folder))
    pair = load_pair(PAIR)
    files = _Files(fetch(pair.target), fetch(pair.drafter or pair.target))
    title = "Failure modes of drafting, re-enacted"
    run = describe_run(run_id, title, setting, (files.target, files.sound), profile="failures")
    _record(RunDir.create(fresh_folder(folder), run), modes, grid, setting, files)
    return open_study(str(folder))


@dataclass(frozen=True)
class _Files:
    """The target, and the drafter as it should be."""

    target: Path
    sound: Path


def _record(directory: RunDir, modes: Sequence[Mode], grid: Grid, setting: Setting, files: _Files) -> None:
    vocabulary = tokenizer_of(files.target)
    texts = build_prompts(
        setting.corpus,
        vocabulary,
        regime=grid.regimes[0],
        depths=grid.depths,
        count=grid.prompts,
        local_tokens=grid.local_tokens,
    )
    with tempfile.TemporaryDirectory(prefix="specbook-") as scratch, directory.writing() as writer:
        for mode in tqdm(modes, desc="failure modes", unit="mode"):
            leg = _leg(mode, files, Path(scratch))
            cell = _cell(leg, mode, grid, setting)
            writer.update(cells=(*directory.run.cells, cell))
            if mode.fault is None:
                _served(writer, leg, mode, cell, texts, setting, Path(scratch))
            else:
                _inside(writer, leg, mode.fault, cell, texts, vocabulary)
        writer.update(ended=now(), host_after=read_host_state(None))
        writer.write_steps()


def fresh_folder(folder: Path) -> Path:
    """Return the folder of a run, with what an interrupted measurement left moved aside."""
    if folder.exists():
        set_aside(folder, now())
    return folder


def _pair_name(mode: Mode) -> str:
    """Return the pair's name in the cell: another file or a fault in process is another pair, a setting is not."""
    return PAIR if mode.make is None and mode.fault is None else f"{PAIR}.{mode.name}"


def _leg(mode: Mode, files: _Files, folder: Path) -> LegPlan:
    """Return how a mode is served, with its drafter made."""
    served = serving_of(PAIR)
    drafter = files.sound
    if mode.make is not None:
        drafter = folder / f"{mode.name}.gguf"
        mode.make(files.sound, drafter)
    target_hash, drafter_hash = (record.sha256 for record in file_hashes((files.target, drafter)))
    return LegPlan(
        leg=mode.name,
        pair=replace(served.pair, name=_pair_name(mode)),
        config=replace(served.config(files.target, drafter), spec_type=mode.spec_type, context=2048),
        target_sha256=target_hash,
        drafter_sha256=drafter_hash,
    )


def _cell(leg: LegPlan, mode: Mode, grid: Grid, setting: Setting) -> Cell:
    cell = leg.cell(grid, depth=grid.depths[0], regime=grid.regimes[0], machine=setting.machine, engine=setting.engine)
    return replace(cell, fill="restored" if mode.stale else "reused" if mode.fault is None else "cold")


def _served(
    writer: RunWriter, leg: LegPlan, mode: Mode, cell: Cell, texts: Sequence[Prompt], setting: Setting, folder: Path
) -> None:
    config: ServerConfig = replace(leg.config, slot_save_path=folder) if mode.stale else leg.config
    with Life(setting.found, replace(leg, config=config), writer, name=f"{mode.name}-0") as life:
        life.prime(texts[0].warmup(cell.depth))
        for number, prompt in enumerate(texts):
            if mode.stale:
                life.ask(prompt.tokens(cell.depth), n_predict=2)
                life.client.slot(0, "save", "slot.bin")
                life.ask(_another(texts[number - 1], cell.depth), n_predict=2)
                life.client.slot(0, "restore", "slot.bin")
            writer.append(life.take(cell, prompt, order=0, seed=0))


def _another(prompt: Prompt, depth: int) -> tuple[int, ...]:
    """Return a context of the same depth that has no token in common with the other prompts' where they stand."""
    return prompt.local + prompt.filler(depth)


def _inside(
    writer: RunWriter, leg: LegPlan, fault: Fault, cell: Cell, texts: Sequence[Prompt], vocabulary: Vocabulary
) -> None:
    """Draft in this process, prompt by prompt, and record it as a server's life without `/metrics`."""
    started, before, stream = now(), read_host_state(None), _Totals()
    drafter_path = leg.config.drafter
    if leg.config.model is None or drafter_path is None:
        raise ValueError(f"leg {leg.leg} has no files")
    with ExitStack() as stack:
        target_model, drafter_model = (stack.enter_context(Model(path)) for path in (leg.config.model, drafter_path))
        size, threads = cell.context, cell.threads
        target = stack.enter_context(Context(target_model, size=size, rollback=cell.n_max, threads=threads))
        beside = stack.enter_context(Context(drafter_model, size=size, target=target, spare=True, threads=threads))
        drafter = Drafter(target, beside)
        warm_up = texts[0].filler(cell.depth)
        generate(target, drafter, warm_up, 2, n_max=cell.n_max, fault=fault)
        for prompt in texts:
            found = generate(target, drafter, prompt.tokens(cell.depth), cell.n_predict, n_max=cell.n_max, fault=fault)
            stream.add(found)
            writer.append(_sample(found, leg, cell, prompt, vocabulary.text(found.tokens)))
    writer.append_life(
        ServerLife(
            id=f"{leg.leg}-0",
            pair=leg.pair.name,
            argv=("in process",),
            started=started,
            ended=now(),
            warmups=1,
            stream=stream.counters(),
            host_before=before,
            host_after=read_host_state(None),
        )
    )


class _Totals:
    """Adds up generations as `/metrics` would."""

    def __init__(self) -> None:
        self._accepted: list[int] = []
        self._drafted: list[int] = []

    def add(self, found: Generation) -> None:
        self._accepted += found.accepted
        self._drafted += found.drafted

    def counters(self) -> Counters:
        longest = max(self._accepted, default=0)
        return Counters(
            drafts=sum(count > 0 for count in self._drafted),
            draft_tokens=sum(self._drafted),
            accepted_tokens=sum(self._accepted),
            accepted_per_pos=tuple(sum(count >= place for count in self._accepted) for place in range(1, longest + 1)),
        )


def _sample(found: Generation, leg: LegPlan, cell: Cell, prompt: Prompt, text: str) -> Sample:
    return Sample(
        index=0,
        cell=cell.id,
        prompt_id=prompt.id,
        prompt_sha256=prompt.sha256(cell.depth),
        server=f"{leg.leg}-0",
        leg=leg.leg,
        seed=request_seed(cell, prompt.id, 0),
        started=now(),
        cache_n=0,
        prompt_n=cell.depth,
        prompt_ms=found.fill_ms,
        ttft_ms=found.fill_ms,
        predicted_n=len(found.tokens),
        predicted_ms=sum(found.step_ms),
        draft_n=sum(found.drafted),
        draft_n_accepted=sum(found.accepted),
        drafted=found.drafted,
        accepted=found.accepted,
        step_ms=found.step_ms,
        tokens=found.tokens,
        text=text,
        stop="limit",
        label=label(prompt.regime, prompt.stub, text, prompt.original, tokens=found.tokens),
    )
