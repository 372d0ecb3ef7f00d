"""Parameters of a notebook: declared with a type, checked before a kernel starts."""

from pathlib import Path
from typing import Any

import pytest

from analysis.publish.parameters import Parameter, declared, values_for
from analysis.records import Problem


def test_a_parameters_cell_reads_like_a_manual(notebooks: Path) -> None:
    found = declared(notebooks / "01_good.ipynb")
    assert list(found) == ["depth", "regime", "depths", "ratio", "quick", "regimes"]
    assert found["depths"] == Parameter("depths", "list[int]", "[256]", "several depths")


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
        "01_good has no parameter dephts; expected one of depth, regime, depths, ratio, quick, regimes; "
        "did you mean depths?"
    )


def test_a_parameter_without_a_type_is_refused(notebooks: Path) -> None:
    with pytest.raises(Problem, match="parameter depth of 07_parameter_without_type.ipynb has the type None"):
        declared(notebooks / "07_parameter_without_type.ipynb")


def test_a_notebook_without_parameters_takes_none(notebooks: Path) -> None:
    with pytest.raises(Problem, match="has no parameter depth; expected one of none"):
        values_for(notebooks / "08_no_parameters_cell.ipynb", {"depth": 1})


def test_a_file_that_is_no_notebook_is_said(notebooks: Path) -> None:
    with pytest.raises(Problem, match="09_not_json.ipynb cannot be read as a notebook"):
        declared(notebooks / "09_not_json.ipynb")
