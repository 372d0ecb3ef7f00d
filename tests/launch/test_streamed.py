"""The transport of a streamed answer against servers that send exactly these bytes."""

import shutil
import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import httpx
import pytest

from analysis.launch import streamed
from analysis.launch.streamed import HELD, PAUSE_S, streamed_lines

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
END = b"0\r\n\r\n"


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


@contextmanager
def server(*parts: bytes, keep_open: bool = False, pause_s: float = 0.0, secure: ssl.SSLContext | None = None):
    """Yield the address of a server that answers one request with these parts, and what it was asked."""
    asked: list[bytes] = []
    over = threading.Event()
    listening = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        try:
            connection, _ = listening.accept()
            with secure.wrap_socket(connection, server_side=True) if secure else connection as talking:
                talking.settimeout(20)
                asked.append(talking.recv(1 << 16))
                for part in parts:
                    talking.sendall(part)
                    time.sleep(pause_s)
                if keep_open:
                    over.wait(20)
        except OSError:
            pass  # the client left, which is what some tests are about

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield f"{'https' if secure else 'http'}://127.0.0.1:{listening.getsockname()[1]}", asked
    finally:
        over.set()
        listening.close()
        thread.join()


def lines(address: str, read_s: float = 20.0) -> list[str]:
    return [line for _, line in moments(address, read_s)]


def moments(address: str, read_s: float = 20.0) -> list[tuple[float, str]]:
    return list(coming(address, read_s))


def coming(address: str, read_s: float = 20.0) -> Iterator[tuple[float, str]]:
    with httpx.Client(base_url=address, headers={"Authorization": "Bearer k"}) as http:
        request = http.build_request("POST", "/completion", json={"a": 1})
    return streamed_lines(request, connect_s=5, read_s=read_s)


def until_broken(address: str, broken: type[httpx.TransportError], read_s: float = 20.0) -> list[str]:
    """Return the lines that came before the answer broke off in this way."""
    found = []
    with pytest.raises(broken):
        found.extend(line for _, line in coming(address, read_s))
    return found


def test_an_answer_may_come_in_pieces_even_of_a_character():
    whole = HEAD + chunk("data: café\r\n".encode()) + chunk(b"\ndata: 2") + chunk(b"3") + END
    with server(*(whole[at : at + 1] for at in range(len(whole)))) as (address, _):
        assert lines(address) == ["data: café\r", "", "data: 23"]


def test_the_request_is_the_one_that_was_built_on_a_connection_that_ends_with_it():
    with server(HEAD + END) as (address, asked):
        assert lines(address) == []
    head, _, body = asked[0].partition(b"\r\n\r\n")
    first, *headers = head.lower().split(b"\r\n")
    assert first == b"post /completion http/1.1"
    assert {b"authorization: bearer k", b"connection: close", b"accept-encoding: identity"} <= set(headers)
    assert body == b'{"a":1}'


def test_an_answer_that_is_over_is_not_waited_for():
    with server(HEAD + chunk(b"data: 1\n") + END, keep_open=True) as (address, _):
        assert lines(address) == ["data: 1"]


def test_an_answer_of_a_stated_length_that_is_over_is_not_waited_for():
    with server(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n", b"a\nb\n", keep_open=True) as (address, _):
        assert lines(address) == ["a", "b"]


def test_what_looks_like_the_end_is_not():
    inside = chunk(b"data: 10\r\n\r\n")
    with server(HEAD + inside[:-2], inside[-2:] + chunk(b"data: 2\n") + END, pause_s=2 * PAUSE_S) as (address, _):
        assert lines(address) == ["data: 10\r", "\r", "data: 2"]


def test_the_first_message_has_its_moment_and_later_ones_are_looked_for_seldom(monkeypatch):
    looks = []
    real = streamed._received
    monkeypatch.setattr(streamed, "_received", lambda connection: looks.append(1) or real(connection))
    parts = [HEAD, *(chunk(b"data: %d\n" % number) for number in range(200)), END]
    with server(*parts, pause_s=0.001) as (address, _):
        began = time.perf_counter()
        found = moments(address)
        took = time.perf_counter() - began
    assert [line for _, line in found] == [f"data: {number}" for number in range(200)]
    assert found[0][0] < found[1][0], "the first is read alone"
    assert found[-1][0] - began > 0.2, "moments are those of arrival, not of reading"
    assert len(looks) < 5 + took / PAUSE_S


def test_more_than_is_held_is_read_while_more_comes():
    big = chunk(b"data: " + b"x" * HELD + b"\n")
    with server(HEAD + chunk(b"data: 0\n"), big, keep_open=True) as (address, _):
        found = coming(address)
        assert [len(next(found)[1]) for _ in range(2)] == [7, HELD + 6]
        found.close()


@pytest.mark.parametrize("cut", [b"4\r\nda", b"data", b"4"])
def test_an_answer_that_breaks_off_gives_its_whole_lines_first(cut):
    with server(HEAD + chunk(b"data: 1\ndata: half") + cut) as (address, _):
        assert until_broken(address, httpx.RemoteProtocolError) == ["data: 1"]


@pytest.mark.parametrize("said", [b"\x00\xff nonsense \r\n\r\n", b"SSH-2.0-OpenSSH_9.2\r\n", b""])
def test_what_is_no_http_is_said(said):
    with server(said) as (address, _):
        assert until_broken(address, httpx.RemoteProtocolError) == []


def test_silence_in_the_middle_is_a_timeout_and_what_came_is_given():
    with server(HEAD + chunk(b"data: 1\n"), keep_open=True) as (address, _):
        assert until_broken(address, httpx.ReadTimeout, read_s=0.3) == ["data: 1"]


def test_a_refusal_carries_the_whole_answer():
    said = b'{"error": {"message": "no"}}'
    answer = b"HTTP/1.1 503 Busy\r\nContent-Length: %d\r\n\r\n%s" % (len(said), said)
    with server(answer) as (address, _), pytest.raises(httpx.HTTPStatusError) as refused:
        lines(address)
    assert (refused.value.response.status_code, refused.value.response.content) == (503, said)


@pytest.mark.parametrize("address", ["http://127.0.0.1:1", "https://127.0.0.1:1", "http://nobody.invalid:80"])
def test_nobody_answers(address):
    with pytest.raises(httpx.ConnectError):
        lines(address)


def test_a_server_that_speaks_no_tls():
    with server(HEAD) as (address, _), pytest.raises(httpx.ConnectError):
        lines(address.replace("http:", "https:"))


@pytest.mark.skipif(not shutil.which("openssl"), reason="no openssl to make a certificate with")
def test_an_encrypted_answer(tmp_path, monkeypatch):
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    made = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", certificate]
    names = ["-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1", "-days", "2"]
    subprocess.run([*made, *names], check=True, capture_output=True)
    ours = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    ours.load_cert_chain(certificate, key)
    parts = [HEAD, *(chunk(b"data: %d\n" % number) for number in range(100)), END]
    with server(*parts, secure=ours) as (address, _), pytest.raises(httpx.ConnectError, match="certificate"):
        lines(address)
    trusting = ssl.create_default_context(cafile=certificate)
    monkeypatch.setattr(httpx, "create_ssl_context", lambda **how: trusting)
    monkeypatch.setattr(streamed, "PAUSE_S", 3600)  # such a connection gives out one message a look: none may wait
    with server(*parts, secure=ours) as (address, _):
        assert lines(address) == [f"data: {number}" for number in range(100)]
