"""What a request asks for and what its answer holds: every sampling setting explicit, every emitted token there."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Any, Literal

from analysis.launch.errors import TokensLost
from analysis.launch.steps import Mark, Steps, derive_steps

Stop = Literal["limit", "eos", "word", "unknown"]
Prompt = str | Sequence[int]
_NOT_IN_A_SAMPLE = ("trimmed", "withheld", "kinds")

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


@dataclass(frozen=True)
class Completion:
    """What one request emitted and what it cost.

    Token counts and totals are the server's own; times are milliseconds. `tokens` holds every emitted token,
    an end-of-text token included (its text is empty). `ttft_ms` is wall-clock time from sending the request to
    the first token's arrival; `prompt_ms` and `predicted_ms` are the server's. `predicted_ms` begins where the
    fill ends, so it holds the sampling of the first token (microseconds) and no evaluation for it.

    The step columns have one entry per target evaluation after the fill (see `analysis.launch.steps`); they are
    empty for a request that was not streamed. `trimmed` counts accepted tokens past the end of the text,
    `replayed` evaluations that repeat accepted tokens (0 ms, no draft), `blurred` evaluations that could not be
    told apart, `withheld` tokens at the very end that were generated but never sent because they form an
    unfinished character; they are in `predicted_n` and not in `tokens`. `kinds` is how the server says that it drafted,
    empty where it does not say.
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
    replayed: int
    blurred: int
    withheld: int
    stop: Stop
    kinds: str = ""

    def measured(self) -> dict[str, Any]:
        """Return the fields of `records.Sample` that a request fills."""
        return {f.name: getattr(self, f.name) for f in fields(self) if f.name not in _NOT_IN_A_SAMPLE}

    @property
    def decode_per_s(self) -> float:
        """Return tokens a second of decoding: all but the first token, over the time after the fill."""
        return 1e3 * (self.predicted_n - 1) / self.predicted_ms if self.predicted_n > 1 else 0.0


class Stream:
    """Collects the messages of one streamed request.

    Args:
        tokenize: gives the tokens of a text.
        longest_draft: what the server drafts at most, 0 if unknown.
    """

    def __init__(self, tokenize: Callable[[str], Sequence[int]], longest_draft: int) -> None:
        self._tokenize = tokenize
        self._longest_draft = longest_draft
        self._tokens: list[int] = []
        self._marks: list[Mark] = []
        self._text: list[str] = []
        self._ttft_ms = 0.0
        self._final: dict[str, Any] | None = None

    @property
    def count(self) -> int:
        """Return the tokens so far."""
        return len(self._tokens)

    @property
    def is_whole(self) -> bool:
        """Return whether the last message has come."""
        return self._final is not None

    def add(self, event: dict[str, Any], at_ms: float) -> None:
        """Take one message, which arrived `at_ms` after the request was sent.

        Raises:
            KeyError, TypeError, ValueError: it lacks what was asked for.
            TokensLost: tokens are missing and cannot be worked out.
        """
        if event["stop"]:
            self._final = event
            return
        (token,) = event["tokens"]
        text = str(event["content"])
        mark = _mark(event["timings"])
        if not self._tokens:
            self._ttft_ms = at_ms
        missing = mark.predicted_n - len(self._tokens) - 1
        if missing > 0:
            self._tokens += recover_tokens(self._tokenize(text), token, missing)
        self._tokens.append(int(token))
        self._marks.append(mark)
        self._text.append(text)

    def completion(self) -> Completion:
        """Return the outcome of the whole request.

        Raises:
            KeyError, TypeError, ValueError: the last message lacks what was asked for.
            Problem: the counters contradict each other.
        """
        if self._final is None:
            raise ValueError("no last message")
        steps = derive_steps(self._marks, self._longest_draft)
        return completion_of(self._final, tuple(self._tokens), "".join(self._text), self._ttft_ms, steps)


def recover_tokens(found: Sequence[int], last: int, missing: int) -> list[int]:
    """Work out tokens that the stream withheld because they ended inside a character.

    The server sends the text of all of them with the token that completes it. Tokenizing that text gives them
    back, which is accepted only if it yields as many tokens as were counted and ends in the one that came.

    Args:
        found: the tokens of that text.
        last: the token that came.
        missing: how many came before it unseen.

    Raises:
        TokensLost: they cannot be worked out.
    """
    if len(found) == missing + 1 and found[-1] == last:
        return list(found[:-1])
    raise TokensLost(
        f"{missing} tokens of an unfinished character were not sent and cannot be worked out",
        remedy="leave this prompt out",
    )


def completion_of(
    final: dict[str, Any], tokens: tuple[int, ...], text: str, ttft_ms: float, steps: Steps
) -> Completion:
    """Return a request's outcome from its last message and what came before it.

    Raises:
        KeyError, TypeError, ValueError: the message lacks what was asked for.
    """
    timings = final["timings"]
    settings = final.get("generation_settings")
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
        replayed=steps.replayed,
        blurred=steps.blurred,
        withheld=int(timings["predicted_n"]) - len(tokens),
        stop=stops.get(str(final.get("stop_type")), "unknown"),
        kinds=str(settings.get("speculative.types") or "") if isinstance(settings, dict) else "",
    )


def _mark(timings: dict[str, Any]) -> Mark:
    return Mark(
        int(timings["predicted_n"]),
        float(timings["predicted_ms"]),
        int(timings.get("draft_n", 0)),
        int(timings.get("draft_n_accepted", 0)),
    )
