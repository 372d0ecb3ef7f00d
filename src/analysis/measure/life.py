"""One server from start to stop as a measurement sees it: primed, sampled, checked against its own counters."""

import hashlib
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import fields, replace
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import Protocol, Self

import numpy as np

from analysis.gates.labels import label
from analysis.launch import AnyServer, Client, Completion, Server, ServerFailed, attach, is_local, read_host_state
from analysis.launch.engine import FoundEngine
from analysis.measure.continued import Before
from analysis.measure.plan import LegPlan
from analysis.measure.prompts import Prompt
from analysis.measure.together import ask_together
from analysis.records import Cell, Continued, Counters, HostState, Past, Problem, Sample, ServerLife
from analysis.records.model import Fill, parse
from analysis.records.places import redact_word

SAVED = "filler.bin"
"""The file of a saved slot, in the folder that the server was given for such files."""

SLOT_FILLS = ("cold", "restored")
"""Fills that need a server whose slot may be saved, restored and erased."""

ANY_SLOT = -1
"""Lets the server choose the slot of a request."""


def now() -> str:
    """Return this moment in UTC, ISO 8601, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def host_state(url: str | None, pid: int | None = None) -> HostState:
    """Return what a server's host is doing; nothing is known of one at another address than this machine's."""
    return read_host_state(pid) if url is None or is_local(url) else HostState(at=now())


def request_seed(cell: Cell, prompt_id: str, seed: int) -> int:
    """Return a seed that is the same for the same request and differs between requests (31 bits)."""
    digest = hashlib.sha256(f"{cell.id} {prompt_id} {seed}".encode()).digest()
    return int.from_bytes(digest[:4], "big") >> 1


class Journal(Protocol):
    """What keeps the record of a life: the run's writer, or a worker's list that is on its way to it."""

    def append_life(self, life: ServerLife) -> None:
        """Keep a record."""
        ...


class Life:
    """A context manager around one leg's server; leaving it writes the life's record, also after an error.

    With `slots`, the server may save, restore and erase its slot; the folder for that is gone after it. `before` is
    what a run knows of somebody else's server.
    """

    def __init__(
        self,
        found: FoundEngine,
        leg: LegPlan,
        writer: Journal,
        *,
        name: str,
        api_key: str = "",
        slots: bool = False,
        before: Before | None = None,
    ) -> None:
        self.leg = leg
        self.name = name
        self._writer = writer
        self._url = found.url
        self._folder = TemporaryDirectory(prefix="specbook-slots-") if slots else None
        config = replace(leg.config, slot_save_path=Path(self._folder.name)) if self._folder else leg.config
        self._server: AnyServer = attach(found.url, api_key=api_key) if found.url else Server(found, config)
        self._slots = range(leg.at_once) if leg.at_once > 1 else (ANY_SLOT,)
        self._stream = StreamCounters()
        self._metrics: Counters | None = None
        self._warmups = 0
        self._sampled = False
        self._started = ""
        self._before = before
        self._continued: Continued = ""
        self._past: Past | None = None

    def __enter__(self) -> Self:
        """Start the server and wait until it answers."""
        self._started = now()
        self._server.__enter__()
        try:
            # After loading: the page faults of reading a model are no sign of trouble, those of decoding are.
            self._host_before = host_state(self._url, self._server.pid)
            self._baseline = self.client.metrics()
            if self._url:
                self._past = self.client.past()
                self._continued = self._before.continued(self._past) if self._before else ""
            if self.leg.at_once > 1:
                check_slots(self.client, self.leg.at_once)
        except BaseException:
            self._server.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Write the life's record, then stop the server."""
        try:
            self._writer.append_life(self.record())
        finally:
            self._server.__exit__(kind, error, trace)
            if self._folder:
                self._folder.cleanup()
        if error is None:
            check_counters(self._stream.counters(), self._metrics, self.name)

    @property
    def client(self) -> Client:
        """Return the connection to the server."""
        return self._server.client

    def prime(self, filler: Sequence[int], fill: Fill = "reused") -> None:
        """Evaluate the text that the next samples share; the result is discarded as a warm-up.

        Every slot that is used evaluates it. Where samples are to be filled from a restored slot, the slot is saved.
        """
        for slot in self._slots:
            self.ask(filler, n_predict=2, slot=slot)
            self._warmups += 1
        if not self._sampled:
            # A first request alone may read parts of the program from the disk; no sample waits for them.
            self._host_before = self.host()
        if fill == "restored" and self._folder:
            self.client.slot(0, "save", SAVED)

    def ask(self, tokens: Sequence[int], *, n_predict: int, slot: int = ANY_SLOT) -> Completion:
        """Make a request that is no sample; it counts among the server's own."""
        completion = self.client.complete(tokens, n_predict=n_predict, temperature=0.0, seed=0, id_slot=slot)
        self._count([completion])
        return completion

    def take(self, cell: Cell, prompt: Prompt, *, order: int, seed: int) -> Sample:
        """Measure one sample. Its index is given by the journal.

        Raises:
            Problem: the server died or answered nonsense, or the stream contradicts itself.
        """
        if self._folder and cell.fill in SLOT_FILLS:
            self.client.slot(0, "erase")
            if cell.fill == "restored":
                self.client.slot(0, "restore", SAVED)
        started = now()
        completion = self._request(cell, prompt, seed)
        self._count([completion])
        return self._sample(cell, prompt, completion, order=order, seed=seed, started=started)

    def take_together(
        self, cell: Cell, prompts: Sequence[Prompt], slots: Collection[int], *, order: int, seed: int
    ) -> list[Sample]:
        """Measure samples of prompts that are asked at once, each on the slot of its place; see `together`.

        Args:
            cell: what they have in common.
            prompts: one for each slot of the server.
            slots: those whose samples are wanted, in order; the prompts of the others keep them company.
            order: the leg's place in the order of legs.
            seed: the grid's.

        Raises:
            Problem: the server died or answered nonsense, or a stream contradicts itself. Nothing of the group counts.
        """
        for slot, prompt in enumerate(prompts):
            self.ask(prompt.tokens(cell.depth), n_predict=1, slot=slot)
        started = now()
        wanted, companions = ask_together(
            lambda slot: self._request(cell, prompts[slot], seed, slot), len(prompts), slots
        )
        self._count([*wanted.values(), *companions])
        return [
            self._sample(cell, prompts[slot], completion, order=order, seed=seed, started=started)
            for slot, completion in wanted.items()
        ]

    def _request(self, cell: Cell, prompt: Prompt, seed: int, slot: int = ANY_SLOT) -> Completion:
        return self.client.complete(
            prompt.tokens(cell.depth),
            n_predict=cell.n_predict,
            temperature=cell.temperature,
            seed=request_seed(cell, prompt.id, seed),
            cache_prompt=cell.fill in ("reused", "restored") or (cell.fill == "cold" and self._folder is not None),
            id_slot=slot,
        )

    def _sample(
        self, cell: Cell, prompt: Prompt, completion: Completion, *, order: int, seed: int, started: str
    ) -> Sample:
        self._sampled = True
        labelled = label(
            prompt.regime,
            prompt.stub,
            completion.text,
            prompt.original,
            tokens=completion.tokens,
            ends_with_eos=completion.stop == "eos",
        )
        data = {
            "index": 0,
            "cell": cell.id,
            "prompt_id": prompt.id,
            "prompt_sha256": prompt.sha256(cell.depth),
            "server": self.name,
            "leg": self.leg.leg,
            "leg_order": order,
            "seed": request_seed(cell, prompt.id, seed),
            "started": started,
            "label": labelled,
        }
        return parse(Sample, data | completion.measured(), where=f"what server {self.name} answered")

    def host(self) -> HostState:
        """Return what the host is doing now, with this server's page faults and evictions."""
        return host_state(self._url, self._server.pid)

    def record(self) -> ServerLife:
        """Return what there is to say of this life so far."""
        memory = self._server.memory()
        if self._url:
            with suppress(
                ServerFailed
            ):  # of one that is gone, what it counted at the beginning is the least it counted
                self._past = self.client.past() or self._past
        return ServerLife(
            id=self.name,
            pair=self.leg.pair.name,
            argv=tuple(redact_word(word) for word in self._server.argv),
            started=self._started,
            ended=now(),
            warmups=self._warmups,
            memory_loaded=memory.loaded,
            memory_peak=memory.peak,
            stream=self._stream.counters(),
            metrics=self._metrics,
            host_before=self._host_before,
            host_after=host_state(self._url, self._server.pid),
            past=self._past,
            continued=self._continued,
            said_alike=self.leg.said_alike,
            method=self.leg.method,
        )

    def _count(self, completions: Iterable[Completion]) -> None:
        for completion in completions:
            self._stream.add(completion)
        # Read whenever no request is open: should the next one be cut off, the last reading still matches the stream.
        read = self.client.metrics()
        self._metrics = _since(self._baseline, read) if self._baseline and read and self._stream.certain else None


def check_slots(client: Client, at_once: int) -> None:
    """Refuse a server that cannot decode so many requests at once: it would make some of them wait.

    Raises:
        Problem: it has fewer slots.
    """
    slots = len(client.slots())
    if slots < at_once:
        raise Problem(
            f"the server has {slots} slots for {at_once} requests at once",
            expected="a slot for each",
            remedy="this build or this drafter may support one sequence only; measure with parallel=1",
        )


class StreamCounters:
    """The server's counters, added up again from what it streamed.

    `certain` is False once an unfinished character hid which evaluation drafted what: the stream's counts are then
    a guess, and cannot be held against the server's.
    """

    def __init__(self) -> None:
        self.certain = True
        self._drafts = self._drafted = self._accepted = 0
        self._per_position = np.zeros(0, dtype=np.int64)

    def add(self, completion: Completion) -> None:
        """Add one request, with the accepted tokens of the last step that were not emitted."""
        if completion.draft_n and (completion.blurred or completion.withheld):
            self.certain = False
        drafted = np.asarray(completion.drafted, dtype=np.int64)
        accepted = np.asarray(completion.accepted, dtype=np.int64)
        if len(accepted):
            accepted[-1] += completion.trimmed
        self._drafts += int((drafted > 0).sum())
        self._drafted += completion.draft_n
        self._accepted += completion.draft_n_accepted
        deepest = int(drafted.max(initial=0))
        if deepest > len(self._per_position):
            self._per_position = np.pad(self._per_position, (0, deepest - len(self._per_position)))
        for position in range(deepest):
            self._per_position[position] += int((accepted > position).sum())

    def counters(self) -> Counters:
        """Return the totals so far."""
        return Counters(
            drafts=self._drafts,
            draft_tokens=self._drafted,
            accepted_tokens=self._accepted,
            accepted_per_pos=tuple(int(n) for n in self._per_position),
        )


def _since(before: Counters, after: Counters) -> Counters:
    """Return what was counted between two readings: somebody else's server has a past.

    Raises:
        Problem: a counter fell: another server answers at the address by now, or the same one began anew.
    """
    if any(getattr(after, f.name) < getattr(before, f.name) for f in fields(Counters) if f.name != "accepted_per_pos"):
        raise Problem(
            f"the counters of the server fell, from {before.draft_tokens} drafted tokens to {after.draft_tokens}",
            expected="one server from the first sample to the last",
            remedy="it was restarted: run again to resume",
        )
    padded = before.accepted_per_pos + (0,) * (len(after.accepted_per_pos) - len(before.accepted_per_pos))
    return Counters(
        drafts=after.drafts - before.drafts,
        draft_tokens=after.draft_tokens - before.draft_tokens,
        accepted_tokens=after.accepted_tokens - before.accepted_tokens,
        accepted_per_pos=tuple(a - b for a, b in zip(after.accepted_per_pos, padded, strict=False)),
    )


def check_counters(stream: Counters, metrics: Counters | None, server: str) -> None:
    """Refuse a server's life whose `/metrics` contradict its stream.

    Raises:
        Problem: they disagree; the samples are recorded, and the gates leave them out.
    """
    if metrics is None:
        return
    for name in ("drafts", "draft_tokens", "accepted_tokens", "accepted_per_pos"):
        mine, theirs = getattr(stream, name), getattr(metrics, name)
        if isinstance(mine, tuple):
            longest = max(len(mine), len(theirs))
            mine, theirs = (tuple(t) + (0,) * (longest - len(t)) for t in (mine, theirs))
        if mine != theirs:
            raise Problem(
                f"server {server}: the stream adds up to {name} = {mine}, /metrics says {theirs}",
                expected="equal counters",
                remedy="its acceptance cannot be trusted (a build with a known counter fault?); see `specbook gates`",
            )
