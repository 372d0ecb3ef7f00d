"""A llama-server made up for tests: it decodes at known speeds, and can have each known counter fault."""

import json
import threading
from collections.abc import Callable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from analysis.records import Engine, Machine, Pair, Source

N_MAX = 4
MACHINE = Machine(name="test-2c", cpu="Test CPU", cores=2, memory=2**30, os="Linux")
ENGINE = Engine(source="url", version="b99999", build=99999, commit="ffff", backend="CPU", path="$URL")
PAIR = Pair(
    name="made-up",
    title="made up",
    target=Source(kind="path", file="t"),
    drafter=Source(kind="path", file="d"),
    spec_type="draft-dspark",
    n_max=N_MAX,
)
"""How it is measured: as somebody else's server of a made-up pair."""

Evaluation = tuple[int, int, float]  # drafted, accepted, milliseconds


@dataclass
class FakeLlama:
    """What the server does: the evaluations after the fill of every request, and how it counts them.

    `counted` turns what an evaluation drafted and accepted into what the stream's totals say of it, `told` into what
    `/metrics` says; both tell the truth by default. `reused` is what it claims to have found in its cache.
    """

    evaluations: Sequence[Evaluation]
    counted: Callable[[int, int], tuple[int, int]] = lambda drafted, accepted: (drafted, accepted)
    told: Callable[[int, int], tuple[int, int]] = lambda drafted, accepted: (drafted, accepted)
    reused: Callable[[list[int]], int] = lambda prompt: max(0, len(prompt) - 8)
    cut: int = 0  # accepted tokens of the last evaluation that are counted and not emitted
    slots: int = 1
    before: Callable[[dict[str, Any]], None] = lambda asked: None  # called with every request before it is answered
    drafts: list[tuple[int, int]] = field(default_factory=list)

    def messages(self, prompt: list[int], n_predict: int) -> list[dict[str, Any]]:
        """The stream of one request: the fill's token, then those of each evaluation with the totals after it.

        Of `n_predict` it looks only at whether a second token is wanted at all.
        """
        cache = self.reused(prompt)
        timings: dict[str, Any] = {
            "cache_n": cache,
            "prompt_n": len(prompt) - cache,
            "prompt_ms": 5.0,
            "predicted_n": 1,
            "predicted_ms": 0.001,
            "draft_n": 0,
            "draft_n_accepted": 0,
        }
        found = [token(timings)]
        for place, (drafted, accepted, ms) in enumerate(self.evaluations if n_predict > 1 else ()):
            drafted_said, accepted_said = self.counted(drafted, accepted) if drafted else (0, 0)
            if drafted:
                self.drafts.append(self.told(drafted, accepted))
            last = place == len(self.evaluations) - 1
            timings |= {
                "predicted_ms": timings["predicted_ms"] + ms,
                "draft_n": timings["draft_n"] + drafted_said,
                "draft_n_accepted": timings["draft_n_accepted"] + accepted_said,
            }
            for _ in range(accepted + 1 - (self.cut if last else 0)):
                timings |= {"predicted_n": timings["predicted_n"] + 1}
                found.append(token(timings))
        return [*found, {"stop": True, "content": "", "tokens": [], "stop_type": "limit", "timings": dict(timings)}]

    def metrics(self) -> str:
        deepest = max((accepted for _, accepted in self.drafts), default=0)
        lines = [
            f"llamacpp:spec_decode_num_drafts_total {len(self.drafts)}",
            f"llamacpp:spec_decode_num_draft_tokens_total {sum(drafted for drafted, _ in self.drafts)}",
            f"llamacpp:spec_decode_num_accepted_tokens_total {sum(accepted for _, accepted in self.drafts)}",
        ]
        lines += [
            f'llamacpp:spec_decode_num_accepted_tokens_per_pos_total{{position="{position}"}} '
            f"{sum(accepted > position for _, accepted in self.drafts)}"
            for position in range(deepest)
        ]
        return "\n".join(lines) + "\n"


def token(timings: dict[str, Any]) -> dict[str, Any]:
    number = timings["predicted_n"]
    return {"stop": False, "content": f"x{number} = {number}\n", "tokens": [number], "timings": dict(timings)}


@contextmanager
def serving(fake: FakeLlama):
    """Serve it on a free port and yield its address."""

    class Talk(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            pages = {"/metrics": fake.metrics(), "/slots": json.dumps([{"id": slot} for slot in range(fake.slots)])}
            self.answer(pages.get(self.path, json.dumps({"status": "ok", "build_info": "b99999-ffff"})).encode())

        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            if self.path == "/tokenize":
                self.answer(json.dumps({"tokens": [ord(letter) for letter in asked["content"]]}).encode())
                return
            fake.before(asked)
            messages = fake.messages(asked["prompt"], asked["n_predict"])
            self.answer("".join(f"data: {json.dumps(message)}\n\n" for message in messages).encode())

        def answer(self, body: bytes) -> None:
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Talk)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
