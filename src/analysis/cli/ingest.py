"""`specbook ingest FILE...`: what somebody else's log, counters or results say of speculation, and what they do not."""

import json
import math
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from analysis.cli import app
from analysis.cli.show import console, harmless, size
from analysis.gates import Finding, Level
from analysis.ingest.checks import check, mixed
from analysis.ingest.estimate import Estimate, Fact
from analysis.ingest.frames import MEANINGS, all_estimates, all_facts, report_row, tables
from analysis.ingest.gather import Ingested, Totals, gather
from analysis.ingest.model import Reading
from analysis.ingest.read import Found, read_log, read_stream
from analysis.ingest.write import Tables
from analysis.records import Problem

SHOWN = 20
"""Reports that the terminal shows."""

_COLOURS: dict[Level, str] = {"refuse": "red", "warn": "yellow", "unchecked": "blue", "pass": "green"}


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
    same_server: Annotated[
        bool, typer.Option("--same-server", help="The files are of one server: hold its log against its /metrics page.")
    ] = False,
) -> None:
    """Read what people have: which acceptance a number is, what is not known, and which gates it passes."""
    if same_server and len(files) < 2:
        raise Problem("--same-server with one file", expected="a server's log and its /metrics page")
    writer = Tables(out, "csv" if kind is Kind.CSV else "parquet") if out else None
    with writer or nullcontext():
        ingested = replace(gather(_read(files), writer.add if writer else None), same_server=same_server)
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
    shown = sorted(ingested.readings[:SHOWN], key=lambda reading: (reading.source, reading.line))
    several = len(ingested.files) > 1
    for readings, made in (
        ([one for one in shown if one.drafted is not None or one.survival], _reports),
        ([one for one in shown if one.drafted is None and not one.survival], _times),
    ):
        if readings:
            console.print(made(readings, several=several))
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
    _gates(check(ingested), several=several)


def _group(item: Estimate | Totals) -> tuple[str, str, str]:
    return item.source, item.server, item.scope


def _by_group(found: list[Estimate]) -> dict[tuple[str, str, str], list[Estimate]]:
    groups: dict[tuple[str, str, str], list[Estimate]] = {}
    for one in found:
        groups.setdefault(_group(one), []).append(one)
    return groups


def _reports(readings: Sequence[Reading], *, several: bool) -> Table:
    table = Table("line", "report of", "accepted/drafted", "steps", "mean length", "tokens/s", "survival", "problems",
                  box=None)  # fmt: skip
    for reading in readings:
        counts = "not said" if reading.drafted is None else f"{reading.accepted}/{reading.drafted}"
        steps = f"{reading.steps}" + (f" ({reading.steps.how})" if reading.steps.low is not None else "")
        length = "–" if reading.mean_length is None else f"{reading.mean_length:g}"
        curve = " ".join(f"{share:.3g}" for share in reading.survival[:8]) or "–"
        cells = (_line(reading, several=several), _of(reading), counts, steps, length, _number(reading.predicted_per_s),
                 curve)  # fmt: skip
        table.add_row(*map(harmless, cells), f"[red]{harmless('; '.join(reading.problems))}[/]")
    return table


def _times(readings: Sequence[Reading], *, several: bool) -> Table:
    """Return the reports that say nothing of drafts: what they print of tokens, times and speeds."""
    table = Table("line", "report of", "depth", "prompt", "tokens/s", "emitted", "ms", "tokens/s", "problems", box=None)
    for reading in readings:
        numbers = (reading.depth, reading.prompt_n, reading.prompt_per_s, reading.emitted, reading.predicted_ms,
                   reading.predicted_per_s)  # fmt: skip
        cells = (_line(reading, several=several), _of(reading), *map(_number, numbers))
        table.add_row(*map(harmless, cells), f"[red]{harmless('; '.join(reading.problems))}[/]")
    return table


def _line(reading: Reading, *, several: bool) -> str:
    return f"{reading.source}:{reading.line}" if several else str(reading.line)


def _of(reading: Reading) -> str:
    slot = "" if reading.slot is None else f"slot {reading.slot}"
    scope = "" if reading.format.endswith(reading.scope) else reading.scope
    return ", ".join(filter(None, (reading.format, scope, reading.label, reading.spec_type, slot)))


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:,}"


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
        unit = " tokens/s" if meaning == "decode rate" else ""
        console.print(f"{meaning}: {values}{unit}{counts}", soft_wrap=True)
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


def _gates(findings: Sequence[Finding], *, several: bool) -> None:
    judged = [found for found in findings if found.level != "unchecked"]
    if judged:
        table = Table("gate", "", "where", "saw", box=None)
        for found in judged:
            level = f"[{_COLOURS[found.level]}]{found.level}[/]"
            table.add_row(found.gate, level, harmless(str(found.where)), harmless(found.saw))
        console.print()
        console.print(table)
    levels = Counter(found.level for found in findings)
    console.print("gates: " + ", ".join(f"{levels[level]} {level}" for level in _COLOURS))
    places: dict[tuple[str, str], list[str]] = {}
    for (place, saw), gates in _alike(findings).items():
        places.setdefault((", ".join(gates), saw), []).append(place)
    for (names, saw), at in places.items():
        of = f" ({len(at)} places)" if len(at) > 1 else f" ({harmless(at[0])})" if several else ""
        console.print(f"  [blue]unchecked[/] {names}: {harmless(saw)}{of}", soft_wrap=True)


def _alike(findings: Sequence[Finding]) -> dict[tuple[str, str], list[str]]:
    """Return the gates that could not be judged, by the place and the reason that they share."""
    groups: dict[tuple[str, str], list[str]] = {}
    for found in findings:
        if found.level == "unchecked":
            place = "all files" if found.where.kind == "run" else found.where.id
            groups.setdefault((place, found.saw), []).append(found.gate)
    return groups
