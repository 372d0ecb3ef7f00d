"""`specbook duel PAIR_A PAIR_B`: two ways of serving against each other, in blocks of balanced order."""

from typing import Annotated

import typer
from rich.table import Table

from analysis.cli import app
from analysis.cli.options import CorpusOption
from analysis.cli.show import console, harmless
from analysis.measure.duel import DuelPlan, measure_duel, plan_duel
from analysis.measure.duel_result import DuelResult, result_of
from analysis.measure.study import Study, study_in
from analysis.stats import Interval, Rule


@app.command()
def duel(
    pair_a: Annotated[str, typer.Argument(help="A pair by name or path, or `raw` for the other's target alone.")],
    pair_b: Annotated[str, typer.Argument(help="Likewise. The same pair twice is a control whose ratio must hold 1.")],
    *,
    blocks: Annotated[int, typer.Option(min=1, help="Blocks of four legs, at most.")] = 8,
    prompts: Annotated[int, typer.Option(min=1, help="Prompts a leg.")] = 3,
    depth: Annotated[int | None, typer.Option(min=1, help="Tokens in the cache; default: the profile's first.")] = None,
    regime: Annotated[str, typer.Option(help="Kind of text: invention, continuation, recall or prose.")] = "recall",
    n_predict: Annotated[int | None, typer.Option(min=2, help="Tokens to generate; default: the profile's.")] = None,
    profile: Annotated[str, typer.Option(help="A grid of data/grids for the sizes that are not given.")] = "quick",
    a: Annotated[list[str] | None, typer.Option(help="Change a factor of the first side: --a n_max=2.")] = None,
    b: Annotated[list[str] | None, typer.Option(help="Change a factor of the second side.")] = None,
    until: Annotated[float, typer.Option(min=0, help="Stop once the interval is so narrow: 0.05 is 5 %.")] = 0.0,
    restart: Annotated[bool | None, typer.Option(help="A server for each leg; default: where memory is short.")] = None,
    corpus: CorpusOption = "",
    again: Annotated[bool, typer.Option("--again", help="Set aside what was fought before.")] = False,
) -> None:
    """Fight a duel, or show one that is already fought. The ratio is the speed of B over that of A."""
    plan = plan_duel(
        pair_a,
        pair_b,
        profile=profile,
        size={"depths": [depth] if depth else None, "regimes": [regime], "prompts": prompts, "n_predict": n_predict},
        changes=(a or (), b or ()),
        corpus=corpus,
        restart=restart,
        rule=Rule(width=until, budget=blocks, kind="normal", unit="blocks") if until else None,
    )
    study = study_in(measure_duel(plan, blocks, again=again))
    console.print(_table(plan, study, result_of(study)))


def _table(plan: DuelPlan, study: Study, result: DuelResult) -> Table:
    table = Table("what", "found", title=harmless(study.run.title), title_justify="left")
    cell = plan.cell("a")
    table.add_row("differs", plan.factor)
    table.add_row("measured", harmless(f"{cell.regime} at depth {cell.depth} on {study.run.machine.cpu}"))
    table.add_row("speed of B over A", f"{said(result.ratio)}: {_in_words(plan, result)}")
    table.add_row("the same, looked at after every block", said(result.sequence))
    table.add_row("texts that differ", f"{result.differing} of {result.prompts} prompts")
    table.add_row("speed of B over A, equal texts", said(result.equal_ratio))
    table.add_row("drift of the ratio over the duel", said(result.ratio_drift))
    table.add_row("drift of the decode rate", said(result.speed_drift))
    if result.left_out:
        table.add_row("blocks left out by gates", ", ".join(map(str, result.left_out)))
    if result.restarted:
        table.add_row("servers", "one for each leg: memory, or the user, wanted it so")
    warnings = sum(found.level in ("refuse", "warn") for found in study.findings)
    table.add_row("gates", harmless(f"{warnings} refusals and warnings: specbook gates {study.run.id}"))
    return table


def said(interval: Interval) -> str:
    """Return an interval with the number behind it, or why there is none."""
    if not interval.shown:
        return f"{interval.estimate:.3f}, no interval: {interval.note}"
    return f"{interval.format(decimals=3)} ({interval.method}, {interval.n} {interval.unit})"


def _in_words(plan: DuelPlan, result: DuelResult) -> str:
    if plan.factor == "nothing":
        held = result.ratio.contains(1.0)
        return "a control, and it holds 1" if held else "a control that does not hold 1"
    return {"pays": "B is faster", "loses": "B is slower", "undecided": "undecided"}[result.verdict]
