"""What the measured chapters share: the run they show, and the box that says where its numbers come from."""

from collections.abc import Mapping
from dataclasses import fields
from pathlib import PurePosixPath
from typing import Any

import pandas as pd

from analysis.gates import Finding
from analysis.measure.access import ServerAccess
from analysis.measure.plan import Grid, load_grid
from analysis.measure.study import Study, measure_study, open_study
from analysis.publish.commands import START_THEM, measure_again, measure_rows, needs_servers
from analysis.publish.formats import format_interval
from analysis.publish.served import started_sentence
from analysis.publish.tables import Markdown, escape_text
from analysis.records import Run
from analysis.stats.intervals import FEW_CLUSTERS

SIZES = tuple(field.name for field in fields(Grid))


def study_of(parameters: Mapping[str, object], *, raw: bool) -> Study:
    """Return the study that a chapter's parameters ask for: a recorded run, or a measurement.

    With `raw`, the target is also measured without speculation, prompt by prompt beside the drafted leg.

    Raises:
        Problem: see `measure_study` and `open_study`.
    """
    run = str(parameters.get("run") or "")
    if run:
        return open_study(run)
    size = {name: parameters[name] for name in SIZES if parameters.get(name) is not None}
    depth = parameters.get("depth")
    profile = str(parameters["profile"])
    if "depth" in parameters:
        size["depths"] = [depth or load_grid(profile).depths[0]]
    return measure_study(
        str(parameters["pair"]),
        profile=profile,
        serving=str(parameters.get("serving") or ""),
        size=size,
        corpus=str(parameters.get("corpus") or ""),
        server=ServerAccess(str(parameters.get("server_url") or ""), str(parameters.get("api_key_file") or "")),
        raw=raw,
        remeasure=bool(parameters.get("remeasure")),
    )


def provenance(study: Study, chapter: str, parameters: str | None = None) -> Markdown:
    """Return the box that lets a reader follow a page's numbers back and make them again.

    `parameters` are those of the command that measures anew; by default the run's pair and profile.
    """
    run = study.run
    kept = len(study.publishable)
    dirty = ", with uncommitted changes" if run.dirty else ""
    rows = [
        ("run", f"`{run.id}`, {len(study.samples)} samples on all legs, {kept} of them fit to publish"),
        ("machine", _machine(run)),
        ("engine", f"llama-server {run.engine.version}, commit {run.engine.commit or 'unknown'}, {run.engine.backend}"),
        ("files", _files(run)),
        ("text", f"{run.corpus} (SHA-256 {run.corpus_sha256[:16]})"),
        (
            "measured",
            f"{run.created} to {run.ended or 'not finished'}, at commit {run.commit[:12] or 'unknown'}{dirty}",
        ),
    ]
    if started := started_sentence(study):
        rows.append(("servers", started))
    rows.append(("not checked", _unchecked(study)))
    lines = [f"{name}\n: {escape_text(value) if name != 'run' else _with_code(value)}\n" for name, value in rows]
    warned = [escape_text(warning) for warning in warnings_of(study)] or ["of nothing that concerns the whole run"]
    lines.append("\n: ".join(["gates warned", *warned]) + "\n")
    own = f"papermill notebooks/{chapter}.ipynb out.ipynb {parameters}"
    again = measure_again(run, chapter) if parameters is None else own
    body = "\n".join(lines)
    rows_again = "\n".join(f"$ {command}" for command in measure_rows(run, chapter) if command != again)
    start = f" {START_THEM}" if needs_servers(run) and parameters is None else ""
    one_row = f"~~~{{dropdown}} Reproduce one row\n```console\n{rows_again}\n```\n~~~\n" if rows_again else ""
    return Markdown(
        f"````{{admonition}} Where these numbers come from\n:class: provenance\n{body}\n"
        f"To measure them again:{start}\n```console\n$ {again}\n```\n"
        f"{one_row}````"
    )


def pair_in_words(study: Study) -> str:
    """Return the sentence that names what was measured: the title of the pair, without that of the grid."""
    run = study.run
    return f"{escape_text(run.title.removesuffix(f', {run.profile}'))}."


def _files(run: Run) -> str:
    named = [f"{PurePosixPath(file.path).name} (SHA-256 {file.sha256[:16]})" for file in run.files]
    return ", ".join(named) or "none was read"


def _machine(run: Run) -> str:
    if not run.machine.memory:
        return run.machine.cpu
    return f"{run.machine.cpu}, {run.machine.cores} cores, {run.machine.memory / 2**30:.0f} GiB"


def _unchecked(study: Study) -> str:
    """Return what nobody could check in this run; a server that somebody else started tells little of itself."""
    gates = ", ".join(dict.fromkeys(found.gate for found in study.findings if found.level == "unchecked"))
    if study.run.engine.source != "url":
        return gates or "every gate had its evidence"
    return f"{gates or 'no gate'}; its files, cache types, flash attention, threads and batches: it does not tell them"


def warnings_of(study: Study) -> list[str]:
    """Return what gates warn of that touches every number of the run: the host, the servers, the order of the legs."""
    saw: dict[tuple[str, str], dict[str, None]] = {}
    for found in refusals(study, "warn"):
        if found.where.kind not in ("sample", "cell"):
            saw.setdefault((found.gate, found.expected), {})[found.saw] = None
    return [f"{gate}: {', '.join(distinct)}; expected {expected}" for (gate, expected), distinct in saw.items()]


def warned_sentence(study: Study) -> str:
    """Return, for beside a verdict, what gates warned of that touches every number; empty where it is nothing."""
    found = warnings_of(study)
    return f"Read it with care: gates warned of {'; '.join(map(escape_text, found))}." if found else ""


def in_words(row: Mapping[Any, Any], *, digits: int = 2) -> str:
    """Return a row of estimates as text: estimate, interval, number of prompts, or the refusal."""
    return format_interval(row["estimate"], row["low"], row["high"], row["n"], digits=digits, refused=row["refused"])


def made_how(frame: pd.DataFrame) -> str:
    """Return how the intervals of a frame were made: level, methods, unit of replication, and whether that is few."""
    # What follows a comma in a method's name is why it was taken, row by row.
    methods = [method for method in dict.fromkeys(name.partition(",")[0] for name in frame["method"]) if method]
    few = (frame["low"].notna() & frame["n"].lt(FEW_CLUSTERS)).any()
    warning = f"; n below {FEW_CLUSTERS} is few, and the interval then easily too narrow" if few else ""
    return f"95 %, {', '.join(methods) or 'too few prompts for an interval'}, over prompts{warning}"


def refusals(study: Study, level: str) -> list[Finding]:
    """Return the findings of one level."""
    return [finding for finding in study.findings if finding.level == level]


def _with_code(value: str) -> str:
    first, rest = value.split(",", 1)
    return f"{first}, {escape_text(rest)}"
