"""JSON objects in a file of any size: `timings` of responses, results of `speed_bench.py`, tests of `llama-bench`.

An object is read where one of its keys is seen, so that a pasted response, a stream of events, a line of a log and a
document of a gigabyte are read alike, and none is held whole.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from analysis.ingest import derive
from analysis.ingest.lines import Spot
from analysis.ingest.model import Reading, Speed, exactly
from analysis.ingest.text import clean

LONGEST = 1 << 14
"""Bytes of an object that are read: its own text fields are short."""

MOST_BRACES = 8
"""Opening braces that are tried in front of a key."""

MOST_FAILURES = 25
"""Keys of a block that may stand in no object before the block's others are left: such a file is no JSON."""

_DECODER = json.JSONDecoder()


def object_at(data: bytes, spot: Spot) -> tuple[int, dict[str, Any]] | None:
    """Return the innermost object that has a key at a place, with its start; None if there is none to read."""
    key = spot.word.strip(b'"').decode()
    start = spot.start
    for _ in range(MOST_BRACES):
        start = data.rfind(b"{", max(0, spot.start - LONGEST), start)
        if start < 0:
            return None
        try:
            found, _ = _DECODER.raw_decode(data[start : start + LONGEST].decode("utf-8", "replace"))
        except (ValueError, RecursionError):
            continue
        if isinstance(found, dict) and key in found:
            return start, found
    return None


def timings(source: str, line: int, found: Mapping[str, Any]) -> Reading | None:
    """Return the report of a response's `timings` object, or of a result of `speed_bench.py`."""
    whole = {name: _whole(found.get(name)) for name in _WHOLE}
    drafted, accepted = whole["draft_n"], whole["draft_n_accepted"]
    emitted = whole["predicted_n"] if whole["predicted_n"] is not None else whole["completion_tokens"]
    times = {name: _real(found.get(name)) for name in _TIMES}
    speeds = {name: _real(found.get(name)) for name in ("prompt_per_second", "predicted_per_second")}
    if emitted is None and drafted is None:
        return None
    bench = "category" in found and "turns" in found
    if bench and found.get("ok") is False:
        return None
    one_turn = not bench or whole["turns"] == 1
    cache_n, prompt_n = whole["cache_n"], whole["prompt_n"]
    odd = [f"{name} is no whole number" for name in _WHOLE if name in found and whole[name] is None]
    return Reading(
        source=source, line=line, format="speed_bench.py" if bench else "llama.cpp timings",
        scope="request" if one_turn else "conversation", label=clean(str(found["category"])) if bench else "",
        drafted=drafted, accepted=accepted, emitted=emitted, prompt_n=prompt_n, cache_n=cache_n,
        depth=cache_n + prompt_n if cache_n is not None and prompt_n is not None else None,
        prompt_ms=times["prompt_ms"], predicted_ms=times["predicted_ms"],
        prompt_per_s=speeds["prompt_per_second"], predicted_per_s=speeds["predicted_per_second"],
        problems=(*odd, *derive.problems_of(
            drafted=drafted, accepted=accepted, other=(emitted, prompt_n, cache_n, *times.values(), *speeds.values()))),
    )  # fmt: skip


@dataclass(slots=True)
class Stream:
    """The `timings` of one response: alone, or streamed with every token, where their differences are the steps."""

    last: Reading
    drafted: list[int] = field(default_factory=list)
    accepted: list[int] = field(default_factory=list)
    whole: bool = True

    @classmethod
    def begin(cls, reading: Reading) -> "Stream":
        """Return a response of which one state is known."""
        return cls(reading, whole=(reading.emitted or 0) <= 1 and not reading.drafted)

    def goes_on(self, later: Reading) -> bool:
        """Take a later state of the same response, or return False if it is of another."""
        if not joined(self.last, later):
            return False
        drafted = (later.drafted or 0) - (self.last.drafted or 0)
        accepted = (later.accepted or 0) - (self.last.accepted or 0)
        if drafted:
            self.drafted.append(drafted)
            self.accepted.append(accepted)
        self.whole = self.whole and accepted <= drafted and (later.emitted or 0) - (self.last.emitted or 0) <= 1
        self.last = later
        return True

    def reading(self) -> Reading:
        """Return the report of the response: its last state, with its steps where each token was seen."""
        if not self.whole or not self.drafted:
            return self.last
        n = exactly(len(self.drafted), "derived")
        return self.last._replace(steps=n, step_drafted=tuple(self.drafted), step_accepted=tuple(self.accepted))


def joined(earlier: Reading, later: Reading) -> bool:
    """Return whether a `timings` object is a later state of the same streamed response."""
    same = ("prompt_n", "prompt_ms", "cache_n", "format", "source")
    return (
        later.format == "llama.cpp timings"
        and all(getattr(earlier, name) == getattr(later, name) for name in same)
        and (earlier.emitted or 0) <= (later.emitted or 0)
        and (earlier.predicted_ms or 0) <= (later.predicted_ms or 0)
        and (earlier.drafted or 0) <= (later.drafted or 0)
        and (earlier.accepted or 0) <= (later.accepted or 0)
    )


def speed(source: str, line: int, found: Mapping[str, Any]) -> Speed | None:
    """Return a test of `llama-bench -o json` or `-o jsonl`."""
    per_s = _real(found.get("avg_ts"))
    counts = {name: _whole(found.get(name)) or 0 for name in ("n_prompt", "n_gen")}
    if per_s is None or not 0 <= per_s <= derive.ABSURD:
        return None
    depth, samples = _whole(found.get("n_depth")), found.get("samples_ts")
    parts = [f"pp{counts['n_prompt']}"] * bool(counts["n_prompt"]) + [f"tg{counts['n_gen']}"] * bool(counts["n_gen"])
    return Speed(
        source=source,
        line=line,
        test="+".join(parts) + (f" @ d{depth}" if depth else ""),
        model=clean(str(found.get("model_type", ""))),
        build=clean(f"{found.get('build_number', '')} {found.get('build_commit', '')}"),
        backend=clean(str(found.get("backends", ""))),
        n_prompt=counts["n_prompt"],
        n_gen=counts["n_gen"],
        n_depth=depth,
        per_s=per_s,
        stddev=_real(found.get("stddev_ts")),
        repeats=len(samples) if isinstance(samples, list) else None,
    )


_TIMES = ("prompt_ms", "predicted_ms")
_WHOLE = ("draft_n", "draft_n_accepted", "predicted_n", "completion_tokens", "prompt_n", "cache_n", "turns")


def _whole(value: Any) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return int(value) if -derive.ABSURD <= value <= 10 * derive.ABSURD and value == int(value) else None


def _real(value: Any) -> float | None:
    return (
        float(value) if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e300 else None
    )
