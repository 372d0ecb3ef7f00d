"""Talking to a llama-server: one request at a time, every sampling setting explicit, every failure one clear line."""

import json
import re
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields
from types import TracebackType
from typing import Any, Literal, Self

import httpx

from analysis.launch.errors import ServerFailed, TokensLost
from analysis.launch.steps import Mark, Steps, derive_steps
from analysis.records import Counters, Problem

Stop = Literal["limit", "eos", "word", "unknown"]
Prompt = str | Sequence[int]

# Everything that shapes a distribution, switched off: what is left is the temperature. A server's own defaults
# (top_k 40, min_p 0.05 and whatever its operator set) never reach a measurement.
PLAIN_SAMPLING: dict[str, Any] = {
    "samplers": ["temperature"],
    "top_k": 0,
    "top_p": 1.0,
    "min_p": 0.0,
    "typical_p": 1.0,
    "repeat_penalty": 1.0,
    "presence_penalty": 0.0,
    "frequency_penalty": 0.0,
    "dry_multiplier": 0.0,
    "xtc_probability": 0.0,
    "mirostat": 0,
    "n_probs": 0,
    "stop": [],
    "logit_bias": [],
}
_NOT_IN_A_SAMPLE = ("trimmed", "blurred", "withheld")
_METRIC = re.compile(r"^llamacpp:spec_decode_num_(\w+?)_total(?:\{position=\"(\d+)\"\})? ([\d.e+]+)$", re.M)


@dataclass(frozen=True)
class Timeouts:
    """How long to wait, in seconds: for a connection, and for the next byte of an answer.

    A server is silent while it fills a context, so `read_s` must exceed the longest fill.
    """

    connect_s: float = 5.0
    read_s: float = 600.0


@dataclass(frozen=True)
class Completion:
    """What one request emitted and what it cost.

    Token counts and totals are the server's own; times are milliseconds. `tokens` holds every emitted token,
    an end-of-text token included (its text is empty). `ttft_ms` is wall-clock time from sending the request to
    the first token's arrival; `prompt_ms` and `predicted_ms` are the server's. `predicted_ms` begins where the
    fill ends, so it holds the sampling of the first token (microseconds) and no evaluation for it.

    The step columns have one entry per target evaluation after the fill (see `analysis.launch.steps`); they are
    empty for a request that was not streamed. `trimmed` counts accepted tokens past the end of the text, `blurred`
    evaluations that could not be told apart, `withheld` tokens at the very end that were generated but never
    sent because they form an unfinished character; they are in `predicted_n` and not in `tokens`.
    """

    tokens: tuple[int, ...]
    text: str
    cache_n: int
    prompt_n: int
    prompt_ms: float
    ttft_ms: float
    predicted_n: int
    predicted_ms: float
    draft_n: int
    draft_n_accepted: int
    drafted: tuple[int, ...]
    accepted: tuple[int, ...]
    step_ms: tuple[float, ...]
    trimmed: int
    blurred: int
    withheld: int
    stop: Stop

    def measured(self) -> dict[str, Any]:
        """Return the fields of `records.Sample` that a request fills."""
        return {f.name: getattr(self, f.name) for f in fields(self) if f.name not in _NOT_IN_A_SAMPLE}

    @property
    def decode_per_s(self) -> float:
        """Return tokens a second of decoding: all but the first token, over the time after the fill."""
        return 1e3 * (self.predicted_n - 1) / self.predicted_ms if self.predicted_n > 1 else 0.0


class Client:
    """A connection to one llama-server, closed by `close()` or at the end of a `with` block.

    Args:
        base_url: where the server listens, for example `http://127.0.0.1:8080`.
        api_key: its key, if it wants one.
        timeouts: how long to wait.
        when_failed: called before a failure is reported; a server of our own raises here that its process died.
        longest_draft: what the server drafts at most, if known (see `steps.derive_steps`).
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

    def metrics(self) -> Counters | None:
        """Return the server's counters of speculation over its life; None where it offers no metrics.

        The server prints six significant digits: from a million on, the three totals are rounded.
        """
        answer = self._request("GET", "/metrics", accept=(200, 404, 501))
        if answer.status_code != 200:
            return None
        return parse_metrics(answer.text)

    def tokenize(self, text: str, add_special: bool = False) -> tuple[int, ...]:
        """Return the tokens of a text; `<|special|>` strings in it are taken as ordinary text."""
        body = {"content": text, "add_special": add_special, "parse_special": False}
        return tuple(self._post_json("/tokenize", body)["tokens"])

    def detokenize(self, tokens: Sequence[int]) -> str:
        """Return the text of tokens."""
        return str(self._post_json("/detokenize", {"tokens": list(tokens)})["content"])

    def complete(
        self,
        prompt: Prompt,
        *,
        n_predict: int,
        seed: int,
        temperature: float = 0.0,
        cache_prompt: bool = True,
        id_slot: int | None = None,
        ignore_eos: bool = False,
    ) -> Completion:
        """Generate with the stream on, and derive one record per target evaluation from it.

        Args:
            prompt: text, or tokens for an exact depth.
            n_predict: tokens to generate at most.
            seed: of the sampler, and of synthetic acceptance.
            temperature: 0 is greedy.
            cache_prompt: reuse the longest common prefix in the slot.
            id_slot: the slot to use; None lets the server choose.
            ignore_eos: go on past the end of the text.

        Raises:
            ServerFailed: the server refused, failed, hung or broke off. ServerDied if it is our own and ended.
            Problem: its counters contradict each other.
        """
        body = _body(prompt, n_predict, seed, temperature, cache_prompt, id_slot, ignore_eos)
        body |= {"stream": True, "timings_per_token": True, "sse_ping_interval": -1}
        stream = _Stream(self)
        began = time.perf_counter()
        for event in self._events("/completion", body):
            stream.add(event, 1e3 * (time.perf_counter() - began))
        return stream.completion()

    def complete_plain(
        self,
        prompt: Prompt,
        *,
        n_predict: int,
        seed: int,
        temperature: float = 0.0,
        cache_prompt: bool = True,
        id_slot: int | None = None,
        ignore_eos: bool = False,
    ) -> Completion:
        """Generate without a stream: the same request, with totals only and no step records.

        `ttft_ms` is then the time to the whole answer.
        """
        body = _body(prompt, n_predict, seed, temperature, cache_prompt, id_slot, ignore_eos)
        body |= {"stream": False, "timings_per_token": False}
        began = time.perf_counter()
        answer = self._post_json("/completion", body)
        took = 1e3 * (time.perf_counter() - began)
        try:
            return _completion(answer, tuple(answer["tokens"]), str(answer["content"]), took, Steps((), (), ()))
        except (KeyError, TypeError, ValueError) as error:
            raise self._failure(f"the answer of /completion lacks what was asked for: {error!r}") from None

    def pieces(self, content: Prompt) -> list[tuple[int, bytes]]:
        """Return (token, its bytes) for a text or for given tokens."""
        body = {
            "content": content if isinstance(content, str) else list(content),
            "parse_special": False,
            "with_pieces": True,
        }
        entries = self._post_json("/tokenize", body)["tokens"]
        return [
            (
                entry["id"],
                entry["piece"].encode() if isinstance(entry["piece"], str) else bytes(entry["piece"]),
            )
            for entry in entries
        ]

    def _get_json(self, path: str) -> dict[str, Any]:
        return self._mapping(self._request("GET", path))

    def _post_json(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        return self._mapping(self._request("POST", path, body))

    def _mapping(self, answer: httpx.Response) -> dict[str, Any]:
        found = self._decoded(answer)
        if not isinstance(found, dict):
            raise self._failure(f"{answer.request.method} {answer.request.url.path} did not answer with an object")
        return found

    def _decoded(self, answer: httpx.Response) -> Any:
        try:
            return answer.json()
        except ValueError:
            request = answer.request
            raise self._failure(f"{request.method} {request.url.path} did not answer with JSON") from None

    def _request(
        self, method: str, path: str, body: dict[str, Any] | None = None, accept: tuple[int, ...] = (200,)
    ) -> httpx.Response:
        try:
            answer = self._http.request(method, path, json=body)
        except httpx.HTTPError as error:
            raise self._broken(f"{method} {path}", error) from None
        if answer.status_code not in accept:
            raise self._refused(f"{method} {path}", answer)
        return answer

    def _events(self, path: str, body: dict[str, Any]) -> Iterator[dict[str, Any]]:
        try:
            with self._http.stream("POST", path, json=body) as answer:
                if answer.status_code != 200:
                    answer.read()
                    raise self._refused(f"POST {path}", answer)
                for line in answer.iter_lines():
                    if line.startswith("data: "):
                        yield self._event(line[6:])
                    elif line.startswith("error: "):
                        raise self._failure(f"the stream of {path} brought an error: {_message(line[7:])}")
        except httpx.HTTPError as error:
            raise self._broken(f"the stream of {path}", error) from None

    def _event(self, data: str) -> dict[str, Any]:
        try:
            event = json.loads(data)
        except ValueError:
            raise self._failure(f"the stream broke off inside a message: {data[:60]!r}") from None
        if not isinstance(event, dict):
            raise self._failure(f"the stream brought something that is no message: {data[:60]!r}")
        if "error" in event:
            raise self._failure(f"the server gave up during the request: {_message(data)}")
        return event

    def _broken(self, what: str, error: httpx.HTTPError) -> ServerFailed:
        if isinstance(error, httpx.ReadTimeout):
            return self._failure(
                f"{what} was silent for {self._timeouts.read_s:g} s",
                remedy="the server hangs, or a fill takes longer than the read timeout",
            )
        if isinstance(error, httpx.ConnectError | httpx.ConnectTimeout):
            return self._failure(f"{what}: no server answers there", remedy="start it, or check its address")
        return self._failure(f"{what} broke off: {str(error) or type(error).__name__}")

    def _refused(self, what: str, answer: httpx.Response) -> ServerFailed:
        said = f"{what} answered {answer.status_code}: {_message(answer.text)}"
        remedies = {401: "give the server's key (--api-key-file)", 503: "wait until it has loaded its model"}
        return self._failure(said, remedy=remedies.get(answer.status_code, ""))

    def _failure(self, saw: str, *, remedy: str = "") -> ServerFailed:
        self._when_failed()
        return ServerFailed(saw, remedy=remedy)


class _Stream:
    """Collects the messages of one streamed request."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._tokens: list[int] = []
        self._marks: list[Mark] = []
        self._text: list[str] = []
        self._ttft_ms = 0.0
        self._final: dict[str, Any] | None = None

    def add(self, event: dict[str, Any], at_ms: float) -> None:
        """Take one message, which arrived `at_ms` after the request was sent."""
        try:
            if event["stop"]:
                self._final = event
                return
            self._token(event, at_ms)
        except (KeyError, TypeError, ValueError) as error:
            raise self._client._failure(f"a message of the stream lacks what was asked for: {error!r}") from None

    def _token(self, event: dict[str, Any], at_ms: float) -> None:
        timings = event["timings"]
        mark = Mark(
            int(timings["predicted_n"]),
            float(timings["predicted_ms"]),
            int(timings.get("draft_n", 0)),
            int(timings.get("draft_n_accepted", 0)),
        )
        (token,) = event["tokens"]
        missing = mark.predicted_n - len(self._tokens) - 1
        if not self._tokens:
            self._ttft_ms = at_ms
        if missing:
            self._tokens += recover_tokens(self._client, event["content"], token, missing)
        self._tokens.append(token)
        self._marks.append(mark)
        self._text.append(event["content"])

    def completion(self) -> Completion:
        """Return the request's outcome."""
        if self._final is None:
            raise self._client._failure(f"the stream ended after {len(self._tokens)} tokens without its last message")
        steps = derive_steps(self._marks, self._client.longest_draft)
        try:
            return _completion(self._final, tuple(self._tokens), "".join(self._text), self._ttft_ms, steps)
        except (KeyError, TypeError, ValueError) as error:
            raise self._client._failure(f"the last message lacks what was asked for: {error!r}") from None


def recover_tokens(client: Client, text: str, last: int, missing: int) -> list[int]:
    """Work out tokens that the stream withheld because they ended inside a character.

    The server then sends the text of all of them with the token that completes it. Tokenizing that text gives
    them back, which is accepted only if it yields as many tokens as were counted and ends in the one that came.

    Raises:
        TokensLost: it does not.
    """
    found = client.tokenize(text)
    if len(found) == missing + 1 and found[-1] == last:
        return list(found[:-1])
    raise TokensLost(
        f"{missing} tokens of an unfinished character were not sent and cannot be worked out",
        remedy="leave this prompt out",
    )


def parse_metrics(printed: str) -> Counters:
    """Return the counters of speculation from a page of Prometheus text; a counter that is not there is 0."""
    totals: dict[str, int] = {}
    positions: dict[int, int] = {}
    for name, position, value in _METRIC.findall(printed):
        if position:
            positions[int(position)] = round(float(value))
        else:
            totals[name] = round(float(value))
    return Counters(
        drafts=totals.get("drafts", 0),
        draft_tokens=totals.get("draft_tokens", 0),
        accepted_tokens=totals.get("accepted_tokens", 0),
        accepted_per_pos=tuple(positions.get(k, 0) for k in range(max(positions, default=-1) + 1)),
    )


def _body(
    prompt: Prompt,
    n_predict: int,
    seed: int,
    temperature: float,
    cache_prompt: bool,
    id_slot: int | None,
    ignore_eos: bool,
) -> dict[str, Any]:
    return {
        **PLAIN_SAMPLING,
        "prompt": prompt if isinstance(prompt, str) else list(prompt),
        "n_predict": n_predict,
        "seed": seed,
        "temperature": temperature,
        "cache_prompt": cache_prompt,
        "id_slot": -1 if id_slot is None else id_slot,
        "ignore_eos": ignore_eos,
        "return_tokens": True,
    }


def _completion(final: dict[str, Any], tokens: tuple[int, ...], text: str, ttft_ms: float, steps: Steps) -> Completion:
    timings = final["timings"]
    stops: dict[str, Stop] = {"limit": "limit", "eos": "eos", "word": "word"}
    return Completion(
        tokens=tokens,
        text=text,
        cache_n=int(timings["cache_n"]),
        prompt_n=int(timings["prompt_n"]),
        prompt_ms=float(timings["prompt_ms"]),
        ttft_ms=ttft_ms,
        predicted_n=int(timings["predicted_n"]),
        predicted_ms=float(timings["predicted_ms"]),
        draft_n=int(timings.get("draft_n", 0)),
        draft_n_accepted=int(timings.get("draft_n_accepted", 0)),
        drafted=steps.drafted,
        accepted=steps.accepted,
        step_ms=steps.ms,
        trimmed=steps.trimmed,
        blurred=steps.blurred,
        withheld=int(timings["predicted_n"]) - len(tokens),
        stop=stops.get(str(final.get("stop_type")), "unknown"),
    )


def _message(body: str) -> str:
    try:
        error = json.loads(body)["error"]
        return str(error["message"] if isinstance(error, dict) else error)[:300]
    except (ValueError, KeyError, TypeError):
        return body.strip()[:200] or "an empty answer"
