"""Recorded curves whose cause is known, and the sign that each is given: a test of the thresholds on real servers."""

import json
import tomllib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pandas as pd

from analysis.ingest.curve import Curve, padded, run_curves, steps_group
from analysis.ingest.diagnose import causes, diagnose
from analysis.records.places import data_dir
from analysis.records.store import RunDir

SERVED = "smollm2-dspark-served.json"
FAILURES = "*-failures-*"

Row = Mapping[str, Any]
Place = Callable[[Row], int]


def recorded() -> pd.DataFrame:
    """Return what is named for every recorded curve of known cause.

    Samples that gates refuse are in these curves: faults are what is shown here, and gates refuse some for just that.

    Columns: `what` was served, its `cause`, the `sign` of that cause, what was `named` (or `undecided`), the
    conditional acceptance and the verification steps behind it.
    """
    signs = {cause.id: cause.sign for cause in causes()}
    rows = []
    for what, cause, curve in (*_served(), *_failures()):
        found = diagnose(curve)
        survived, reached = curve.totals
        rows.append(
            {
                "what": what,
                "cause": cause,
                "sign": signs[cause],
                "named": found.named.sign if found.named else "undecided",
                "conditional": " ".join(f"{value:.2f}" for value in curve.conditional),
                "steps": reached[0] if survived else 0,
            }
        )
    return pd.DataFrame(rows)


def _served() -> Iterator[tuple[str, str, Curve]]:
    """Yield the shipped drafter and earlier ones, by kind of text before a loop begins, and within the loops."""
    content = json.loads((data_dir() / "drafters" / SERVED).read_text(encoding="utf-8"))
    requests = content["requests"]
    for drafter in content["drafters"]:
        own = [row for row in requests if row["drafter"] == drafter]
        for kind in dict.fromkeys(row["kind"] for row in own):
            chosen = [row for row in own if row["kind"] == kind]
            yield f"{drafter}, {kind}", "healthy", _curve(chosen, _start, _loop)
        yield f"{drafter}, loops", "loop", _curve([row for row in own if row["loops"]], _loop, _end)


def _failures() -> Iterator[tuple[str, str, Curve]]:
    legs = tomllib.loads((data_dir() / "diagnosis" / "recorded.toml").read_text(encoding="utf-8"))["leg"]
    for file in sorted((data_dir() / "runs").glob(f"{FAILURES}/run.json")):
        for curve in run_curves(RunDir.open(file.parent)):
            leg = curve.title.rsplit(", ", 1)[-1]
            if leg in legs:
                yield f"{file.parent.name}, {leg}", legs[leg], curve


def _curve(rows: list[Row], first: Place, last: Place) -> Curve:
    places = [(row, slice(first(row), last(row))) for row in rows]
    groups = [steps_group(row["drafted"][part], row["accepted"][part]) for row, part in places]
    n_max = max(max(row["drafted"], default=0) for row in rows)
    return Curve(title=SERVED, groups=tuple(padded([g for g in groups if g is not None], n_max)), n_max=n_max)


def _start(row: Row) -> int:
    return 0


def _loop(row: Row) -> int:
    return int(row["steps_before_loop"])


def _end(row: Row) -> int:
    return len(row["drafted"])
