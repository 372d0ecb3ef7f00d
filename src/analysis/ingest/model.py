"""What a log is read into: one record for each report of speculation, with how each of its numbers is known."""

from dataclasses import dataclass
from typing import Literal, NamedTuple

How = Literal["printed", "counted", "derived", "bounded", "unknown"]
"""How a number is known: it stands there; the lines that show it were counted; it follows from printed numbers and
their rounding; only limits follow; nothing is known."""

Scope = Literal["request", "conversation", "window", "cumulative", "unknown"]
"""What a report covers: one request, several turns of one conversation, an interval of a server's time, all that a
server did so far, or not said."""

Format = Literal[
    "llama-server request",
    "llama-server statistics",
    "llama.cpp timings",
    "speed_bench.py",
    "metrics page",
    "vLLM log",
]

MAX_POSITIONS = 256
"""Positions of a curve that are read; no drafter has as many."""


class Known(NamedTuple):
    """A whole number with how it is known; `low` and `high` are its limits, equal where it is known exactly."""

    low: int | None = None
    high: int | None = None
    how: How = "unknown"

    @property
    def value(self) -> int | None:
        """Return the number, or None if it is not known exactly."""
        return self.low if self.low == self.high else None

    def __str__(self) -> str:
        """Return `87`, `84 to 91` or `not known`."""
        if self.low is None or self.high is None:
            return "not known" if self.low is None else f"at least {self.low:,}"
        return f"{self.low:,}" if self.low == self.high else f"{self.low:,} to {self.high:,}"


UNKNOWN = Known()


def exactly(number: int, how: How = "printed") -> Known:
    """Return a number that is known."""
    return Known(number, number, how)


class Reading(NamedTuple):
    """One report of speculation; a tuple, since a gigabyte of log holds a million and a dataclass takes longer to make.

    `server` tells lives of servers in one file apart: where the lines come from, and the how-manieth life. `drafted`
    and `accepted` count tokens; `rate` and `mean_length` are what was printed, never computed. `survival` holds, for
    positions 1.., the share of verification steps that accepted so many tokens. `steps` counts verification steps;
    `step_drafted` and `step_accepted` are there where the log shows every step. `prompt_n` tokens were evaluated and
    `cache_n` reused; `emitted` were generated. `prompt_per_s` and `predicted_per_s` are the printed tokens a second of
    filling and of decoding; builds differ in whether the first token counts. None and an unknown `Known` mean that the
    report does not say.
    `problems` says why a report contradicts itself or cannot be; its numbers then enter nothing.
    """

    source: str
    line: int
    format: Format
    scope: Scope
    server: str = ""
    slot: int | None = None
    task: int | None = None
    spec_type: str = ""
    label: str = ""
    drafted: int | None = None
    accepted: int | None = None
    rate: float | None = None
    steps: Known = UNKNOWN
    n_max: Known = UNKNOWN
    mean_length: float | None = None
    survival: tuple[float, ...] = ()
    survival_counts: tuple[int, ...] = ()
    step_drafted: tuple[int, ...] = ()
    step_accepted: tuple[int, ...] = ()
    restored: int = 0
    emitted: int | None = None
    prompt_n: int | None = None
    cache_n: int | None = None
    depth: int | None = None
    prompt_ms: float | None = None
    predicted_ms: float | None = None
    prompt_per_s: float | None = None
    predicted_per_s: float | None = None
    problems: tuple[str, ...] = ()

    @property
    def fit(self) -> bool:
        """Return whether the report can be used."""
        return not self.problems


@dataclass(frozen=True, slots=True, kw_only=True)
class Speed:
    """One test of `llama-bench`: tokens a second, which say nothing of speculation. `test` is as it prints it."""

    source: str
    line: int
    test: str
    model: str
    build: str
    backend: str
    n_prompt: int
    n_gen: int
    n_depth: int | None
    per_s: float
    stddev: float | None
    repeats: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """What a file says of a server: its build and commit, its speculation and the limits of its drafts.

    `whole` says that the life's beginning is in the file. `mixed` counts the times the clock went back without a
    restart: lines of two servers, or a file put together in the wrong order.
    """

    server: str
    build: int | None = None
    commit: str = ""
    spec_types: tuple[str, ...] = ()
    n_max: int | None = None
    n_min: int | None = None
    p_min: float | None = None
    checkpoints: bool = False
    whole: bool = False
    mixed: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Scanned:
    """What was looked at in one file: bytes, lines that looked like a report, lines of those that were not one."""

    source: str
    size: int
    lines: int
    hits: int
    misses: int
    overlong: int
    encoding: str
