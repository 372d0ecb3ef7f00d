"""What crosses rooms: frozen, validated records with their units.

A number is followed back along them: table -> cell -> sample -> step. Times are milliseconds, sizes bytes,
lengths tokens, moments ISO 8601 in UTC, unless a field says otherwise. What records are made of (`base`) and what
can be measured (`pairs`) is exported here too: who reads or writes a run needs this module only.
"""

import hashlib
import json
from dataclasses import fields
from typing import Annotated, Literal, Self

from pydantic import Field

from analysis.records.base import (
    REGIMES,
    SCHEMA,
    Count,
    Duration,
    Fill,
    LabelKind,
    Name,
    Positive,
    Regime,
    Share,
    SpecType,
    parse,
    plain,
    record,
)
from analysis.records.pairs import Pair, Profile, Source

__all__ = [
    "REGIMES",
    "SCHEMA",
    "Cell",
    "Continued",
    "Count",
    "Counters",
    "Duration",
    "Engine",
    "FileHash",
    "Fill",
    "HostState",
    "Known",
    "Label",
    "LabelKind",
    "Machine",
    "Name",
    "Pair",
    "Past",
    "Positive",
    "Profile",
    "Regime",
    "Run",
    "Sample",
    "ServerLife",
    "Share",
    "Source",
    "SpecType",
    "Step",
    "parse",
    "plain",
    "record",
]


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
    """What the host was doing at one moment. None where this system does not say.

    `gpu_evicted` counts the bytes of a server's GPU memory that its driver has moved out of the device.
    """

    at: str
    load1: float | None = None
    memory_available: Count | None = None
    swap_used: Count | None = None
    swap_in: Count | None = None
    swap_out: Count | None = None
    major_faults: Count | None = None
    gpu_evicted: Count | None = None
    frequency_mhz: float | None = None
    governor: str | None = None
    temperature_c: float | None = None
    disk_free: Count | None = None


@record
class Cell:
    """One point of the grid: every factor that may change a measurement. `id` is a hash over all of them.

    `parallel` is the number of the server's slots. A server of our own is asked on all of them at once; one that
    somebody else runs is asked one request at a time, however many it has.
    """

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
    Where several requests run at once, a step's duration is that of an evaluation that served all of them, and the
    fill (`prompt_n`, `prompt_ms`) is the one token that was not in the cache yet.
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


# How a server that somebody else runs stands to the one that its leg was last measured on: there was none; the same
# process; one that has counted no less since; one that was started again; or it does not tell.
Continued = Literal["", "first", "same", "grown", "restarted", "not told"]
# Who says how a server drafts: it does; who measured; or nobody.
Known = Literal["", "told", "given", "assumed"]


@record
class Past:
    """What a server says of its process so far (`/metrics`). The counts only grow while it lives.

    `began` tells one process from another: digits, the start by a clock of the server's own. Empty where not told.
    """

    began: Annotated[str, Field(pattern=r"^\d*$", max_length=24)] = ""
    prompt_tokens: Count
    predicted_tokens: Count
    decodes: Count


@record
class ServerLife:
    """One llama-server from start to stop, and what its counters said beside the stream's.

    `memory_loaded` is resident memory after loading, `memory_peak` the highest seen. `metrics` is None where
    the server offers none; then the counters could not be checked.

    Where a run was dealt to workers, `worker` and `host` number them within the run and `machine` is the host's name
    as in its cells; else they are empty.

    Of a server that somebody else runs, `past` is what it counted by the end, `continued` how it stands to its leg's
    life before, `said_alike` that who measured said its settings are the same, `method` who says how it drafts.
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
    worker: str = ""
    host: str = ""
    machine: str = ""
    past: Past | None = None
    continued: Continued = ""
    said_alike: bool = False
    method: Known = ""


@record
class Run:
    """Where a run's numbers come from. `ended` is empty while it is being measured.

    `machines` are those of a run that was dealt to workers, `machine` the first of them; else it is empty.
    """

    id: Name
    title: str
    created: str
    ended: str = ""
    profile: str = ""
    machine: Machine
    machines: tuple[Machine, ...] = ()
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
