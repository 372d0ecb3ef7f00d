"""`specbook measure PAIR`: a pair over a grid of depths and kinds of text, drafted and raw, without a notebook."""

from typing import Annotated, Any

import typer
from rich.table import Table

from analysis.cli import app
from analysis.cli.options import CorpusOption
from analysis.cli.show import console, harmless, interval_text
from analysis.measure.estimate import cells_of, depth_frame, ratio_frame
from analysis.measure.plan import DRAFTED, RAW
from analysis.measure.study import Study, measure_study

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
) -> None:
    """Measure what a run still lacks, and show all of it. Interrupted, it goes on where it stopped."""
    study = measure_study(
        pair,
        profile=profile,
        size={"depths": depth or None, "regimes": regime or None, "prompts": prompts, "n_predict": n_predict},
        corpus=corpus,
        raw=raw,
        remeasure=again,
    )
    console.print(_table(study))
    run = harmless(study.run.id)
    kept = f"{len(study.publishable)} of {len(study.samples)} samples are fit to publish"
    console.print(f"{kept}. Recorded in {run}; `specbook gates {run}` says what was refused.", soft_wrap=True)


def _table(study: Study) -> Table:
    """Return the run's estimates by regime and depth; the ratio and its verdict only where both legs were measured."""
    drafted = bool(cells_of(study, DRAFTED))
    shown = dict(DRAFTED_COLUMNS) if drafted else {}
    if cells_of(study, RAW):
        shown |= RAW_COLUMNS
    table = Table("regime", "depth", *shown, title=harmless(study.run.title), title_justify="left")
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
