"""What crosses rooms: frozen, validated records with their units.

A number is followed back along them: table -> cell -> sample -> step. Times are milliseconds, sizes bytes,
lengths tokens, moments ISO 8601 in UTC, unless a field says otherwise.
"""

import hashlib
import json
from dataclasses import fields
from typing import Annotated, Any, Literal, Self, TypeVar, cast, dataclass_transform, get_args

from pydantic import ConfigDict, Field, TypeAdapter
from pydantic.dataclasses import dataclass as pydantic_dataclass

from analysis.records.errors import Problem

# History of the run directory's format.
# 1: run.json, samples.jsonl (with compact steps), servers.jsonl, steps.parquet.
SCHEMA = 1

SpecType = Literal[
    "none",
    "ngram-simple",
    "ngram-map-k",
    "ngram-map-k4v",
    "ngram-mod",
    "ngram-cache",
    "draft-simple",
    "draft-eagle3",
    "draft-dflash",
    "draft-dspark",
    "draft-mtp",
]
Regime = Literal["invention", "continuation", "recall", "prose"]
REGIMES: tuple[Regime, ...] = get_args(Regime)
LabelKind = Literal["code", "prose", "recall", "loop", "refusal", "empty", "other"]
# How a sample's context came into the cache: all of it evaluated for this sample, a prefix reused in a living
# slot, or a slot restored from disk (which loses the drafter's context).
Fill = Literal["cold", "reused", "restored"]

Count = Annotated[int, Field(ge=0)]
Positive = Annotated[int, Field(gt=0)]
Duration = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Share = Annotated[float, Field(ge=0, le=1)]
Name = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9._-]*$", max_length=80)]


T = TypeVar("T")


@dataclass_transform(frozen_default=True, kw_only_default=True)
def record(cls: type[T]) -> type[T]:
    """Make a class a frozen dataclass that validates its fields and refuses unknown ones."""
    made = pydantic_dataclass(cls, frozen=True, kw_only=True, config=ConfigDict(extra="forbid"))
    return cast("type[T]", made)


@record
class Source:
    """Where a model file comes from: a member of a wheel, a file of a hub repository, the checkout, or a path.

    `package` is `distribution==version` for wheels; `repo` and `revision` are a hub repository. An empty
    `sha256` means that nobody published one; it is then recorded when the file is first read. An empty `file` or
    `repo` of the hub means that the publication does not name it. `stated_size` is a size as it was published,
    rounded and with its unit, where the exact `size` in bytes is not known.
    """

    kind: Literal["wheel", "hub", "repo", "path"]
    file: str
    package: str = ""
    repo: str = ""
    revision: str = ""
    sha256: Annotated[str, Field(pattern=r"^([0-9a-f]{64})?$")] = ""
    size: Count | None = None
    stated_size: str = ""
    licence: str = ""


@record
class Pair:
    """A target with what drafts for it: a drafter, a draft-free method, or nothing.

    `not_stated` names what the publication a pair was taken from leaves open, as dotted fields.
    """

    name: Name
    title: str
    target: Source
    spec_type: SpecType = "none"
    drafter: Source | None = None
    n_max: Count = 0
    n_min: Count = 0
    p_min: Share = 0.0
    context: Positive = 4096
    flash_attn: Literal["on", "off", "auto"] = "auto"
    extra_args: tuple[str, ...] = ()
    not_stated: tuple[str, ...] = ()
    note: str = ""

    def __post_init__(self) -> None:
        """Refuse a pair whose parts contradict each other."""
        needs_drafter = self.spec_type.startswith("draft-") and self.spec_type != "draft-mtp"
        if needs_drafter and self.drafter is None:
            raise ValueError(f"pair {self.name}: spec_type {self.spec_type} needs a [drafter]")
        if self.spec_type == "none" and (self.drafter is not None or self.n_max):
            raise ValueError(f"pair {self.name}: spec_type none drafts nothing; drop drafter and n_max")


@record
class Profile:
    """How a published row was served, so that an owner of that hardware can rerun it by name.

    `not_stated` names the fields the card leaves open; they hold the engine's defaults. Fields that no flag
    sets (`fill`, `temperature`, `n_predict`, `regime`, `prompt`) say what was asked of the server.
    """

    name: Name
    title: str
    card: Literal["A", "B", ""]
    section: str
    pair: Name
    machine: str
    engine: str
    n_max: Count | None = None
    n_min: Count | None = None
    p_min: Share | None = None
    context: Positive | None = None
    depth: Count | None = None
    kv_k: str = "f16"
    kv_v: str = "f16"
    flash_attn: Literal["on", "off", "auto"] = "auto"
    gpu_layers: int = -1
    drafter_gpu_layers: int = -1
    fill: Fill | None = None
    temperature: Annotated[float, Field(ge=0)] | None = None
    n_predict: Positive | None = None
    regime: Regime | None = None
    prompt: str = ""
    extra_args: tuple[str, ...] = ()
    not_stated: tuple[str, ...] = ()
    note: str = ""


@record
class FileHash:
    """A file that took part in a run; `path` is portable (`$CACHE/...`, `$REPO/...`)."""

    path: str
    sha256: str
    size: Count


@record
class Machine:
    """The hardware of a run, as a reader needs it to place a step cost."""

    name: str
    cpu: str
    cores: Positive
    memory: Count
    os: str
    kernel: str = ""
    devices: tuple[str, ...] = ()


@record
class Engine:
    """A llama-server build. `source` says who built it."""

    source: Literal["bundled", "path", "url"]
    version: str
    build: Count | None = None
    commit: str = ""
    backend: str = ""
    devices: tuple[str, ...] = ()
    path: str = ""


@record
class HostState:
    """What the host was doing at one moment. None where this system does not say."""

    at: str
    load1: float | None = None
    memory_available: Count | None = None
    swap_used: Count | None = None
    swap_in: Count | None = None
    swap_out: Count | None = None
    major_faults: Count | None = None
    frequency_mhz: float | None = None
    governor: str | None = None
    temperature_c: float | None = None
    disk_free: Count | None = None


@record
class Cell:
    """One point of the grid: every factor that may change a measurement. `id` is a hash over all of them."""

    machine: str
    engine: str
    backend: str
    pair: Name
    spec_type: SpecType
    n_max: Count
    n_min: Count = 0
    p_min: Share = 0.0
    depth: Count
    regime: Regime
    local_tokens: Count
    fill: Fill = "reused"
    template: str = "none"
    thinking: bool | None = None
    temperature: Annotated[float, Field(ge=0)] = 0.0
    n_predict: Positive = 192
    kv_k: str = "f16"
    kv_v: str = "f16"
    flash_attn: str = "auto"
    context: Positive = 4096
    batch: Positive = 2048
    ubatch: Positive = 512
    threads: Positive = 1
    parallel: Positive = 1
    target_sha256: str = ""
    drafter_sha256: str = ""

    @property
    def id(self) -> str:
        """Return twelve hexadecimal digits that name this cell."""
        content = json.dumps({f.name: getattr(self, f.name) for f in fields(self)}, sort_keys=True)
        return hashlib.sha256(content.encode()).hexdigest()[:12]

    def factors_that_differ(self, other: Self) -> tuple[str, ...]:
        """Return the names of the factors in which two cells differ, in field order."""
        return tuple(f.name for f in fields(self) if getattr(self, f.name) != getattr(other, f.name))


@record
class Label:
    """What the emitted text is, and what that was read from.

    `share` is the share of the text that the label covers (for recall: the share of the original that was
    reproduced byte for byte before the first difference; for a loop: the share from its beginning on).
    """

    kind: LabelKind
    share: Share
    why: str


@record
class Step:
    """One target evaluation of a sample. `drafted` is 0 where it had no draft to verify."""

    sample: Count
    index: Count
    drafted: Count
    accepted: Count
    ms: Duration


@record
class Sample:
    """One streamed request: one prompt in one cell.

    The three step columns have one entry per target evaluation after the fill, in order. The first emitted
    token comes from the fill, so `emitted == 1 + sum(accepted + 1)` once the last step is trimmed.
    `draft_n` and `draft_n_accepted` are the server's own totals, untrimmed. `blurred` counts evaluations whose own
    draft and duration could not be told apart, `replayed` those that repeat accepted tokens (no draft, 0 ms).
    """

    index: Count
    cell: str
    prompt_id: str
    prompt_sha256: str
    server: str
    leg: str = ""
    leg_order: Count = 0
    seed: int
    started: str
    cache_n: Count
    prompt_n: Count
    prompt_ms: Duration
    ttft_ms: Duration
    predicted_n: Count
    predicted_ms: Duration
    draft_n: Count = 0
    draft_n_accepted: Count = 0
    drafted: tuple[Count, ...]
    accepted: tuple[Count, ...]
    step_ms: tuple[Duration, ...]
    blurred: Count = 0
    replayed: Count = 0
    tokens: tuple[Count, ...]
    text: str
    stop: Literal["limit", "eos", "word", "unknown"] = "unknown"
    label: Label

    def __post_init__(self) -> None:
        """Refuse a sample whose columns contradict each other."""
        if not len(self.drafted) == len(self.accepted) == len(self.step_ms):
            raise ValueError(f"sample {self.index}: the step columns differ in length")
        if any(a > d for a, d in zip(self.accepted, self.drafted, strict=True)):
            raise ValueError(f"sample {self.index}: a step accepted more tokens than it drafted")

    @property
    def emitted(self) -> int:
        """Return the number of emitted tokens."""
        return len(self.tokens)

    @property
    def depth(self) -> int:
        """Return the tokens in the cache when decoding began: reused and evaluated."""
        return self.cache_n + self.prompt_n

    def steps(self) -> tuple[Step, ...]:
        """Return the target evaluations one by one."""
        columns = zip(self.drafted, self.accepted, self.step_ms, strict=True)
        return tuple(
            Step(sample=self.index, index=i, drafted=d, accepted=a, ms=ms) for i, (d, a, ms) in enumerate(columns)
        )


@record
class Counters:
    """A server's own totals over its life (`/metrics`), or the same totals added up from the stream.

    `accepted_per_pos[k]` counts the drafts whose position k + 1 was accepted.
    """

    drafts: Count
    draft_tokens: Count
    accepted_tokens: Count
    accepted_per_pos: tuple[Count, ...] = ()


@record
class ServerLife:
    """One llama-server from start to stop, and what its counters said beside the stream's.

    `memory_loaded` is resident memory after loading, `memory_peak` the highest seen. `metrics` is None where
    the server offers none; then the counters could not be checked.
    """

    id: str
    pair: Name
    argv: tuple[str, ...]
    started: str
    ended: str
    warmups: Count
    memory_loaded: Count | None = None
    memory_peak: Count | None = None
    stream: Counters
    metrics: Counters | None = None
    host_before: HostState
    host_after: HostState


@record
class Run:
    """Where a run's numbers come from. `ended` is empty while it is being measured."""

    id: Name
    title: str
    created: str
    ended: str = ""
    profile: str = ""
    machine: Machine
    engine: Engine
    files: tuple[FileHash, ...] = ()
    packages: dict[str, str] = Field(default_factory=dict)
    argv: tuple[str, ...] = ()
    commit: str = ""
    dirty: bool = False
    corpus: str = ""
    corpus_sha256: str = ""
    cells: tuple[Cell, ...] = ()
    host_before: HostState | None = None
    host_after: HostState | None = None
    schema: int = SCHEMA


def parse(kind: type[T], data: Any, *, where: str) -> T:
    """Return a record read from plain data.

    Args:
        kind: the record's class.
        data: a mapping, as JSON or TOML gives it.
        where: file and place, for the message.

    Raises:
        Problem: a field is missing, unknown or out of range, or the schema is newer than this library's.
    """
    schema = data.get("schema", SCHEMA) if isinstance(data, dict) else SCHEMA
    if isinstance(schema, int) and schema > SCHEMA:
        raise Problem(
            f"{where} has schema {schema}",
            expected=f"at most {SCHEMA}, the newest this version reads",
            remedy="update specbook",
        )
    try:
        return TypeAdapter(kind).validate_python(data, strict=False)
    except ValueError as error:
        raise Problem(f"{where} is not a valid {kind.__name__}: {_first_complaint(error)}") from None


def plain(item: Any) -> Any:
    """Return a record as data that JSON can hold."""
    return TypeAdapter(type(item)).dump_python(item, mode="json")


def _first_complaint(error: ValueError) -> str:
    complaints = getattr(error, "errors", None)
    if complaints is None:
        return str(error)
    first = complaints()[0]
    place = ".".join(str(part) for part in first["loc"])
    return f"{place}: {first['msg']}" if place else str(first["msg"])
