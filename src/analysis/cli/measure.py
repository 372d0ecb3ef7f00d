"""`specbook measure PAIR`: a pair over a grid of depths and kinds of text, drafted and raw, without a notebook."""

from importlib import import_module
from typing import Annotated, Any

import typer
from rich.table import Table

from analysis.cli import app
from analysis.cli.options import CorpusOption
from analysis.cli.show import console, harmless, interval_text
from analysis.measure.estimate import cells_of, depth_frame, ratio_frame
from analysis.measure.plan import DRAFTED, RAW
from analysis.measure.study import Study, machines_of, measure_study, study_on

DRAFTED_COLUMNS = {"mean accepted length": 2, "acceptance": 2, "decode rate": 1}
RAW_COLUMNS = {"raw decode rate": 1}


@app.command()
def measure(
    pair: Annotated[str, typer.Argument(help="A pair by name or path.")],
    *,
    profile: Annotated[str, typer.Option(help="A grid of data/grids, by name.")] = "quick",
    depth: Annotated[list[int] | None, typer.Option(min=1, help="Tokens in the cache. May be repeated.")] = None,
    regime: Annotated[list[str] | None, typer.Option(help="Kind of text. May be repeated.")] = None,
    prompts: Annotated[int | None, typer.Option(min=1, help="Prompts a cell.")] = None,
    n_predict: Annotated[int | None, typer.Option(min=2, help="Tokens to generate.")] = None,
    corpus: CorpusOption = "",
    raw: Annotated[bool, typer.Option(help="Also measure the target without speculation, prompt by prompt.")] = True,
    again: Annotated[bool, typer.Option("--again", help="Set aside what was measured before.")] = False,
    scheduler: Annotated[
        str, typer.Option(help="Deal the grid to the workers of a Dask scheduler: its address, or `local`.")
    ] = "",
    workers: Annotated[int, typer.Option(min=1, help="Workers of the scheduler `local`, all on this host.")] = 1,
) -> None:
    """Measure what a run still lacks, and show all of it. Interrupted, it goes on where it stopped."""
    options: dict[str, Any] = {
        "profile": profile,
        "size": {"depths": depth or None, "regimes": regime or None, "prompts": prompts, "n_predict": n_predict},
        "corpus": corpus,
        "raw": raw,
        "remeasure": again,
    }
    if scheduler:
        # Imported when asked for: Dask takes a second.
        spread = import_module("analysis.measure.spread")
        study: Study = spread.measure_spread(pair, scheduler=scheduler, workers=workers, **options)
    else:
        study = measure_study(pair, **options)
    for machine in machines_of(study.run):
        console.print(_table(study_on(study, machine.name)))
    run = harmless(study.run.id)
    kept = f"{len(study.publishable)} of {len(study.samples)} samples are fit to publish"
    console.print(f"{kept}. Recorded in {run}; `specbook gates {run}` says what was refused.", soft_wrap=True)


def _table(study: Study) -> Table:
    """Return the run's estimates by regime and depth; the ratio and its verdict only where both legs were measured."""
    drafted = bool(cells_of(study, DRAFTED))
    shown = dict(DRAFTED_COLUMNS) if drafted else {}
    if cells_of(study, RAW):
        shown |= RAW_COLUMNS
    title = f"{study.run.title}, on {study.run.machine.name}"
    table = Table("regime", "depth", *shown, title=harmless(title), title_justify="left")
    frames = {name: _by_place(depth_frame(study, name).to_dict("records")) for name in shown}
    ratios = _by_place(ratio_frame(study).to_dict("records")) if drafted and cells_of(study, RAW) else {}
    if ratios:
        table.add_column("drafted / raw")
        table.add_column("verdict")
    for regime, depth in frames[next(iter(shown))]:
        texts = [interval_text(frames[name].get((regime, depth)), digits) for name, digits in shown.items()]
        if ratios:
            ratio = ratios.get((regime, depth))
            texts += [interval_text(ratio, 3), str(ratio["verdict"]) if ratio else ""]
        table.add_row(regime, str(depth), *texts)
    return table


def _by_place(rows: list[dict[Any, Any]]) -> dict[tuple[str, int], dict[Any, Any]]:
    return {(str(row["regime"]), int(row["depth"])): row for row in rows}
