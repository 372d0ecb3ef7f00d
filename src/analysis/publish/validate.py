"""Is a recorded run fit to be contributed? Whole, true to its own journal, anonymous, and small enough."""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

import pyarrow as pa
import pyarrow.parquet as pq

from analysis.gates.control import noise_floor
from analysis.gates.prompts import PUBLISHED_PROMPTS
from analysis.measure.plan import DRAFTED, RAW
from analysis.measure.study import Study, machines_of, open_study
from analysis.publish.promote import MOST_BYTES, check_prompts, check_traces
from analysis.records import Problem
from analysis.records.places import data_dir
from analysis.records.store import STEPS_SCHEMA, RunDir, find_run

RUN_FILES = ("run.json", "samples.jsonl", "servers.jsonl", "steps.parquet")
Level = Literal["ok", "note", "bad"]


@dataclass(frozen=True, slots=True)
class Check:
    """What was looked at, what was seen, and whether it keeps the run from being contributed (`bad`)."""

    name: str
    level: Level
    saw: str


def validate_run(name: str) -> list[Check]:
    """Return what every check says of a run, by id or path.

    Raises:
        Problem: there is no such run, or `run.json` cannot be read.
    """
    directory = find_run(name)
    found = [*_files(directory), *_anonymous(directory)]
    try:
        study = open_study(str(directory.path))
    except Problem as problem:
        return [*found, Check("journals", "bad", str(problem))]
    checks: tuple[Callable[[Study], Iterator[Check]], ...] = (
        _journals, _steps, _provenance, _cells, _prompts, _control, _gates,
    )  # fmt: skip
    return found + [one for check in checks for one in check(study)]


def _files(directory: RunDir) -> Iterator[Check]:
    path = directory.path
    if path.name != directory.run.id:
        yield Check("name", "bad", f"the directory {path.name} holds the run {directory.run.id}")
    missing = [name for name in RUN_FILES if not (path / name).is_file()]
    strange = [file.name for file in sorted(path.iterdir()) if file.name not in RUN_FILES and file.name != ".lock"]
    linked = [name for name in RUN_FILES if (path / name).is_symlink()]
    for title, names in (("missing", missing), ("not part of a run", strange), ("a link", linked)):
        if names:
            yield Check("files", "bad", f"{title}: {', '.join(names)}")
    size = sum((path / name).stat().st_size for name in RUN_FILES if (path / name).is_file())
    yield Check("size", "ok" if size <= MOST_BYTES else "bad", f"{size:,} bytes, at most {MOST_BYTES:,}")


def _anonymous(directory: RunDir) -> Iterator[Check]:
    try:
        check_traces(directory.path, committed=directory.path.resolve().parent == (data_dir() / "runs").resolve())
    except Problem as problem:
        yield Check("anonymous", "bad", str(problem))
    else:
        yield Check("anonymous", "ok", "no folder, host, user, address or key of this machine")


def _journals(study: Study) -> Iterator[Check]:
    for file in (study.directory.samples_file, study.directory.servers_file):
        if file.is_file() and (content := file.read_bytes()) and not content.endswith(b"\n"):
            yield Check("journals", "bad", f"{file.name} ends inside a line: resume the run")
            return
    indexes = [sample.index for sample in study.samples]
    unknown = sum(sample.cell not in study.cells for sample in study.samples)
    if indexes != list(range(len(indexes))):
        yield Check("journals", "bad", "the samples are not numbered one after the other")
    elif unknown or not indexes:
        yield Check("journals", "bad", f"{unknown} of {len(indexes)} samples belong to no cell of the run")
    else:
        yield Check("journals", "ok", f"{len(indexes)} samples, {len(study.lives)} servers")


def _steps(study: Study) -> Iterator[Check]:
    try:
        table = pq.read_table(study.directory.path / "steps.parquet")
    except (OSError, pa.ArrowInvalid) as error:
        yield Check("steps", "bad", f"steps.parquet cannot be read: {error}")
        return
    if table.schema.names != STEPS_SCHEMA.names:
        yield Check("steps", "bad", f"columns {', '.join(table.schema.names)}")
        return
    journal = [
        (sample.index, step.index, step.drafted, step.accepted, step.ms)
        for sample in study.samples
        for step in sample.steps()
    ]
    same = list(zip(*(table[name].to_pylist() for name in STEPS_SCHEMA.names), strict=True)) == journal
    yield Check("steps", "ok" if same else "bad", f"{len(journal)} steps" if same else "they are not the journal's")


def _provenance(study: Study) -> Iterator[Check]:
    run = study.run
    gaps = {
        "ended": "bad" if not run.ended else "ok",
        "commit": "note" if not run.commit else "ok",
        "clean checkout": "note" if run.dirty else "ok",
        "engine's commit": "note" if not run.engine.commit else "ok",
        "hashes of the files": "note" if not run.files else "ok",
        "hash of the text": "bad" if not run.corpus_sha256 else "ok",
    }
    for name, level in gaps.items():
        if level != "ok":
            yield Check("provenance", "bad" if level == "bad" else "note", f"without {name}")
    if all(level == "ok" for level in gaps.values()):
        yield Check("provenance", "ok", f"commit {run.commit[:12]}, engine {run.engine.commit}")


def _cells(study: Study) -> Iterator[Check]:
    run = study.run
    names = {machine.name for machine in machines_of(run)}
    machines = {cell.machine for cell in run.cells} - names
    twice = [count for count in Counter(cell.id for cell in run.cells).values() if count > 1]
    if machines or twice:
        saw = f"of another machine: {', '.join(sorted(machines))}" if machines else "one cell stands there twice"
        yield Check("cells", "bad", saw)
    else:
        yield Check("cells", "ok", f"{len(run.cells)} cells of {', '.join(sorted(names))}")


def _prompts(study: Study) -> Iterator[Check]:
    prompts: dict[str, set[str]] = {}
    for sample in study.samples:
        prompts.setdefault(sample.cell, set()).add(sample.prompt_id)
    try:
        check_prompts(study.directory.path, prompts)
    except Problem as problem:
        yield Check("prompts", "bad", str(problem))
    else:
        yield Check("prompts", "ok", f"at least {PUBLISHED_PROMPTS} in every cell that was begun")


def _control(study: Study) -> Iterator[Check]:
    legs = {sample.leg for sample in study.samples}
    floor = noise_floor(study.publishable)
    if floor.n:
        yield Check("control", "ok", f"a second raw server at {floor.format(decimals=3)} of the first's decode rate")
    elif {RAW, DRAFTED} <= legs:
        saw = (
            "no negative control, so that what noise alone does to a ratio is not known; the profile reference has one"
        )
        yield Check("control", "note", saw)


def _gates(study: Study) -> Iterator[Check]:
    levels = Counter(found.level for found in study.findings)
    fit = len(study.publishable)
    said = f"{levels['refuse']} refused, {levels['warn']} warned, {levels['unchecked']} could not be checked"
    level: Level = "bad" if not fit else "note" if levels["refuse"] or levels["warn"] or levels["unchecked"] else "ok"
    yield Check("gates", level, f"{said}; {fit} of {len(study.samples)} samples fit to publish")
