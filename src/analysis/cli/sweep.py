"""`specbook sweep PAIR --vary FACTOR=VALUES`: a pair at every combination of some factors."""

from typing import Annotated

import typer
from rich.table import Table

from analysis.cli import app
from analysis.cli.options import CorpusOption
from analysis.cli.show import console, harmless, interval_text
from analysis.measure.factors import FACTORS
from analysis.measure.sweep import measure_sweep, sweep_frame

COLUMNS = {"mean accepted length": 2, "acceptance": 2, "decode rate": 1, "throughput": 1, "ratio": 3}

KNOWN = f"Factors: {', '.join(sorted(FACTORS))}."


@app.command()
def sweep(
    pair: Annotated[str, typer.Argument(help="A pair by name or path.")],
    *,
    vary: Annotated[
        list[str], typer.Option(help=f"A factor and its values: --vary n_max=1,2,3. May be repeated. {KNOWN}")
    ],
    profile: Annotated[str, typer.Option(help="A grid of data/grids for the sizes that are not given.")] = "quick",
    depth: Annotated[list[int] | None, typer.Option(min=1, help="Tokens in the cache. May be repeated.")] = None,
    regime: Annotated[list[str] | None, typer.Option(help="Kind of text. May be repeated.")] = None,
    prompts: Annotated[int | None, typer.Option(min=1, help="Prompts a cell.")] = None,
    n_predict: Annotated[int | None, typer.Option(min=2, help="Tokens to generate.")] = None,
    raw: Annotated[bool, typer.Option(help="Also measure the target without speculation, for the ratio.")] = True,
    corpus: CorpusOption = "",
    again: Annotated[
        bool, typer.Option("--again", help="Measure finished cells again; the old ones are kept.")
    ] = False,
) -> None:
    """Measure what a sweep still lacks, and show all of it. Interrupted, it goes on where it stopped.

    With `--vary parallel=1,4`, 4 requests at a time are measured, each on a slot of its own, in the raw leg as in the
    drafted one. The decode rate is then a request's, the throughput that of all of them together.
    """
    points = measure_sweep(
        pair,
        vary,
        profile=profile,
        size={"depths": depth or None, "regimes": regime or None, "prompts": prompts, "n_predict": n_predict},
        corpus=corpus,
        raw=raw,
        again=again,
    )
    frame = sweep_frame(points)
    several = any(cell.parallel > 1 for point in points for cell in point.study.run.cells)
    shown = [name for name in COLUMNS if name in set(frame["quantity"]) and (several or name != "throughput")]
    table = Table("setting", "regime", "depth", *shown, "verdict", title_justify="left")
    names = [name for name, _ in points[0].variant.settings]
    for key, rows in frame.groupby([*names, "regime", "depth"], sort=False):
        found = {row["quantity"]: row for row in rows.to_dict("records")}
        settings = ", ".join(f"{name}={value}" for name, value in zip(names, key, strict=False))
        cells = [interval_text(found.get(name), COLUMNS[name]) for name in shown]
        verdict = str(found.get("ratio", {}).get("verdict", ""))
        table.add_row(harmless(settings), str(key[-2]), str(key[-1]), *cells, verdict)
    console.print(table)
    runs = dict.fromkeys(study.run.id for point in points for study in (point.raw, point.study) if study)
    console.print(f"Recorded in {harmless(', '.join(runs), limit=2000)}; `specbook gates RUN` says what was refused.")
