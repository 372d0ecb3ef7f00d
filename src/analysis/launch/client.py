"""Talking to a llama-server: one request at a time, every sampling setting explicit, every failure one clear line."""

import json
import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Literal, Self, TypeVar

import httpx

from analysis.launch.completion import PLAIN_SAMPLING, Completion, Prompt, Stream, completion_of
from analysis.launch.errors import ServerFailed
from analysis.launch.metrics import parse_metrics, parse_past
from analysis.launch.steps import Steps
from analysis.launch.streamed import streamed_lines
from analysis.records import Counters, Past, Problem

T = TypeVar("T")

FACTS_S = 30.0
"""How long a server may take to say what it is, in seconds: no decoding stands in the way of that."""


@dataclass(frozen=True)
class Timeouts:
    """How long to wait, in seconds: for a connection, and for the next byte of an answer.

    A server is silent while it fills a context, so `read_s` must exceed the longest fill.
    """

    connect_s: float = 5.0
    read_s: float = 600.0


class Client:
    """A connection to one llama-server, closed by `close()` or at the end of a `with` block.

    Every request raises ServerFailed if the server cannot be reached, refuses, hangs or answers with something else
    than it should, and ServerDied if it is our own and ended.

    Args:
        base_url: where the server listens, for example `http://127.0.0.1:8080`.
        api_key: its key, if it wants one.
        timeouts: how long to wait.
        when_failed: called before a failure is reported; a server of our own raises here that its process died.
        longest_draft: what the server drafts at most, if known (see `steps.derive_steps`).

    Raises:
        Problem: `base_url` is no address, or holds a password.
    """

    def __init__(
        self,
        base_url: str,
        api_key: str = "",
        timeouts: Timeouts | None = None,
        *,
        when_failed: Callable[[], None] = lambda: None,
        longest_draft: int = 0,
    ) -> None:
        wait = timeouts or Timeouts()
        if "@" in base_url:  # addresses are recorded and shown
            raise Problem("the server's address holds a user or a password", remedy="give a key with --api-key-file")
        headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
        try:
            self._http = httpx.Client(
                base_url=base_url,
                headers=headers,
                timeout=httpx.Timeout(wait.read_s, connect=wait.connect_s),
                # The server drops a connection after a stream, and a client that reuses it meets a closed door.
                limits=httpx.Limits(max_keepalive_connections=0),
                trust_env=False,  # a proxy would see the key, and would stand in the way of the timing
            )
        except (httpx.InvalidURL, ValueError) as error:
            raise Problem(
                f"{base_url} is no address: {error}", expected="something like http://127.0.0.1:8080"
            ) from None
        if self._http.base_url.scheme not in ("http", "https"):
            raise Problem(f"{base_url} is no address", expected="something like http://127.0.0.1:8080")
        self._timeouts = wait
        self._when_failed = when_failed
        self.longest_draft = longest_draft

    def __enter__(self) -> Self:
        """Return the client."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Close the connection."""
        self.close()

    def close(self) -> None:
        """Close the connection."""
        self._http.close()

    def health(self) -> None:
        """Return when the server is ready.

        Raises:
            ServerFailed: it is loading, cannot be reached, or is no llama-server.
        """
        if self._get_json("/health").get("status") != "ok":
            raise self._failure("GET /health did not say that the server is ready")

    def props(self) -> dict[str, Any]:
        """Return the server's properties: `build_info`, `model_path`, `default_generation_settings` and others."""
        return self._get_json("/props")

    def slots(self) -> list[dict[str, Any]]:
        """Return the state of each slot."""
        found = self._decoded(self._request("GET", "/slots"))
        if not isinstance(found, list):
            raise self._failure("GET /slots did not answer with a list")
        return found

    def model_facts(self) -> dict[str, Any]:
        """Return what the server counted when it loaded its model: `n_vocab`, `n_params`, `size` and others."""
        models = self._get_json("/v1/models").get("data")
        if not isinstance(models, list) or not models or not isinstance(models[0], dict):
            raise self._failure("GET /v1/models did not answer with a model")
        facts = models[0].get("meta")
        return facts if isinstance(facts, dict) else {}

    def slot(self, id_slot: int, action: Literal["save", "restore", "erase"], filename: str = "") -> dict[str, Any]:
        """Save a slot's context to a file in the server's own folder, bring it back, or empty the slot.

        The drafter's context is neither saved nor restored: after a restore it holds what it held before.
        """
        return self._post_json(f"/slots/{id_slot}?action={action}", {"filename": filename} if filename else {})

    def metrics(self) -> Counters | None:
        """Return the server's counters of speculation over its life; None where it offers no metrics.

        The server prints six significant digits: from a million on, the three totals are rounded.
        """
        return self._counted(lambda answer: parse_metrics(answer.text))

    def past(self) -> Past | None:
        """Return what tells the server's process from another one; None where it offers no metrics."""
        return self._counted(lambda answer: parse_past(answer.text, answer.headers.get("Process-Start-Time-Unix", "")))

    def tokenize(self, text: str, add_special: bool = False, *, parse_special: bool = False) -> tuple[int, ...]:
        """Return the tokens of a text.

        Args:
            text: what to tokenize.
            add_special: put the model's own beginning in front.
            parse_special: read `<|im_start|>` and its like as the tokens they name, not as ordinary text.
        """
        body = {"content": text, "add_special": add_special, "parse_special": parse_special}
        found = self._field(self._post_json("/tokenize", body), "tokens")
        if not isinstance(found, list) or not all(type(token) is int for token in found):
            raise self._failure("POST /tokenize did not answer with a list of tokens")
        return tuple(found)

    def beginning(self) -> tuple[int, ...]:
        """Return the tokens that the model wants in front of every context: one that begins text, or none.

        The server puts them in front of text, never in front of token ids.
        """
        plain, whole = self.tokenize("a"), self.tokenize("a", add_special=True)
        starts = range(len(whole) - len(plain) + 1)
        return whole[: next((start for start in starts if whole[start : start + len(plain)] == plain), 0)]

    def detokenize(self, tokens: Sequence[int]) -> str:
        """Return the text of tokens."""
        return str(self._field(self._post_json("/detokenize", {"tokens": list(tokens)}), "content"))

    def complete(
        self,
        prompt: Prompt,
        *,
        n_predict: int,
        seed: int,
        temperature: float = 0.0,
        cache_prompt: bool = True,
        id_slot: int = -1,
        ignore_eos: bool = False,
        stream: bool = True,
    ) -> Completion:
        """Generate, and derive one record per target evaluation from the stream.

        Args:
            prompt: text, or tokens for an exact depth.
            n_predict: tokens to generate at most.
            seed: of the sampler, and of synthetic acceptance.
            temperature: 0 is greedy.
            cache_prompt: reuse the longest common prefix in the slot.
            id_slot: the slot to use; -1 lets the server choose.
            ignore_eos: go on past the end of the text.
            stream: without one there are totals but no step records, and `ttft_ms` is the time to the whole answer.

        Raises:
            ServerFailed: the server refused, failed, hung or broke off. ServerDied if it is our own and ended.
            Problem: its counters contradict each other.
        """
        body = PLAIN_SAMPLING | {
            "prompt": prompt if isinstance(prompt, str) else list(prompt),
            "n_predict": n_predict,
            "seed": seed,
            "temperature": temperature,
            "cache_prompt": cache_prompt,
            "id_slot": id_slot,
            "ignore_eos": ignore_eos,
            "return_tokens": True,
        }
        return self._complete_streamed(body) if stream else self._complete_at_once(body)

    def _counted(self, read: Callable[[httpx.Response], T]) -> T | None:
        answer = self._request("GET", "/metrics", accept=(200, 404, 501))
        if answer.status_code != 200:
            return None
        try:
            return read(answer)
        except (ValueError, OverflowError):
            raise self._failure("GET /metrics holds a counter that is no number") from None

    def _complete_streamed(self, body: dict[str, Any]) -> Completion:
        body |= {"stream": True, "timings_per_token": True, "sse_ping_interval": -1}
        stream = Stream(self.tokenize, self.longest_draft)
        began = time.perf_counter()
        try:
            for at, event in self._events("/completion", body):
                stream.add(event, 1e3 * (at - began))
            if stream.is_whole:
                return stream.completion()
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise self._failure(f"a message of the stream lacks what was asked for: {error!r}") from None
        raise self._failure(f"the stream ended after {stream.count} tokens without its last message")

    def _complete_at_once(self, body: dict[str, Any]) -> Completion:
        body |= {"stream": False, "timings_per_token": False}
        began = time.perf_counter()
        answer = self._post_json("/completion", body)
        took = 1e3 * (time.perf_counter() - began)
        try:
            return completion_of(answer, tuple(answer["tokens"]), str(answer["content"]), took, Steps((), (), ()))
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise self._failure(f"the answer of /completion lacks what was asked for: {error!r}") from None

    def _get_json(self, path: str) -> dict[str, Any]:
        return self._mapping(self._request("GET", path, read_s=FACTS_S))

    def _post_json(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        return self._mapping(self._request("POST", path, body))

    def _field(self, answer: dict[str, Any], name: str) -> Any:
        if name not in answer:
            raise self._failure(f"the answer lacks {name!r}")
        return answer[name]

    def _mapping(self, answer: httpx.Response) -> dict[str, Any]:
        found = self._decoded(answer)
        if not isinstance(found, dict):
            raise self._failure(f"{answer.request.method} {answer.request.url.path} did not answer with an object")
        return found

    def _decoded(self, answer: httpx.Response) -> Any:
        try:
            return answer.json()
        except (ValueError, RecursionError):
            request = answer.request
            raise self._failure(f"{request.method} {request.url.path} did not answer with JSON") from None

    def _request(
        self,
        method: str,
        path: str,
        body: dict[str, Any] | None = None,
        accept: tuple[int, ...] = (200,),
        read_s: float = math.inf,
    ) -> httpx.Response:
        wait = min(read_s, self._timeouts.read_s)
        timeout = httpx.Timeout(wait, connect=self._timeouts.connect_s)
        try:
            answer = self._http.request(method, path, json=body, timeout=timeout)
        except (httpx.HTTPError, UnicodeError, OverflowError) as error:
            raise self._broken(f"{method} {path}", error, wait) from None
        if answer.status_code not in accept:
            raise self._refused(f"{method} {path}", answer)
        return answer

    def _events(self, path: str, body: dict[str, Any]) -> Iterator[tuple[float, dict[str, Any]]]:
        """Yield the messages of a stream with the moments they came, after the server has sent them all.

        Whatever is done with a message before takes a core from the server that decodes the next.
        """
        wait = self._timeouts
        request = self._http.build_request("POST", path, json=body)
        try:
            for at, line in streamed_lines(request, connect_s=wait.connect_s, read_s=wait.read_s):
                if line.startswith("data: "):
                    yield at, self._event(line[6:])
                elif line.startswith("error: "):
                    raise self._failure(f"the stream of {path} brought an error: {_message(line[7:])}")
        except httpx.HTTPStatusError as error:
            raise self._refused(f"POST {path}", error.response) from None
        except httpx.TransportError as error:
            raise self._broken(f"the stream of {path}", error, wait.read_s) from None

    def _event(self, data: str) -> dict[str, Any]:
        try:
            event = json.loads(data)
        except (ValueError, RecursionError):
            raise self._failure(f"the stream broke off inside a message: {data[:60]!r}") from None
        if not isinstance(event, dict):
            raise self._failure(f"the stream brought something that is no message: {data[:60]!r}")
        if "error" in event:
            raise self._failure(f"the server gave up during the request: {_message(data)}")
        return event

    def _broken(self, what: str, error: Exception, wait_s: float) -> ServerFailed:
        if isinstance(error, httpx.ReadTimeout):
            return self._failure(
                f"{what} was silent for {wait_s:g} s",
                remedy="the server hangs, or a fill takes longer than the read timeout",
            )
        # A host name or a port that no address can have is found out when the connection is made.
        if isinstance(error, httpx.ConnectError | httpx.ConnectTimeout | UnicodeError | OverflowError):
            return self._failure(f"no server answers at {self._http.base_url}", remedy="start it, or check its address")
        return self._failure(f"{what} broke off: {str(error) or type(error).__name__}")

    def _refused(self, what: str, answer: httpx.Response) -> ServerFailed:
        said = f"{what} answered {answer.status_code}: {_message(answer.text)}"
        remedies = {401: "give the server's key (--api-key-file)", 503: "wait until it has loaded its model"}
        return self._failure(said, remedy=remedies.get(answer.status_code, ""))

    def _failure(self, saw: str, *, remedy: str = "") -> ServerFailed:
        self._when_failed()
        return ServerFailed(saw, remedy=remedy)


def _message(body: str) -> str:
    try:
        error = json.loads(body)["error"]
        return str(error["message"] if isinstance(error, dict) else error)[:300]
    except (ValueError, KeyError, TypeError, RecursionError):
        return body.strip()[:200] or "an empty answer"
