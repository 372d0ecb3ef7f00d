import json
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from analysis.launch import Client, Timeouts

Act = Callable[["Conversation"], None]


class Conversation(BaseHTTPRequestHandler):
    """One request to the fake server, and the ways it can go wrong."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self._act()

    def do_POST(self) -> None:
        self.asked = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))) or b"{}")
        self._act()

    def _act(self) -> None:
        act = self.server.acts.get(self.path)
        if act is None:
            self.answer({"error": {"code": 404, "message": "File Not Found"}}, status=404)
        else:
            act(self)

    def answer(self, body: Any, status: int = 200) -> None:
        data = body.encode() if isinstance(body, str) else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def begin_stream(self) -> None:
        self.close_connection = True
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()

    def send(self, text: str) -> None:
        data = text.encode()
        self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
        self.wfile.flush()

    def event(self, message: dict[str, Any]) -> None:
        self.send(f"data: {json.dumps(message)}\n\n")

    def end_stream(self) -> None:
        self.wfile.write(b"0\r\n\r\n")

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture
def fake_server():
    """Start a server that does what it is told at each path: `fake_server({"/health": act})` gives a client."""
    running = []

    def start(acts: dict[str, Act], read_s: float = 5.0) -> Client:
        server = ThreadingHTTPServer(("127.0.0.1", 0), Conversation)
        server.daemon_threads = True
        server.acts = acts
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        client = Client(f"http://127.0.0.1:{server.server_port}", "secret", Timeouts(connect_s=2, read_s=read_s))
        running.append((server, client))
        return client

    yield start
    for server, client in running:
        client.close()
        server.shutdown()
        server.server_close()
