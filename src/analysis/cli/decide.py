"""`specbook decide`: should I pass `-md`, here, for these two models?"""

import json
import re
import shlex
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlsplit

import typer
from rich.table import Column, Table

from analysis.cli import app
from analysis.cli.show import console, harmless
from analysis.convert.pairs import load_pair
from analysis.measure.access import ServerAccess
from analysis.measure.between import Said, decide_between
from analysis.measure.decide import Answer, Outcome, pair_of_files
from analysis.measure.decide import decide as measure_and_decide
from analysis.publish.chapters.common import warnings_of
from analysis.records import Pair, Problem, SpecType
from analysis.stats import Interval

_COLOURS = {"pays": "green", "loses": "red", "undecided": "yellow"}
_TIME = re.compile(r"^(\d+(?:\.\d+)?)\s*(s|sec|min|m|h)?$")
BECAUSE = (
    "*because of*: with *step cost* a step takes so long that no acceptance could make it pay; with *acceptance* it "
    "depends on how many drafted tokens are accepted, and the lines below say how many."
)
AGAIN = "More prompts, narrower intervals: the same command again."
ONCE_MORE = (
    "More prompts: the same command again. Its intervals allow for having been looked at: they are wider, and the "
    "first few prompts of a cell have none. To begin anew with more time: --again and a longer --budget."
)
MOST_PLACES = 3
"""As many cells are named in the advice; of more, the table tells which."""
_UNITS = {"s": 1, "sec": 1, "min": 60, "m": 60, "h": 3600, None: 60}


@app.command("decide")
def decide(
    *,
    target: Annotated[Path | None, typer.Option(help="The target, a GGUF file.")] = None,
    drafter: Annotated[Path | None, typer.Option(help="The drafter, a GGUF file.")] = None,
    pair: Annotated[str, typer.Option(help="Instead: a name from data/pairs, or a TOML file.")] = "",
    raw_url: Annotated[str, typer.Option(help="Instead: a running server without a drafter ...")] = "",
    drafted_url: Annotated[str, typer.Option(help="... and one with.")] = "",
    api_key_file: Annotated[str, typer.Option(help="A file with the key of both servers.")] = "",
    drafted_key_file: Annotated[str, typer.Option(help="A file with the drafting server's key, if another.")] = "",
    spec_type: Annotated[
        str,
        typer.Option(help="How the drafter drafts; default: what its file is made for, or what the server says."),
    ] = "",
    n_max: Annotated[
        int | None, typer.Option(min=1, help="The longest draft; default: the best of a few, or what servers show.")
    ] = None,
    p_min: Annotated[
        float | None, typer.Option(min=0, max=1, help="Where drafts end; default: the best of a few that are tried.")
    ] = None,
    depths: Annotated[str, typer.Option(help="Tokens in the context, such as 256,2048.")] = "",
    regimes: Annotated[str, typer.Option(help="Some of invention, continuation, recall, prose; default: all.")] = "",
    budget: Annotated[str, typer.Option(help="How long measuring may take: 90s, 5min, 1h.")] = "5min",
    corpus: Annotated[str, typer.Option(help="A directory with text to prompt with; else Python's own.")] = "",
    again: Annotated[bool, typer.Option("--again", help="Begin a new run; the old one is kept.")] = False,
    same_servers: Annotated[
        bool, typer.Option("--same-servers", help="With two addresses: drafter and settings are those of the run.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print an object.")] = False,
) -> None:
    """Measure with and without the drafter and say, for each kind of text and depth: pays, loses or undecided."""
    options: dict[str, Any] = {"seconds": seconds_of(budget), "corpus": corpus, "size": _size(depths, regimes)}
    options["again"] = again
    if raw_url or drafted_url:
        _check_addresses(raw_url, drafted_url, beside=bool(target or drafter or pair), p_min=p_min)
        servers = ServerAccess(raw_url, api_key_file), ServerAccess(drafted_url, drafted_key_file or api_key_file)
        outcome = decide_between(*servers, Said(_kind(spec_type), n_max or 0, same_servers), **options)
        elsewhere = urlsplit(raw_url).hostname != urlsplit(drafted_url).hostname
    elif same_servers:
        raise Problem("--same-servers is said of running servers", expected="--raw-url and --drafted-url")
    else:
        files = _pair(target, drafter, pair, spec_type, options["size"])
        outcome = measure_and_decide(files, **options, n_max=n_max, p_min=p_min)
        elsewhere = False
    if as_json:
        print(json.dumps(_plain(outcome), ensure_ascii=False, indent=1))
    else:
        _print(outcome, two_hosts=elsewhere)


def _check_addresses(raw_url: str, drafted_url: str, *, beside: bool, p_min: float | None) -> None:
    if beside or not (raw_url and drafted_url):
        raise Problem("one server cannot supply both legs", expected="--raw-url and --drafted-url, and no file or pair")
    if p_min is not None:
        raise Problem("--p-min is no setting of a running server", expected="a server that was started with it")


def seconds_of(text: str) -> float:
    """Return a time in seconds; a number without a unit is minutes.

    Raises:
        Problem: it is no time.
    """
    found = _TIME.match(text.strip())
    if found is None or not float(found[1]):
        raise Problem(f"the budget {text!r} is no time", expected="something like 90s, 5min or 1h")
    return float(found[1]) * _UNITS[found[2]]


def _pair(target: Path | None, drafter: Path | None, name: str, spec_type: str, size: dict[str, object]) -> Pair:
    if name:
        if target or drafter:
            raise Problem("both a pair and files were named", expected="--pair, or --target and --drafter")
        return load_pair(name)
    if target is None or drafter is None:
        raise Problem("nothing to decide", expected="--target and --drafter, or --pair, or --raw-url and --drafted-url")
    depths = size.get("depths")
    deepest = max(depths) if isinstance(depths, list) else 2048
    return pair_of_files(target, drafter, spec_type=_kind(spec_type), context=max(4096, 2 * deepest))


def _size(depths: str, regimes: str) -> dict[str, object]:
    size: dict[str, object] = {}
    if depths:
        try:
            size["depths"] = sorted({int(part) for part in depths.split(",")})
        except ValueError:
            raise Problem(f"depths {depths!r} are no numbers", expected="something like 256,2048") from None
    if regimes:
        size["regimes"] = [part.strip() for part in regimes.split(",")]
    return size


def _kind(text: str) -> SpecType | None:
    known: tuple[SpecType, ...] = SpecType.__args__  # type: ignore[attr-defined]  # a Literal has them
    found = next((kind for kind in known if kind == text), None)
    if text and found is None:
        raise Problem(f"unknown speculation type {text!r}", expected=f"one of {', '.join(known)}")
    return found


def _print(outcome: Outcome, *, two_hosts: bool) -> None:
    run = outcome.study.run
    console.print(
        f"{harmless(run.title)} on {harmless(run.machine.cpu)}, llama-server {harmless(run.engine.version)}, "
        f"{_setting(outcome)}"
    )
    table = Table("regime", "depth", "answer", Column("drafted / raw", no_wrap=True), "because of", box=None)
    for answer in outcome.answers:
        said = "refused" if answer.because == "refused" else f"[{_COLOURS[answer.verdict]}]{answer.verdict}[/]"
        table.add_row(answer.regime, str(answer.depth), said, _text(answer.ratio), _because(answer))
    console.print(table)
    console.print(BECAUSE)
    for answer in outcome.answers:
        open_why = f"; {answer.ratio.note}" if answer.because != "refused" and answer.ratio.limits is None else ""
        console.print(f"{answer.regime} at {answer.depth}: {harmless(answer.why + open_why)}")
    how = (
        "valid however often one looks, because an earlier run was extended" if outcome.extended else "paired by prompt"
    )
    console.print(
        f"Decode rates; 95 % intervals, {how}. *undecided* means that more prompts are needed, or that it is even."
    )
    _print_tried(outcome)
    for warned in warnings_of(outcome.study):
        console.print(f"[yellow]Read it with care: {harmless(warned, 4096)}[/]")
    if two_hosts:
        console.print(
            "[yellow]The two servers are at different hosts: a difference of machines would look the same.[/]"
        )
    _print_advice(outcome)
    console.print(f"Run: {harmless(run.id)}", soft_wrap=True)
    console.print(f"In the book: specbook chapter 05_economics -p run {harmless(run.id)}", soft_wrap=True)
    console.print(AGAIN if outcome.extended else ONCE_MORE)


def _because(answer: Answer) -> str:
    if answer.because == "refused":
        return ""  # the column before says so, and the line below why
    one = answer.ratio.n == 1 and answer.because != "nothing drafted"
    return "open: one prompt" if one else answer.because


def _print_tried(outcome: Outcome) -> None:
    if outcome.chosen == "served":
        console.print(_as_served(outcome))
        return
    if outcome.chosen == "begun":
        console.print("n_max and p_min are those of the run that is there; --again chooses, and begins another.")
    if not outcome.tried:
        return
    depth = min(cell.depth for cell in outcome.study.run.cells)
    tried = ", ".join(f"n_max {t.n_max} p_min {t.p_min:g}: {t.rate:.1f}" for t in outcome.tried)
    if len(outcome.tried) == 1:
        console.print(f"One setting was tried, and taken: {tried} tokens/s at depth {depth}.")
        return
    console.print(
        f"Best of the settings ({len(outcome.tried)}) tried on other prompts at depth {depth}: "
        f"n_max {outcome.pair.n_max}, p_min {outcome.pair.p_min:g} (tokens/s: {tried})"
    )


def _setting(outcome: Outcome) -> str:
    """Return what the drafter was set to, as far as it is known."""
    if outcome.chosen == "served":
        return f"drafts of up to {max(outcome.pair.n_max, outcome.longest_seen)}"
    return f"n_max {outcome.pair.n_max}, p_min {outcome.pair.p_min:g}"


def _as_served(outcome: Outcome) -> str:
    """Return what is known of how a running server drafts."""
    who = {
        "told": "as the server says",
        "given": "as you say; the server does not tell",
        "assumed": "assumed: the server does not tell, --spec-type would say it",
    }
    longest = f"Longest draft seen: {outcome.longest_seen}"
    if outcome.pair.n_max > outcome.longest_seen:
        longest += f", of {outcome.pair.n_max} as given"
    method = f"Drafted by {outcome.pair.spec_type}, {who.get(outcome.method, '')}"
    return f"{method}. {longest}. Settings of running servers were not tried out."


def advice(answers: Sequence[Answer]) -> str:
    """Return what the answers advise and where; a cell whose verdict is undecided, for whatever reason, is open."""
    pays, loses = ([a for a in answers if a.verdict == verdict] for verdict in ("pays", "loses"))
    if not (pays or loses):
        return "Nothing is decided yet."
    parts = [
        f"{words}{_places(found, answers)}" for words, found in (("pass it", pays), ("do not pass it", loses)) if found
    ]
    open_cells = len(answers) - len(pays) - len(loses)
    if open_cells:
        parts.append(f"{open_cells} of {len(answers)} cells {'is' if open_cells == 1 else 'are'} open")
    said = "; ".join(parts)
    return f"{said[0].upper()}{said[1:]}."


def _places(found: Sequence[Answer], answers: Sequence[Answer]) -> str:
    if len(found) == len(answers):
        return ""
    if len(found) > MOST_PLACES:
        return f" in {len(found)} of {len(answers)} cells, see the table"
    return " for " + " and ".join(f"{answer.regime} at {answer.depth}" for answer in found)


def _print_advice(outcome: Outcome) -> None:
    colour = "green" if outcome.pays else "red" if outcome.loses else "yellow"
    console.print(f"[{colour}]{advice(outcome.answers)}[/]")
    if outcome.command:
        if outcome.loses:
            console.print("How it is served without the drafter:")
        elif all(answer.verdict != "pays" for answer in outcome.answers):
            console.print("How it was served with the drafter; no recommendation:")
        console.print(f"$ {harmless(shlex.join(outcome.command), 4096)}", soft_wrap=True)


def _text(interval: Interval) -> str:
    return harmless(f"{interval.format(decimals=2)} (n = {interval.n})")


def _plain(outcome: Outcome) -> dict[str, Any]:
    return {
        "run": outcome.study.run.id,
        "extended": outcome.extended,
        "n_max": outcome.pair.n_max,
        "p_min": outcome.pair.p_min,
        "advice": advice(outcome.answers),
        "answers": [asdict(answer) for answer in outcome.answers],
        "tried": [asdict(tried) for tried in outcome.tried],
        "command": list(outcome.command),
    }
