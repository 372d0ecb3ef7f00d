"""The report of a request, or of an implementation of speculation, from what its lines printed."""

from typing import Any

from analysis.ingest import derive
from analysis.ingest.derive import number
from analysis.ingest.lives import Request, Server
from analysis.ingest.model import MAX_POSITIONS, UNKNOWN, Format, Known, Reading, exactly

_NO_CURVE = derive.curve(None)


def request_reading(source: str, server: Server, request: Request) -> Reading:
    """Return the report of one request."""
    texts = request.texts
    accepted = int(texts["accepted"]) if "accepted" in texts else None
    drafted = int(texts["drafted"]) if "drafted" in texts else None
    emitted = int(texts["emitted"]) if "emitted" in texts else None
    prompt_n = int(texts["prompt_n"]) if "prompt_n" in texts else None
    cache_n = int(texts["cache_n"]) if "cache_n" in texts else None
    depth = int(texts["depth"]) if "depth" in texts else None
    prompt_ms = number(texts["prompt_ms"]) if "prompt_ms" in texts else None
    predicted_ms = number(texts["predicted_ms"]) if "predicted_ms" in texts else None
    prompt_per_s = number(texts["prompt_per_s"]) if "prompt_per_s" in texts else None
    predicted_per_s = number(texts["predicted_per_s"]) if "predicted_per_s" in texts else None
    mean = number(texts["mean_length"]) if "mean_length" in texts else None
    rate = number(texts["rate"]) if "rate" in texts else None
    survival, half, wrong = derive.curve(texts["positions"]) if "positions" in texts else _NO_CURVE
    n_max = exactly(len(survival)) if survival else _limit(server)
    problems = wrong + derive.problems_of(
        drafted=drafted, accepted=accepted, rate=rate, rate_half=derive.half_unit(texts.get("rate", b"0.00000")),
        mean_length=mean, survival=survival, half=half,
        other=(emitted, prompt_n, cache_n, depth, prompt_ms, predicted_ms),
    )  # fmt: skip
    steps = UNKNOWN if problems else _steps(request, accepted, drafted, mean, survival, half, n_max)
    if not problems and mean is not None and accepted and steps is UNKNOWN:
        problems = (f"a mean length of {mean:g} that no number of steps gives",)
    whole_steps = bool(request.drafted_steps) and _completed(request, accepted, drafted, steps)
    counts = derive.counts_of(survival, steps.value, half) if survival and steps.value else ()
    if whole_steps and not counts and not problems:
        counts = survivors(request.accepted_steps, max(request.drafted_steps, default=0))
        survival = survival or tuple(count / len(request.accepted_steps) for count in counts)
    if depth is None and cache_n is not None and prompt_n is not None:
        depth = cache_n + prompt_n
    # In the order of the fields: by name it takes six times as long, and this is done a million times a gigabyte.
    return Reading._make((
        source, request.draft_line or request.line, "llama-server request", "request", server.name, request.slot,
        request.task, server.spec_types[0] if len(server.spec_types) == 1 else "", "", drafted, accepted, rate, steps,
        n_max, mean, survival, counts, tuple(request.drafted_steps) if whole_steps else (),
        tuple(request.accepted_steps) if whole_steps else (), request.restored, emitted, prompt_n, cache_n, depth,
        prompt_ms, predicted_ms, prompt_per_s, predicted_per_s, problems,
    ))  # fmt: skip


def ordinary_reading(
    source: str, server: Server, key: tuple[int, int], groups: tuple[Any, ...], number: int
) -> Reading | None:
    """Return what `request_reading` would of a request whose last lines were read at once, without a detour.

    Args:
        source: the file's name.
        server: the life that the request belongs to.
        key: its slot and task.
        groups: all groups of a match of `endings`.
        number: the number of the first of the lines.

    None where there is a curve or something to complain of.
    """
    prompt_ms, prompt_n, prompt_per_s, predicted_ms, emitted, predicted_per_s, graphs = groups[5:12]
    rate, accepted, drafted, mean, positions = groups[12:17]
    limit = _limit(server) if server.limits else UNKNOWN
    took = of = share = length = None
    steps = UNKNOWN
    if rate is not None:
        took, of, share = int(accepted), int(drafted), float(rate)
        if positions is not None or mean is None or not 0 < took <= of or share > 1:
            return None
        length = float(mean)
        if abs(share - took / of) > derive.half_unit(rate) + 1e-6 or not 1 <= length <= MAX_POSITIONS + 1:
            return None
        steps = derive.steps_from_mean(took, of, length, derive.half_unit(mean), limit.value)
        if steps is UNKNOWN:
            return None
        number += 3 if graphs is None else 4
    # In the order of the fields, as above.
    return Reading._make((
        source, number, "llama-server request", "request", server.name, key[0], key[1],
        server.spec_types[0] if len(server.spec_types) == 1 else "", "", of, took, share, steps, limit, length,
        (), (), (), (), 0, int(emitted), int(prompt_n), None, None, float(prompt_ms), float(predicted_ms),
        float(prompt_per_s), float(predicted_per_s), (),
    ))  # fmt: skip


def survivors(accepted: list[int], positions: int) -> tuple[int, ...]:
    """Return how many steps accepted at least 1, 2, .. tokens."""
    counts = [0] * (min(positions, MAX_POSITIONS) + 1)
    for count in accepted:
        counts[min(count, len(counts) - 1)] += 1
    running, out = 0, []
    for count in reversed(counts[1:]):
        running += count
        out.append(running)
    return tuple(reversed(out))


def statistics_reading(source: str, number: int, server: Server, groups: tuple[bytes | None, ...]) -> Reading:
    """Return what an implementation of speculation says of all that it did so far."""
    kind, calls, _, accepts, drafts, _, generated, accepted, mean, positions = groups
    survival, half, wrong = derive.curve(positions)
    tokens, taken = int(generated or 0), int(accepted or 0)
    length = None if mean is None else derive.number(mean)
    problems = (*wrong, *derive.problems_of(
        drafted=tokens, accepted=taken, mean_length=length, survival=survival, half=half,
        other=(int(calls or 0), int(drafts or 0)),
    ))  # fmt: skip
    steps = UNKNOWN if accepts is None or problems else exactly(int(accepts))
    known = steps.value or 0
    name = (kind or b"").decode("utf-8", "replace")
    made: Format = "llama-server statistics"
    return Reading(
        source=source, line=number, format=made, scope="cumulative", server=server.name, spec_type=name,
        drafted=tokens, accepted=taken, steps=steps, mean_length=length, survival=survival,
        survival_counts=derive.counts_of(survival, known, half) if known else (), problems=problems,
    )  # fmt: skip


def _completed(request: Request, accepted: int | None, drafted: int | None, steps: Known) -> bool:
    """Return whether all steps of a request are there; the last is added where the totals leave just one.

    The line of a step that goes on with the new length is not written for the step in which a reply ends.
    """
    seen = len(request.drafted_steps)
    if not seen or not request.tail_only or accepted is None or drafted is None:
        return bool(seen) and not request.tail_only
    last_drafted, last_accepted = drafted - sum(request.drafted_steps), accepted - sum(request.accepted_steps)
    if seen + 1 == steps.value and 0 <= last_accepted <= last_drafted and last_drafted > 0:
        request.drafted_steps.append(last_drafted)
        request.accepted_steps.append(last_accepted)
        return True
    return seen == steps.value and last_drafted == last_accepted == 0


def _limit(server: Server) -> Known:
    return exactly(int(server.limits["n_max"])) if "n_max" in server.limits else UNKNOWN


def _steps(
    request: Request,
    accepted: int | None,
    drafted: int | None,
    mean: float | None,
    survival: tuple[float, ...],
    half: float,
    n_max: Known,
) -> Known:
    if request.drafted_steps and not request.tail_only and sum(request.drafted_steps) == drafted:
        return exactly(len(request.drafted_steps), "counted")
    length = None if mean is None else (mean, derive.half_unit(request.texts["mean_length"]))
    return derive.steps_of(accepted, drafted, mean_length=length, survival=survival, half=half, n_max=n_max.value)
