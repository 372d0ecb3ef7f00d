"""Tidy tables of what was ingested: one row a report, a position, a step, an estimate, a fact, a gate's finding."""

from collections.abc import Iterable, Mapping
from typing import Any

import pandas as pd

from analysis.gates import Finding
from analysis.ingest.checks import check
from analysis.ingest.estimate import Estimate, Fact, estimates, facts, running_estimates
from analysis.ingest.gather import Ingested, Totals
from analysis.ingest.model import Reading

Row = dict[str, Any]

MEANINGS = {
    "survival": "steps that accept at least so many tokens, over all verification steps",
    "proposal": "the same, over the steps that drafted so many",
    "conditional": "the same, over the steps that accepted the position before and drafted this one",
    "aggregate": "accepted tokens over drafted tokens",
    "mean length": "1 + accepted tokens / verification steps",
    "decode rate": "printed tokens a second of decoding, each request's by its time",
}


def report_row(reading: Reading) -> Row:
    """Return a report as a row of plain values; missing ones are None."""
    return {
        "source": reading.source, "line": reading.line, "format": reading.format, "scope": reading.scope,
        "server": reading.server, "slot": reading.slot, "task": reading.task, "spec_type": reading.spec_type,
        "label": reading.label, "drafted": reading.drafted, "accepted": reading.accepted,
        "printed_rate": reading.rate, "printed_mean_length": reading.mean_length,
        "steps_low": reading.steps.low, "steps_high": reading.steps.high, "steps_known": reading.steps.how,
        "n_max": reading.n_max.value, "emitted": reading.emitted, "prompt_n": reading.prompt_n,
        "cache_n": reading.cache_n, "depth": reading.depth, "prompt_ms": reading.prompt_ms,
        "predicted_ms": reading.predicted_ms, "prompt_per_s": reading.prompt_per_s,
        "predicted_per_s": reading.predicted_per_s, "restored": reading.restored,
        "problems": "; ".join(reading.problems),
    }  # fmt: skip


def position_rows(reading: Reading) -> list[Row]:
    """Return the printed or counted curve of a report, a row a position. Every known log prints survival."""
    counts = reading.survival_counts or (None,) * len(reading.survival)
    return [
        {"source": reading.source, "line": reading.line, "position": place, "meaning": "survival", "value": share,
         "steps_surviving": count, "steps": reading.steps.value}
        for place, (share, count) in enumerate(zip(reading.survival, counts, strict=True), 1)
    ]  # fmt: skip


def step_rows(reading: Reading) -> list[Row]:
    """Return the steps that a log shows of a request, a row a step."""
    return [
        {"source": reading.source, "line": reading.line, "index": index, "drafted": drafted, "accepted": accepted}
        for index, (drafted, accepted) in enumerate(zip(reading.step_drafted, reading.step_accepted, strict=True))
    ]  # fmt: skip


def held(ingested: Ingested, totals: Totals) -> list[Reading]:
    """Return the reports of a group that are held, in order."""
    return [
        reading
        for reading in ingested.readings
        if (reading.source, reading.server) == (totals.source, totals.server)
        and " ".join(part for part in (reading.scope, reading.label) if part) == totals.scope
    ]


def all_estimates(ingested: Ingested) -> list[Estimate]:
    """Return the acceptances of every group of reports and of every counter that runs on."""
    found = [one for totals in ingested.totals for one in estimates(totals, held(ingested, totals))]
    return found + [one for reading in ingested.running if reading.fit for one in running_estimates(reading)]


def all_facts(ingested: Ingested) -> list[tuple[Totals, Fact]]:
    """Return what is known and what is not of every group of reports."""
    return [
        (totals, fact)
        for totals in ingested.totals
        for fact in facts(totals, ingested.setup(totals.source, totals.server), held(ingested, totals))
    ]


def estimate_row(estimate: Estimate) -> Row:
    """Return an estimate as a row."""
    interval = estimate.interval
    return {
        "source": estimate.source, "server": estimate.server, "scope": estimate.scope, "meaning": estimate.meaning,
        "position": estimate.position or None, "relation": estimate.relation, "value": interval.estimate,
        "low": interval.low, "high": interval.high, "method": interval.method, "level": interval.level,
        "n": interval.n, "unit": interval.unit, "note": interval.note, "successes": estimate.successes,
        "trials": estimate.trials, "known": estimate.how,
    }  # fmt: skip


def tables(ingested: Ingested) -> dict[str, pd.DataFrame]:
    """Return the tables that are small at any size of file: what is known, estimates, gates, speeds, files."""
    rows: Mapping[str, Iterable[Row]] = {
        "estimates": [estimate_row(one) for one in all_estimates(ingested)],
        "known": [
            {"source": totals.source, "server": totals.server, "scope": totals.scope, "quantity": fact.quantity,
             "known": fact.how, "value": fact.value, "why": fact.why}
            for totals, fact in all_facts(ingested)
        ],
        "gates": [gate_row(one) for one in check(ingested)],
        "speeds": [_plain(one) for one in ingested.speeds],
        "files": [_plain(one) for one in ingested.files],
    }  # fmt: skip
    return {name: pd.DataFrame(list(found)) for name, found in rows.items()}


def gate_row(found: Finding) -> Row:
    """Return a gate's finding as a row."""
    return {
        "gate": found.gate, "level": found.level, "where": str(found.where), "saw": found.saw,
        "expected": found.expected,
    }  # fmt: skip


def _plain(item: Any) -> Row:
    return {name: getattr(item, name) for name in item.__slots__}
