"""Parameters of a notebook: declared with a type, checked before a kernel starts."""

import json
import re
from pathlib import Path
from typing import Any

import nbformat
import pytest
from click.testing import CliRunner
from papermill.cli import papermill

from analysis.publish.notebooks import find_notebook, notebook_names
from analysis.publish.parameters import Parameter, declared, values_for
from analysis.records import Problem


def test_a_parameters_cell_reads_like_a_manual(notebooks: Path) -> None:
    found = declared(notebooks / "01_good.ipynb")
    assert list(found) == ["depth", "regime", "depths", "ratio", "quick", "regimes", "prompts", "kinds"]
    assert found["depths"] == Parameter("depths", "list[int]", "[256]", "several depths")
    assert found["prompts"] == Parameter("prompts", "Optional[int]", "None", "prompts a cell")


@pytest.mark.parametrize("name", notebook_names())
def test_every_parameter_of_every_chapter_has_a_type_and_a_comment_and_is_used(name: str) -> None:
    cells = nbformat.read(find_notebook(name), 4).cells
    later = "\n".join(
        cell.source for cell in cells if cell.cell_type == "code" and "parameters" not in cell.metadata.get("tags", [])
    )
    for parameter in declared(find_notebook(name)).values():
        assert len(parameter.help.split()) > 2, parameter
        assert re.search(rf"\b{parameter.name}\b(?!=)", later), parameter


@pytest.mark.parametrize("name", notebook_names())
def test_papermill_prints_the_manual_of_every_chapter(name: str) -> None:
    shown = CliRunner().invoke(papermill, ["--help-notebook", str(find_notebook(name))]).output
    for parameter in declared(find_notebook(name)).values():
        definition = f"  {parameter.name}: {parameter.type} (default {parameter.default})"
        assert re.search(rf"^{re.escape(definition)}\s+{re.escape(parameter.help)}$", shown, re.MULTILINE)


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("depth", "2048", 2048),
        ("regime", "recall", "recall"),
        ("regime", "12", "12"),
        ("depths", "256,2048", [256, 2048]),
        ("depths", "[256, 2048]", [256, 2048]),
        ("depths", "256", [256]),
        ("ratio", "0.5", 0.5),
        ("ratio", 1, 1.0),
        ("quick", "false", False),
        ("regimes", "recall,prose", ["recall", "prose"]),
        ("regimes", "256,2048", [256, 2048]),
        ("regimes", None, None),
        ("prompts", "5", 5),
        ("prompts", None, None),
        ("prompts", "None", None),
        ("kinds", "256,recall", ["256", "recall"]),
        ("kinds", '["recall"]', ["recall"]),
    ],
)
def test_text_is_read_as_the_declared_type(notebooks: Path, name: str, text: Any, value: Any) -> None:
    values = values_for(notebooks / "01_good.ipynb", {name: text})
    assert values == {name: value}
    assert type(values[name]) is type(value)


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("depth", "deep", "int"),
        ("depth", 1.5, "int"),
        ("depth", None, "int"),
        ("regime", 12, "str"),
        ("depths", "256,deep", "list[int]"),
        ("depths", "[256", "list[int]"),
        ("prompts", "five", "Optional[int]"),
        ("kinds", [256], "Optional[list[str]]"),
        ("quick", "perhaps", "bool"),
    ],
)
def test_a_value_of_the_wrong_type_is_refused(notebooks: Path, name: str, value: Any, expected: str) -> None:
    with pytest.raises(Problem) as problem:
        values_for(notebooks / "01_good.ipynb", {name: value})
    assert str(problem.value) == f"parameter {name} of 01_good was given {value!r}; expected {expected}"


def test_a_misspelt_parameter_is_refused_with_the_closest(notebooks: Path) -> None:
    with pytest.raises(Problem) as problem:
        values_for(notebooks / "01_good.ipynb", {"dephts": "256"})
    assert str(problem.value) == (
        "01_good has no parameter dephts; expected one of depth, regime, depths, ratio, quick, regimes, prompts, "
        "kinds; did you mean depths?"
    )


def test_a_parameter_without_a_type_is_refused(notebooks: Path) -> None:
    with pytest.raises(Problem, match="parameter depth of 07_parameter_without_type.ipynb has the type None"):
        declared(notebooks / "07_parameter_without_type.ipynb")


def test_a_parameter_that_papermill_cannot_read_is_refused(notebooks: Path, tmp_path: Path) -> None:
    notebook = json.loads((notebooks / "01_good.ipynb").read_text())
    notebook["cells"][1]["source"] = "depth: int | None = None  # tokens"
    (tmp_path / "unread.ipynb").write_text(json.dumps(notebook))
    with pytest.raises(Problem, match="papermill cannot read parameter depth of unread.ipynb"):
        declared(tmp_path / "unread.ipynb")


def test_a_notebook_without_parameters_takes_none(notebooks: Path) -> None:
    with pytest.raises(Problem, match="has no parameter depth; expected one of none"):
        values_for(notebooks / "08_no_parameters_cell.ipynb", {"depth": 1})


def test_a_file_that_is_no_notebook_is_said(notebooks: Path) -> None:
    with pytest.raises(Problem, match="09_not_json.ipynb cannot be read as a notebook"):
        declared(notebooks / "09_not_json.ipynb")
