"""The published tables as data frames for pages, validated with pandera against the same descriptor.

Importing this module takes a second or two; `specbook audit` does without it.
"""

import json
from pathlib import Path
from typing import Any

import pandas as pd
from pandera.errors import SchemaErrors
from pandera.io.pandas_io import from_frictionless_schema

from analysis.evidence import cells, consistency, published, tables
from analysis.evidence import corrections as ledger
from analysis.evidence import step_model as model
from analysis.evidence.audit import VERDICTS, audit
from analysis.evidence.consistency.lengths import conditional
from analysis.evidence.consistency.steps import step_points
from analysis.evidence.formula import break_even
from analysis.evidence.interval import Interval
from analysis.records.errors import Problem


def measured(folder: Path | None = None) -> pd.DataFrame:
    """Return the measured values, one row each, indexed by id.

    Beside the columns of `values.csv` stand `least`, `centre` and `most`, what the printed text may mean in the
    row's unit, and `depth_tokens`, the depth as a number where the card gives one.

    Raises:
        Problem: a cell breaks a rule of the descriptor (file, line, reason).
    """
    frame = validated("values", folder)
    rows = published.rows(folder)
    bounds = [rows[name].printed.interval for name in frame["id"]]
    frame["least"] = [float(b.low) for b in bounds]
    frame["centre"] = [float(b.centre) for b in bounds]
    frame["most"] = [float(b.high) for b in bounds]
    frame["depth_tokens"] = [published.depth_tokens(rows[name]) for name in frame["id"]]
    frame["corrections"] = _notes(frame["id"], folder)
    return frame.set_index("id")


def audited(card: str | None = None, folder: Path | None = None) -> pd.DataFrame:
    """Return the claims with their verdicts, indexed by id, in the order of the cards.

    Columns: card, section, quote, printed, unit, kind, reading, formula, low, high, verdict, off, note, corrections.

    Raises:
        Problem: a line of a table is wrong (file, line, reason).
    """
    results = audit(card, folder)
    frame = pd.DataFrame(
        [
            {
                "id": result.claim.id,
                "section": result.claim.section,
                "unit": result.claim.unit,
                "kind": result.claim.kind,
                "reading": result.claim.reading,
                "formula": "; ".join(f.text for f in result.claim.formulas),
                "off": None if result.off is None else float(result.off),
                **result.plain(),
            }
            for result in results
        ]
    )
    frame["corrections"] = _notes(frame["id"], folder)
    return frame.set_index("id")


def verdicts(folder: Path | None = None) -> pd.DataFrame:
    """Return how many claims of each card have which verdict: cards as rows, verdicts as columns."""
    counts = pd.Series([(r.claim.card, r.verdict) for r in audit(folder=folder)]).value_counts()
    index = [(card, verdict) for card in "AB" for verdict in VERDICTS]
    table = pd.DataFrame(
        [(card, verdict, int(counts.get((card, verdict), 0))) for card, verdict in index],
        columns=["card", "verdict", "claims"],
    )
    return table.pivot_table(index="card", columns="verdict", values="claims")[list(VERDICTS)].astype(int)


def findings() -> pd.DataFrame:
    """Return what the consistency checks find, check by check.

    Columns: check, why (the check's reason), card, outcome, subject, low, high, unit, rows, note, ask.
    """
    why = {check.__name__: (check.__doc__ or "").partition("\n")[0] for check in consistency.CHECKS}
    return pd.DataFrame(
        [
            {
                "check": found.check,
                "why": why[found.check],
                "card": found.card,
                "outcome": found.outcome,
                "subject": found.subject,
                "low": found.low,
                "high": found.high,
                "unit": found.unit,
                "rows": " ".join(found.rows),
                "note": found.note,
                "ask": found.ask,
            }
            for found in consistency.check_all()
        ]
    )


def drafted() -> pd.DataFrame:
    """Return every drafted decode rate with what belongs to it, indexed by the rate's id.

    Columns card, build, depth_tokens, regime, n and n_from (where n was taken from) and, each with `_low` and
    `_high`: decode and raw (tokens/s), length (tokens), step (ms), raw_steps, gain (%), conditional (the constant
    conditional acceptance that would explain the cell). Missing where the card does not say.
    """
    return pd.DataFrame([_drafted(cell) for cell in cells.drafted(published.rows())]).set_index("id")


def _drafted(cell: cells.Drafted) -> dict[str, Any]:
    row = cell.row
    numbers: dict[str, Interval | None] = {
        "decode": row.printed.interval,
        "raw": None if cell.raw is None else cell.raw.printed.interval,
        "length": cell.length,
        "step": cell.step,
        "raw_steps": cell.raw_steps,
        "gain": cell.gain,
        "conditional": None if cell.length is None or cell.n is None else conditional(cell),
    }
    named = {
        "id": row.id,
        "card": row.card,
        "build": row.factors.get("build"),
        "depth_tokens": published.depth_tokens(row),
        "regime": row.factors.get("regime"),
        "acceptance": None if cell.acceptance is None else cell.acceptance.id,
        "raw_id": None if cell.raw is None else cell.raw.id,
        "n": cell.n,
        "n_from": cell.n_from,
        "length_from": cell.length_from,
    }
    return named | {f"{name}{end}": bound for name, value in numbers.items() for end, bound in _bounds(value)}


def _bounds(value: Interval | None) -> list[tuple[str, float | None]]:
    if value is None:
        return [("", None), ("_low", None), ("_high", None)]
    return [("", float(value.centre)), ("_low", float(value.low)), ("_high", float(value.high))]


def break_even_grid() -> pd.DataFrame:
    """Return card A's break-even acceptance for each printed step and either end of its raw rate.

    Columns: step (id), step_ms, raw (tokens/s), acceptance, acceptance_low, acceptance_high: what the printed digits
    give and what their rounding allows. The card's envelope runs from the least to the greatest.
    """
    rows = published.rows()
    raw, n = rows["a_raw176"].printed, rows["a_n_max_176k"].printed.interval
    steps = [(name, duration) for _, duration, name in step_points(rows, "A")]
    steps.append(("a_step_range", rows["a_step_range"].printed.last))
    grid = []
    for name, duration in steps:
        for rate in (raw.first, raw.last):
            acceptance = break_even(rate, duration, n)
            bounds = {f"acceptance{end}": bound for end, bound in _bounds(acceptance)}
            grid.append({"step": name, "step_ms": float(duration.centre), "raw": float(rate.centre), **bounds})
    return pd.DataFrame(grid)


def step_model() -> pd.DataFrame:
    """Return the mechanistic model of the step beside each published cell that it can be held against.

    Columns: card, build, depth_tokens, n, target, drafter, drafter_stated, and, each with `_low` and `_high`:
    raw_steps (the model's drafted step in raw steps), measured (what the card implies), error (%), bandwidth (GB/s
    that the raw rate needs). The upper bound of raw_steps is for rows that are routed independently.
    """
    return pd.DataFrame([_compared(found) for found in model.compare(published.rows())]).set_index("id")


def _compared(found: model.Predicted) -> dict[str, Any]:
    row = found.cell.row
    numbers = {
        "raw_steps": found.raw_steps,
        "measured": found.measured,
        "error": found.error,
        "bandwidth": found.bandwidth,
    }
    return {
        "id": row.id,
        "card": row.card,
        "build": row.factors.get("build"),
        "depth_tokens": published.depth_tokens(row),
        "n": found.cell.n,
        "target": found.target.id,
        "drafter": found.drafter.id,
        "drafter_stated": found.drafter_stated,
    } | {f"{name}{end}": bound for name, value in numbers.items() for end, bound in _bounds(value)}


def corrections(folder: Path | None = None) -> pd.DataFrame:
    """Return the ledger of corrections, indexed by id."""
    ledger.corrections(folder)
    return validated("corrections", folder).set_index("id")


def validated(resource: str, folder: Path | None = None) -> pd.DataFrame:
    """Return a table as a frame with the descriptor's types; empty cells are missing values.

    Raises:
        Problem: a cell breaks a rule of the descriptor (file, line, reason).
    """
    folder = folder or tables.published_dir()
    package = json.loads((folder / "datapackage.json").read_text(encoding="utf-8"))
    schema = next(entry["schema"] for entry in package["resources"] if entry["name"] == resource)
    frame = pd.read_csv(folder / f"{resource}.csv", dtype=str, keep_default_na=False, na_values=[""])
    try:
        checked: pd.DataFrame = from_frictionless_schema(schema).validate(frame, lazy=True)
    except SchemaErrors as errors:
        raise _first(errors, resource) from None
    return checked


def _first(errors: SchemaErrors, resource: str) -> Problem:
    case: dict[str, Any] = errors.failure_cases.iloc[0].to_dict()
    line = "" if pd.isna(case["index"]) else f":{int(case['index']) + 2}"
    return Problem(f"{resource}.csv{line}: {case['column']} {case['failure_case']!r} fails {case['check']}")


def _notes(ids: "pd.Series[str]", folder: Path | None) -> list[str]:
    notes = ledger.notes_for(ids, folder)
    return [" ".join(c.id for c in notes.get(name, ())) for name in ids]
