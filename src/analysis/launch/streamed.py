"""One request whose answer streams: what comes is only kept while the server decodes, and read as HTTP afterwards.

A client that wakes for every message and reads it takes a core from the server that decodes the next, which is why
these requests do not go through httpx as all others do. `benchmarks/stream.py` measures what is left.
"""

import socket
import ssl
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import h11
import httpx

HELD = 1 << 20
"""Bytes that are kept unread at most; the answer to a usual request has fewer."""

PAUSE_S = 0.05
"""Between two looks at what came, once the first message is there: only that one's moment is measured."""

_LOOK = 1 << 18  # bytes that are taken at once at most
_FIRST = b"data: "
_END = b"0\r\n\r\n"

Piece = tuple[float, bytes]


def streamed_lines(request: httpx.Request, *, connect_s: float, read_s: float) -> Iterator[tuple[float, str]]:
    """Send a request on a connection of its own; yield the lines of its answer with the moments their ends came.

    Moments are seconds of `time.perf_counter`, true for the first message and late by up to `PAUSE_S` for later ones.
    Lines come once the server has sent all of them, or when `HELD` bytes wait. The unfinished line of an answer that
    broke off is left out.

    Args:
        request: what to send, as `httpx.Client.build_request` makes it.
        connect_s: seconds to wait for a connection.
        read_s: seconds to wait for the next byte.

    Raises:
        httpx.HTTPStatusError: the answer's status is not 200; it carries the whole answer.
        httpx.TransportError: nobody answers, or the answer is silent for too long, is no HTTP or breaks off.
    """
    with _connected(request, connect_s) as connection:
        connection.settimeout(read_s)
        parser = h11.Connection(h11.CLIENT)
        _send(connection, parser, request)
        yield from _lines(_body(_batches(connection), parser, request))


@contextmanager
def _connected(request: httpx.Request, connect_s: float) -> Iterator[socket.socket]:
    secure = request.url.scheme == "https"
    host = request.url.raw_host.decode("ascii")
    try:
        plain = socket.create_connection((host, request.url.port or (443 if secure else 80)), connect_s)
    except (OSError, UnicodeError, OverflowError) as error:
        raise httpx.ConnectError(str(error)) from None
    with plain:
        try:
            plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            context = httpx.create_ssl_context(trust_env=False) if secure else None
            connection = context.wrap_socket(plain, server_hostname=host) if context else plain
        except OSError as error:
            raise httpx.ConnectError(str(error)) from None
        with connection:
            yield connection


def _send(connection: socket.socket, parser: h11.Connection, request: httpx.Request) -> None:
    # An answer in a connection of its own ends with it, and one that is not packed can be looked through for its end.
    own = {b"connection": b"close", b"accept-encoding": b"identity"}
    headers = [(name, own.get(name.lower(), value)) for name, value in request.headers.raw]
    head = h11.Request(method=request.method, target=request.url.raw_path, headers=headers)
    parts = (head, h11.Data(data=request.content), h11.EndOfMessage())
    try:
        connection.sendall(b"".join(parser.send(part) or b"" for part in parts))
    except OSError as error:
        raise httpx.WriteError(str(error)) from None


def _body(batches: Iterable[list[Piece]], parser: h11.Connection, request: httpx.Request) -> Iterator[Piece]:
    """Yield the pieces of an answer's body, each with the moment it came."""
    status = 200
    refusal: list[bytes] = []
    for at, event in _events(batches, parser):
        if isinstance(event, h11.Response):
            status = event.status_code
        elif isinstance(event, h11.Data) and status == 200:
            yield at, bytes(event.data)
        elif isinstance(event, h11.Data):
            refusal.append(bytes(event.data))
    if status != 200:
        answer = httpx.Response(status, content=b"".join(refusal), request=request)
        raise httpx.HTTPStatusError(f"status {status}", request=request, response=answer)


def _events(batches: Iterable[list[Piece]], parser: h11.Connection) -> Iterator[tuple[float, h11.Event]]:
    """Yield what an answer consists of until its end, each part with the moment it was complete."""
    for batch in batches:
        for at, piece in batch:
            try:
                parser.receive_data(piece)
                while isinstance(event := parser.next_event(), h11.Event):
                    yield at, event
                    if isinstance(event, h11.EndOfMessage | h11.ConnectionClosed):
                        return
            except h11.RemoteProtocolError as error:
                raise httpx.RemoteProtocolError(str(error)) from None


def _batches(connection: socket.socket) -> Iterator[list[Piece]]:
    """Yield what came, `b""` for its end, seldom: at once only before the first message and at the end."""
    held: list[Piece] = []
    begun, last = False, b""
    while True:
        try:
            piece = _received(connection)
        except httpx.TransportError:
            yield held  # what came before it broke off may say why
            raise
        held.append((time.perf_counter(), piece))
        last = last[-len(_FIRST) :] + piece
        begun = begun or _FIRST in last
        if not begun or not piece or last.endswith(_END) or sum(len(kept) for _, kept in held) > HELD:
            yield held
            held = []
        if begun and not isinstance(connection, ssl.SSLSocket):  # which gives out one message a call
            time.sleep(PAUSE_S)


def _received(connection: socket.socket) -> bytes:
    try:
        return connection.recv(_LOOK)
    except TimeoutError:
        raise httpx.ReadTimeout("nothing came") from None
    except OSError as error:
        raise httpx.ReadError(str(error)) from None


def _lines(pieces: Iterable[Piece]) -> Iterator[tuple[float, str]]:
    """Yield the lines of a body, each with the moment its end came."""
    rest, at = b"", 0.0
    for at, piece in pieces:
        *whole, rest = (rest + piece).split(b"\n")
        for line in whole:
            yield at, line.decode(errors="replace")
    if rest:
        yield at, rest.decode(errors="replace")
