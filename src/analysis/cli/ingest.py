"""`specbook ingest FILE...`: what somebody else's log, counters or results say of speculation, and what they do not."""

import json
import math
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from analysis.cli import app
from analysis.cli.show import console, harmless, size
from analysis.ingest.checks import mixed
from analysis.ingest.estimate import Estimate, Fact
from analysis.ingest.frames import MEANINGS, all_estimates, all_facts, report_row, tables
from analysis.ingest.gather import Ingested, Totals, gather
from analysis.ingest.read import Found, read_log, read_stream
from analysis.ingest.write import Tables
from analysis.records import Problem

SHOWN = 20
"""Reports that the terminal shows."""

_COLOURS = {"refuse": "red", "warn": "yellow", "unchecked": "blue", "pass": "green"}


class Kind(StrEnum):
    """Formats of written tables."""

    PARQUET = "parquet"
    CSV = "csv"


@app.command()
def ingest(
    files: Annotated[list[Path], typer.Argument(help="Logs, pages of /metrics, JSON results; - reads from a pipe.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    out: Annotated[Path | None, typer.Option(help="A folder to write the tables into.")] = None,
    kind: Annotated[Kind, typer.Option("--format", help="Format of the written tables.")] = Kind.PARQUET,
) -> None:
    """Read what people have: which acceptance a number is, what is not known, and which gates it passes."""
    writer = Tables(out, "csv" if kind is Kind.CSV else "parquet") if out else None
    with writer or nullcontext():
        ingested = gather(_read(files), writer.add if writer else None)
    if not ingested.readings and not ingested.speeds:
        looked = ", ".join(f"{file.source} ({size(file.size)})" for file in ingested.files)
        raise Problem(
            f"nothing that reports speculation in {looked}",
            expected="a log of llama-server, ik_llama.cpp or vLLM, a /metrics page, timings, or a benchmark's JSON",
            remedy="llama-server prints acceptance only for requests that drafted",
        )
    written = writer.finish(tables(ingested)) if writer else []
    if as_json:
        print(_json(ingested))
        return
    _show(ingested)
    for path in written:
        console.print(f"wrote {harmless(str(path), 4096)}", soft_wrap=True)


def _read(files: list[Path]) -> Iterator[Found]:
    for path in files:
        yield from read_stream(sys.stdin.buffer, "standard input") if str(path) == "-" else read_log(path)


def _json(ingested: Ingested) -> str:
    frames = tables(ingested)
    content: dict[str, Any] = {name: _records(frame.to_dict("records")) for name, frame in frames.items()}
    reports = []
    for reading in ingested.readings:
        row = report_row(reading) | {"survival": list(reading.survival), "problems": list(reading.problems)}
        reports.append(row)
    content |= {"reports": _records(reports), "reports_left_out": ingested.left_out, "mixed": mixed(ingested)}
    content["meanings"] = MEANINGS
    return json.dumps(content, indent=1, allow_nan=False).replace("<", "\\u003c").replace(">", "\\u003e")


def _records(rows: Sequence[Mapping[Any, Any]]) -> list[dict[str, Any]]:
    return [
        {name: None if isinstance(v, float) and not math.isfinite(v) else v for name, v in row.items()} for row in rows
    ]


def _show(ingested: Ingested) -> None:
    for file in ingested.files:
        said = f"{file.hits:,} lines read" + (f", {file.misses:,} looked alike and were not" if file.misses else "")
        console.print(f"{harmless(file.source)}: {size(file.size)}, {said}, {file.encoding}", soft_wrap=True)
    for line in mixed(ingested):
        console.print(f"[red]mixed[/]: {harmless(line)}; sums over it mean nothing", soft_wrap=True)
    if ingested.readings:
        console.print(_reports(ingested))
    rest = len(ingested.readings) + ingested.left_out - SHOWN
    if rest > 0:
        console.print(f"… and {rest:,} more reports; --out writes them all")
    if ingested.speeds:
        console.print(_speeds(ingested))
    for (source, server, scope), found in _by_group(all_estimates(ingested)).items():
        title = " ".join(part for part in (source, server, scope) if part)
        console.print(f"\n[bold]{harmless(title)}[/]", soft_wrap=True)
        _estimates(found)
        _known([fact for totals, fact in all_facts(ingested) if _group(totals) == (source, server, scope)])
    _gates(tables(ingested)["gates"].to_dict("records"))


def _group(item: Estimate | Totals) -> tuple[str, str, str]:
    return item.source, item.server, item.scope


def _by_group(found: list[Estimate]) -> dict[tuple[str, str, str], list[Estimate]]:
    groups: dict[tuple[str, str, str], list[Estimate]] = {}
    for one in found:
        groups.setdefault(_group(one), []).append(one)
    return groups


def _reports(ingested: Ingested) -> Table:
    table = Table("line", "report of", "accepted/drafted", "steps", "mean length", "survival", "problems", box=None)
    for reading in sorted(ingested.readings[:SHOWN], key=lambda reading: (reading.source, reading.line)):
        place = f"{reading.source}:{reading.line}" if len(ingested.files) > 1 else str(reading.line)
        slot = "" if reading.slot is None else f"slot {reading.slot}"
        of = (reading.format, reading.scope, reading.label, reading.spec_type, slot)
        counts = "not said" if reading.drafted is None else f"{reading.accepted}/{reading.drafted}"
        steps = f"{reading.steps}" + (f" ({reading.steps.how})" if reading.steps.low is not None else "")
        length = "–" if reading.mean_length is None else f"{reading.mean_length:g}"
        curve = " ".join(f"{share:.3g}" for share in reading.survival[:8]) or "–"
        cells = (place, ", ".join(filter(None, of)), counts, steps, length, curve)
        table.add_row(*map(harmless, cells), f"[red]{harmless('; '.join(reading.problems))}[/]")
    return table


def _estimates(found: list[Estimate]) -> None:
    for meaning in MEANINGS:
        own = [one for one in found if one.meaning == meaning]
        if not own:
            continue
        values = " ".join(
            ("≥ " if one.relation == "at least" else "") + one.interval.format().removesuffix(" (no interval)")
            for one in own
        )
        counts = f" ({own[0].successes:,} of {own[0].trials:,})" if meaning == "aggregate" else ""
        console.print(f"{meaning}: {values}{counts}", soft_wrap=True)
    console.print(f"[dim]{harmless(found[0].interval.describe())}[/]", soft_wrap=True)


def _known(found: list[Fact]) -> None:
    if not found:
        return
    for fact in found:
        if fact.how != "unknown":
            how = {"bounded": "within limits", "derived": "worked out"}.get(fact.how, fact.how)
            console.print(f"  {fact.quantity}: {harmless(fact.value)} [dim]({how}: {fact.why})[/]", soft_wrap=True)
    missing = ", ".join(fact.quantity for fact in found if fact.how == "unknown")
    console.print(f"  [yellow]not known[/]: {missing}", soft_wrap=True)


def _speeds(ingested: Ingested) -> Table:
    table = Table("llama-bench", "model", "backend", "tokens/s", "±", "repeats", box=None)
    for speed in ingested.speeds[:SHOWN]:
        spread = "" if speed.stddev is None else f"{speed.stddev:.2f}"
        cells = (speed.test, speed.model, speed.backend, f"{speed.per_s:.2f}", spread, str(speed.repeats or ""))
        table.add_row(*map(harmless, cells))
    return table


def _gates(rows: Sequence[Mapping[Any, Any]]) -> None:
    judged = [row for row in rows if row["level"] != "unchecked"]
    if judged:
        table = Table("gate", "", "where", "saw", box=None)
        for row in judged:
            level = f"[{_COLOURS[row['level']]}]{row['level']}[/]"
            table.add_row(row["gate"], level, harmless(row["where"]), harmless(row["saw"]))
        console.print()
        console.print(table)
    levels = Counter(row["level"] for row in rows)
    console.print("gates: " + ", ".join(f"{levels[level]} {level}" for level in _COLOURS))
    for row in rows:
        if row["level"] == "unchecked":
            console.print(f"  [blue]unchecked[/] {row['gate']}: {harmless(row['saw'])}", soft_wrap=True)
