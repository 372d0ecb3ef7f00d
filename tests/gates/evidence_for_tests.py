"""A small run in good order, for tests that put one thing out of order."""

from typing import Any

from analysis.gates import Evidence
from analysis.records import Cell, Sample
from factories import make_cell, make_host, make_life, make_run, make_sample

DRAFTED = make_cell()
RAW = make_cell(pair="smollm2-raw", spec_type="none", n_max=0)


def drafted_sample(number: int, cell: Cell = DRAFTED, **changes: Any) -> Sample:
    own = {"index": number, "cell": cell.id, "prompt_id": f"prompt-{number}", "prompt_sha256": f"{number:064x}"}
    return make_sample(**(own | changes))


def raw_sample(number: int, cell: Cell = RAW, **changes: Any) -> Sample:
    """The same eight tokens, one an evaluation after the first."""
    raw: dict[str, Any] = {
        "server": "raw-0",
        "leg": "raw",
        "leg_order": 1,
        "draft_n": 0,
        "draft_n_accepted": 0,
        "drafted": (0,) * 7,
        "accepted": (0,) * 7,
        "step_ms": (10.0, 10.5, 9.5, 10.0, 10.2, 9.8, 10.0 + 0.1 * (number % 3)),
    }
    return drafted_sample(number, cell, **(raw | changes))


def varied(number: int, **changes: Any) -> Sample:
    """Steps that accepted 2, 0, 2 or 3, 1, 1 or 1, 2, 0, so that prompts differ."""
    accepted = ((2, 0, 2), (3, 1, 1), (1, 2, 0))[number % 3]
    own = {
        "accepted": accepted,
        "draft_n_accepted": sum(accepted),
        "tokens": tuple(range(1 + sum(accepted) + len(accepted))),
        "step_ms": (20.0, 19.0, 21.0 + number % 3),
        "leg_order": number % 2,
    }
    return drafted_sample(number, **(own | changes))


def make_evidence(**changes: Any) -> Evidence:
    """Six prompts on each of two legs, in turns; nothing to complain about."""
    samples = [varied(n) for n in range(6)] + [raw_sample(n + 6, leg_order=1 - n % 2) for n in range(6)]
    quiet = make_host(load1=0.2)
    run = make_run(cells=(DRAFTED, RAW), ended="2026-01-01T01:00:00+00:00", host_before=quiet, host_after=quiet)
    lives = (make_life(), make_life(id="raw-0", pair="smollm2-raw"))
    whole = {"run": run, "samples": samples, "lives": lives, "contrasts": ((DRAFTED.id, RAW.id),)}
    return Evidence(**(whole | changes))
