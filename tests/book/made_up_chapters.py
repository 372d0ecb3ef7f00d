"""Chapters made of invented numbers, so that the pages can be tested where nothing was measured."""

import json
from pathlib import Path
from typing import Any

import pandas as pd
from nbformat import v4

import made_up_frames as made_up
from analysis.publish import charts
from analysis.publish.ipynb import write_notebook
from analysis.publish.tables import emitted, interval_table, table

MACHINE = "a machine that does not exist"
HOSTILE = '</pre><script>document.title = "broken"</script>\x1b[31m {{x}} $y$ | `z` <img src="http://example.com/x">'


def shown(count: int, thing: Any) -> Any:
    data = thing._repr_mimebundle_()
    return v4.new_output("execute_result", json.loads(json.dumps(data)), execution_count=count)


def chapter(title: str, *parts: Any) -> Any:
    """A notebook with a parameters cell, and a heading, a code cell and an output for each part."""
    tags = {"tags": ["parameters"]}
    cells = [
        v4.new_markdown_cell(f"# {title}\n\nThe numbers on this page are made up."),
        v4.new_code_cell('pair: str = "made-up"  # which pair', execution_count=1, metadata=tags),
    ]
    for count, (heading, thing) in enumerate(parts, 2):
        cells.append(v4.new_markdown_cell(f"## {heading}"))
        cells.append(v4.new_code_cell(f"show({count})", execution_count=count, outputs=[shown(count, thing)]))
    for number, cell in enumerate(cells):
        cell["id"] = f"cell-{number:02d}"
    return v4.new_notebook(cells=cells, metadata={"language_info": {"name": "python", "pygments_lexer": "ipython3"}})


def hostile_files() -> pd.DataFrame:
    return pd.DataFrame({"file": [HOSTILE, "target.gguf"], "tensors": [272, 81], "size": [98.4, 7.83]})


def chapters() -> dict[str, Any]:
    """The notebooks by name: every builder of charts and tables at least once."""
    acceptance, lengths = made_up.acceptance(), made_up.lengths()
    at_first = acceptance.query("depth == 256 and meaning == 'survival'")
    return {
        "01_convert": chapter("Convert", ("Files", table(hostile_files(), HOSTILE, "tab-files", code=["file"]))),
        "02_launch": chapter("Launch", ("Emitted text", emitted(HOSTILE))),
        "03_acceptance": chapter(
            "Acceptance",
            ("By position", charts.acceptance_by_position(acceptance, name="acceptance-by-position")),
            ("The same as a table", interval_table(at_first, "Survival", "tab-survival", rows="position")),
        ),
        "04_depth_regime": chapter(
            "Depth and regime",
            ("Length", charts.depth_by_regime(lengths, name="length", quantity="mean accepted length (tokens)")),
            ("The same as a table", interval_table(lengths, "Mean accepted length (tokens)", "tab-length")),
        ),
        "05_economics": chapter(
            "Economics",
            ("Step cost", charts.step_cost(made_up.steps(), name="step-cost", machine=MACHINE)),
            (
                "Break-even",
                charts.break_even(
                    made_up.rate_by_length(),
                    made_up.rate_curve(),
                    made_up.single(75.0),
                    made_up.single(2.06),
                    name="break-even",
                    machine=MACHINE,
                ),
            ),
            ("Verdicts", charts.decode_vs_raw(made_up.ratios(), name="verdicts", machine=MACHINE)),
            ("The same as a table", interval_table(made_up.ratios(), "Speed ratio", "tab-ratio")),
        ),
    }


def write_chapters(folder: Path) -> None:
    """Write the made-up chapters into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, notebook in chapters().items():
        write_notebook(folder / f"{name}.ipynb", notebook)
