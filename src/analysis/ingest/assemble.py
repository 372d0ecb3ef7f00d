"""The lines of a log put together: which belong to one request, and what a request's report is."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache

from analysis.ingest import derive
from analysis.ingest.lines import Line, Match
from analysis.ingest.model import MAX_POSITIONS, UNKNOWN, Format, Known, Reading, Setup, exactly
from analysis.ingest.text import clean

MOST_SLOTS = 256
MOST_SERVERS = 64
MOST_STEPS = 1_000_000
"""Bounds of what is held while a file is read; what is beyond them is given out early, or said."""

CLOCK_SLACK = 1.0
"""Seconds by which a log's clock may go back: threads write their lines in turns."""


@dataclass(slots=True)
class Request:
    """What is known so far of the request that a slot works on."""

    line: int
    slot: int | None = None
    task: int | None = None
    texts: dict[str, bytes] = field(default_factory=dict)
    draft_line: int = 0
    drafted_steps: list[int] = field(default_factory=list)
    accepted_steps: list[int] = field(default_factory=list)
    restored: int = 0
    replay: bool = False
    tail_only: bool = True

    def add_step(self, accepted: int, drafted: int, tail: bytes | None) -> None:
        """Add a line that shows one verification step.

        A step can be shown twice, by a line that ends there and by one that goes on with the new length, which comes
        after it and not for the last step. What follows a restored checkpoint repeats the accepted tokens and is no
        step of its own.
        """
        if tail == b", new n_":
            if not self.tail_only:
                return
        elif self.tail_only:
            self.tail_only = False
            self.drafted_steps.clear()
            self.accepted_steps.clear()
        if tail == b" (restore":
            self.restored += 1
            self.replay = True
        elif self.replay:
            self.replay = False
            return
        if len(self.drafted_steps) < MOST_STEPS:
            self.drafted_steps.append(drafted)
            self.accepted_steps.append(accepted)


@dataclass(slots=True)
class Server:
    """A life of a server, as its log shows it."""

    origin: str
    number: int = 1
    clock: float = -1.0
    mixed: int = 0
    whole: bool = False
    build: int | None = None
    commit: str = ""
    spec_types: list[str] = field(default_factory=list)
    limits: dict[str, float] = field(default_factory=dict)
    checkpoints: bool = False
    requests: dict[tuple[int | None, int | None], Request] = field(default_factory=dict)
    last_slot: tuple[int | None, int | None] = (None, None)
    worked: bool = False

    @property
    def name(self) -> str:
        """Return what tells this life apart within its file."""
        return f"{self.origin} {self.number}".strip()

    def setup(self) -> Setup:
        """Return what the log said of the server."""
        whole = {name: int(self.limits[name]) for name in ("n_max", "n_min") if name in self.limits}
        return Setup(
            server=self.name,
            build=self.build,
            commit=self.commit,
            spec_types=tuple(self.spec_types),
            p_min=self.limits.get("p_min"),
            checkpoints=self.checkpoints,
            whole=self.whole,
            mixed=self.mixed,
            n_max=whole.get("n_max"),
            n_min=whole.get("n_min"),
        )


class Assembler:
    """Takes the lines of one file in order and gives out the reports that they make up."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.servers: dict[str, Server] = {}

    def take(self, line: Line, number: int, before: Line | None = None) -> Iterator[Reading | Setup]:
        """Take a line and yield what is complete with it.

        Args:
            line: a line that could be read.
            number: its number in the file.
            before: a line that names the slot this one belongs to, where its own head does not.
        """
        message, head = line.message, line.head
        if message is None or head is None:
            return
        server, clock = self._server(head["origin"]), _seconds(head["clock"])
        if line.kind in ("load", "build", "build_named"):
            yield from self._started(server, line.kind, message.groups(), clock)
            return
        if clock is not None:
            server.mixed += clock < server.clock - CLOCK_SLACK and server.worked
            server.clock = clock
        server.worked = server.worked or line.kind not in ("limits", "clamped", "kind", "checkpoints")
        if line.kind in ("limits", "clamped", "kind", "checkpoints"):
            _announce(server, line.kind, message.groups())
        elif line.kind == "statistics":
            yield statistics_reading(self.source, number, server, message.groups())
        else:
            place = before.head if before is not None and before.head is not None else head
            yield from self._request(server, line.kind, message.groups(), _slot(place), number)

    def finish(self) -> Iterator[Reading | Setup]:
        """Yield what is still open at the end of the file, and what was said of the servers."""
        for server in self.servers.values():
            yield from self._close(server)

    def _server(self, origin: bytes | None) -> Server:
        name = _origin_name(origin)
        if name not in self.servers and len(self.servers) >= MOST_SERVERS:
            name = next(iter(self.servers))
        return self.servers.setdefault(name, Server(name))

    def _started(
        self, server: Server, kind: str, groups: tuple[bytes | None, ...], clock: float | None
    ) -> Iterator[Reading | Setup]:
        if server.worked:
            yield from self._close(server)
            self.servers[server.origin] = server = Server(server.origin, server.number + 1)
        server.whole = True
        server.clock = -1.0 if clock is None else clock
        if kind != "load" and groups[0] is not None and groups[1] is not None:
            server.build, server.commit = int(groups[0]), groups[1].decode()

    def _close(self, server: Server) -> Iterator[Reading | Setup]:
        for request in list(server.requests.values()):
            yield from self._given(server, request)
        server.requests.clear()
        yield server.setup()

    def _request(
        self,
        server: Server,
        kind: str,
        groups: tuple[bytes | None, ...],
        slot: tuple[int | None, int | None] | None,
        number: int,
    ) -> Iterator[Reading | Setup]:
        key = slot if slot is not None else server.last_slot if kind in ("time", "draft") else (None, None)
        server.last_slot = key
        request = server.requests.get(key)
        if request is not None and _begins(kind, groups, request):
            yield from self._given(server, request)
            request = None
        if request is None:
            while len(server.requests) >= MOST_SLOTS:
                oldest = next(iter(server.requests))
                yield from self._given(server, server.requests.pop(oldest))
            request = server.requests[key] = Request(number, *key)
        _add(request, kind, groups, number)
        if kind == "stop":
            yield from self._given(server, server.requests.pop(key))

    def _given(self, server: Server, request: Request) -> Iterator[Reading]:
        if "accepted" in request.texts or "positions" in request.texts or "predicted_ms" in request.texts:
            yield request_reading(self.source, server, request)


@lru_cache(maxsize=MOST_SERVERS)
def _origin_name(origin: bytes | None) -> str:
    return clean((origin or b"").rstrip(b" |").decode("utf-8", "replace"))


def _seconds(clock: bytes | None) -> float | None:
    """Return the seconds since a server's start that a log shows as minutes.seconds.milliseconds.microseconds."""
    if clock is None:
        return None
    minutes, seconds, milli, micro = (int(part) for part in clock.split(b"."))
    return 60 * minutes + seconds + milli / 1e3 + micro / 1e6


def _slot(head: Match) -> tuple[int | None, int | None] | None:
    slot, task = head["slot"], head["task"]
    return None if slot is None else (int(slot), int(task))


def _begins(kind: str, groups: tuple[bytes | None, ...], request: Request) -> bool:
    """Return whether a line belongs to a request after the one that a slot was seen to work on."""
    return (
        (kind == "prompt" and bool(request.texts))
        or (kind == "time" and groups[0] == b"prompt " and "prompt_ms" in request.texts)
        or (kind == "time" and groups[0] != b"prompt " and "predicted_ms" in request.texts)
        or (kind == "draft" and "accepted" in request.texts)
        or (kind == "positions" and "positions" in request.texts and "accepted" not in request.texts)
    )


_FIELDS = {
    "draft": ("rate", "accepted", "drafted", "mean_length", "positions"),
    "positions": ("positions",),
    "prompt": ("depth",),
    "reused": ("cache_n",),
    "stop": ("stopped_at",),
}


def _add(request: Request, kind: str, groups: tuple[bytes | None, ...], number: int) -> None:
    if kind == "step":
        accepted, drafted, tail = groups
        if accepted is not None and drafted is not None:
            request.add_step(int(accepted), int(drafted), tail)
        return
    if kind == "time":
        fields: tuple[str, ...] = ("prompt_ms", "prompt_n") if groups[0] == b"prompt " else ("predicted_ms", "emitted")
        groups = groups[1:]
    elif kind == "reused_older":
        fields, groups = ("cache_n",), (groups[0] or groups[1],)
    else:
        fields = _FIELDS[kind]
    if kind == "draft":
        request.draft_line = number
    for name, text in zip(fields, groups, strict=False):
        if text is not None:
            request.texts[name] = text


def _announce(server: Server, kind: str, groups: tuple[bytes | None, ...]) -> None:
    if kind == "kind" and groups[0] is not None:
        name = groups[0].decode("utf-8", "replace")
        if name not in server.spec_types and len(server.spec_types) < 16:
            server.spec_types.append(name)
    elif kind == "checkpoints":
        server.checkpoints = True
    elif kind == "clamped" and groups[0] is not None:
        server.limits["n_max"] = float(groups[0])
    else:
        for name, text in zip(("n_max", "n_min", "p_min"), groups, strict=False):
            value = None if text is None else derive.number(text)
            if value is not None:
                server.limits[name] = value


def request_reading(source: str, server: Server, request: Request) -> Reading:
    """Return the report of one request."""
    texts = request.texts
    whole: dict[str, int] = {
        name: int(texts[name])
        for name in ("accepted", "drafted", "emitted", "prompt_n", "cache_n", "depth")
        if name in texts
    }
    times = {name: derive.number(texts[name]) for name in ("prompt_ms", "predicted_ms") if name in texts}
    survival, half, wrong = derive.curve(texts.get("positions"))
    mean = derive.number(texts["mean_length"]) if "mean_length" in texts else None
    rate = derive.number(texts["rate"]) if "rate" in texts else None
    n_max = exactly(len(survival)) if survival else _limit(server)
    accepted, drafted = whole.get("accepted"), whole.get("drafted")
    problems = (*wrong, *derive.problems_of(
        drafted=drafted, accepted=accepted, rate=rate, rate_half=derive.half_unit(texts.get("rate", b"0.00000")),
        mean_length=mean, survival=survival, half=half, other=(*whole.values(), *times.values()),
    ))  # fmt: skip
    steps = UNKNOWN if problems else _steps(request, accepted, drafted, mean, survival, half, n_max)
    if not problems and mean is not None and accepted and steps == UNKNOWN:
        problems = (f"a mean length of {mean:g} that no number of steps gives",)
    whole_steps = _completed(request, accepted, drafted, steps)
    counts = derive.counts_of(survival, steps.value, half) if steps.value and survival else ()
    if whole_steps and not counts and not problems:
        counts = survivors(request.accepted_steps, max(request.drafted_steps, default=0))
        survival = survival or tuple(count / len(request.accepted_steps) for count in counts)
    return Reading(
        source=source, line=request.draft_line or request.line, format="llama-server request", scope="request",
        server=server.name, slot=request.slot, task=request.task,
        spec_type=server.spec_types[0] if len(server.spec_types) == 1 else "",
        drafted=drafted, accepted=accepted, rate=rate, steps=steps, n_max=n_max, mean_length=mean,
        survival=survival, survival_counts=counts,
        step_drafted=tuple(request.drafted_steps) if whole_steps else (),
        step_accepted=tuple(request.accepted_steps) if whole_steps else (),
        restored=request.restored, emitted=whole.get("emitted"), prompt_n=whole.get("prompt_n"),
        cache_n=whole.get("cache_n"), depth=_depth(whole), prompt_ms=times.get("prompt_ms"),
        predicted_ms=times.get("predicted_ms"), problems=problems,
    )  # fmt: skip


def survivors(accepted: list[int], positions: int) -> tuple[int, ...]:
    """Return how many steps accepted at least 1, 2, .. tokens."""
    counts = [0] * (min(positions, MAX_POSITIONS) + 1)
    for count in accepted:
        counts[min(count, len(counts) - 1)] += 1
    running, out = 0, []
    for count in reversed(counts[1:]):
        running += count
        out.append(running)
    return tuple(reversed(out))


def statistics_reading(source: str, number: int, server: Server, groups: tuple[bytes | None, ...]) -> Reading:
    """Return what an implementation of speculation says of all that it did so far."""
    kind, calls, _, accepts, drafts, _, generated, accepted, mean, positions = groups
    survival, half, wrong = derive.curve(positions)
    tokens, taken = int(generated or 0), int(accepted or 0)
    length = None if mean is None else derive.number(mean)
    problems = (*wrong, *derive.problems_of(
        drafted=tokens, accepted=taken, mean_length=length, survival=survival, half=half,
        other=(int(calls or 0), int(drafts or 0)),
    ))  # fmt: skip
    steps = UNKNOWN if accepts is None or problems else exactly(int(accepts))
    known = steps.value or 0
    name = (kind or b"").decode("utf-8", "replace")
    made: Format = "llama-server statistics"
    return Reading(
        source=source, line=number, format=made, scope="cumulative", server=server.name, spec_type=name,
        drafted=tokens, accepted=taken, steps=steps, mean_length=length, survival=survival,
        survival_counts=derive.counts_of(survival, known, half) if known else (), problems=problems,
    )  # fmt: skip


def _completed(request: Request, accepted: int | None, drafted: int | None, steps: Known) -> bool:
    """Return whether all steps of a request are there; the last is added where the totals leave just one.

    The line of a step that goes on with the new length is not written for the step in which a reply ends.
    """
    seen = len(request.drafted_steps)
    if not seen or not request.tail_only or accepted is None or drafted is None:
        return bool(seen) and not request.tail_only
    last_drafted, last_accepted = drafted - sum(request.drafted_steps), accepted - sum(request.accepted_steps)
    if seen + 1 == steps.value and 0 <= last_accepted <= last_drafted and last_drafted > 0:
        request.drafted_steps.append(last_drafted)
        request.accepted_steps.append(last_accepted)
        return True
    return seen == steps.value and last_drafted == last_accepted == 0


def _limit(server: Server) -> Known:
    return exactly(int(server.limits["n_max"])) if "n_max" in server.limits else UNKNOWN


def _depth(whole: dict[str, int]) -> int | None:
    if "depth" in whole:
        return whole["depth"]
    return whole["cache_n"] + whole["prompt_n"] if {"cache_n", "prompt_n"} <= whole.keys() else None


def _steps(
    request: Request,
    accepted: int | None,
    drafted: int | None,
    mean: float | None,
    survival: tuple[float, ...],
    half: float,
    n_max: Known,
) -> Known:
    if request.drafted_steps and not request.tail_only and sum(request.drafted_steps) == drafted:
        return exactly(len(request.drafted_steps), "counted")
    length = None if mean is None else (mean, derive.half_unit(request.texts["mean_length"]))
    return derive.steps_of(accepted, drafted, mean_length=length, survival=survival, half=half, n_max=n_max.value)
