"""The lines of a log put together: which belong to one request, and what a request's report is."""

from collections.abc import Iterator, Sequence
from functools import lru_cache

from analysis.ingest import derive
from analysis.ingest.endings import texts
from analysis.ingest.lines import Line, Match
from analysis.ingest.lives import Request, Server, Slot
from analysis.ingest.model import Reading, Setup
from analysis.ingest.reports import ordinary_reading, request_reading, statistics_reading
from analysis.ingest.text import clean

MOST_SLOTS = 256
MOST_SERVERS = 64
"""Bounds of what is held while a file is read; what is beyond them is given out early."""

_ANNOUNCED = frozenset({"limits", "clamped", "kind", "checkpoints"})


class Assembler:
    """Takes the lines of one file in order and gives out the reports that they make up."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.servers: dict[str, Server] = {}

    def take(self, line: Line, number: int, before: Line | None = None) -> Sequence[Reading | Setup]:
        """Take a line and return what is complete with it: mostly nothing.

        Args:
            line: a line that could be read.
            number: its number in the file.
            before: a line that names the slot this one belongs to, where its own head does not.
        """
        message, head = line.message, line.head
        if message is None or head is None:
            return ()
        server, clock = self._server(head["origin"]), head["clock"]
        if line.kind in ("load", "build", "build_named"):
            return self._started(server, line.kind, message.groups(), clock)
        if clock is not None:
            server.tick(clock)
        if line.kind in _ANNOUNCED:
            _announce(server, line.kind, message.groups())
            return ()
        server.worked = True
        if line.kind == "statistics":
            return (statistics_reading(self.source, number, server, message.groups()),)
        place = before.head if before is not None and before.head is not None else head
        return self._request(server, line.kind, message.groups(), _slot(place), number)

    def take_ending(self, ending: Match, number: int) -> Reading | None:
        """Return the report of a request whose last lines were read at once.

        None if other lines of that request were seen before, or if its slot's last one is not done: then these too are
        to be taken one by one.

        Args:
            ending: the lines, from `endings`.
            number: the number of the first of them in the file.
        """
        server = self.servers.get("") or self._server(None)
        groups = ending.groups()
        clock, _, _, slot, task = groups[:5]
        key = int(slot), int(task)
        if key in server.requests or key[0] in server.stopped or len(server.requests) >= MOST_SLOTS:
            return None
        if clock is not None:
            server.tick(clock)
            server.clock = groups[-1]
        server.worked, server.last_slot = True, key
        reading = ordinary_reading(self.source, server, key, groups, number)
        if reading is not None:
            return reading
        found, below = texts(ending)
        return request_reading(self.source, server, Request(number, *key, found, number + below if below else 0))

    def finish(self) -> Iterator[Reading | Setup]:
        """Yield what is still open at the end of the file, and what was said of the servers."""
        for server in self.servers.values():
            yield from self._closed(server)

    def _server(self, origin: bytes | None) -> Server:
        name = _origin_name(origin) if origin else ""
        server = self.servers.get(name)
        if server is None and len(self.servers) >= MOST_SERVERS:
            server = next(iter(self.servers.values()))
        if server is None:
            server = self.servers[name] = Server(name)
        return server

    def _started(
        self, server: Server, kind: str, groups: tuple[bytes | None, ...], clock: bytes | None
    ) -> Sequence[Reading | Setup]:
        found: Sequence[Reading | Setup] = ()
        if server.worked:
            found = self._closed(server)
            self.servers[server.origin] = server = Server(server.origin, server.number + 1)
        server.whole = True
        server.clock = clock or b""
        if kind != "load" and groups[0] is not None and groups[1] is not None:
            server.build, server.commit = int(groups[0]), groups[1].decode()
        return found

    def _closed(self, server: Server) -> Sequence[Reading | Setup]:
        found = [reading for key in list(server.requests) for reading in self._given(server, key)]
        return [*found, server.setup()]

    def _request(
        self,
        server: Server,
        kind: str,
        groups: tuple[bytes | None, ...],
        slot: Slot | None,
        number: int,
    ) -> Sequence[Reading]:
        found: Sequence[Reading] = ()
        key = slot if slot is not None else server.last_slot if kind in ("time", "draft") else (None, None)
        server.last_slot = key
        request = server.requests.get(key)
        if request is not None and _begins(kind, groups, request):
            found = self._given(server, key)
            request = None
        if request is None:
            if key[0] in server.stopped:
                found = (*found, *self._given(server, server.stopped[key[0]]))
            if len(server.requests) >= MOST_SLOTS:
                found = (*found, *self._given(server, next(iter(server.requests))))
            request = server.requests[key] = Request(number, *key)
        _add(request, kind, groups, number)
        if kind == "stop":
            if _reported(request):
                return (*found, *self._given(server, key))
            server.stopped[key[0]] = key  # until 2026 what it took was printed after the end
        return found

    def _given(self, server: Server, key: Slot) -> Sequence[Reading]:
        """Let a request go, and return its report if there is one."""
        request = server.requests.pop(key)
        if server.stopped.get(key[0]) == key:
            del server.stopped[key[0]]
        return (request_reading(self.source, server, request),) if _reported(request) else ()


def _reported(request: Request) -> bool:
    return "accepted" in request.texts or "positions" in request.texts or "predicted_ms" in request.texts


@lru_cache(maxsize=MOST_SERVERS)
def _origin_name(origin: bytes) -> str:
    return clean(origin.rstrip(b" |").decode("utf-8", "replace"))


def _slot(head: Match) -> Slot | None:
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


_FILLING = ("prompt_ms", "prompt_n", "prompt_per_s")
_DECODING = ("predicted_ms", "emitted", "predicted_per_s")
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
        fields: tuple[str, ...] = _FILLING if groups[0] == b"prompt " else _DECODING
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
