"""The parameters that a notebook declares, and values for them. papermill itself only logs a misspelt one."""

import ast
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import papermill
from pydantic import TypeAdapter, ValidationError

from analysis.publish.ipynb import read_notebook
from analysis.records import Problem

_TYPES: dict[str, Any] = {
    "str": str,
    "int": int,
    "float": float,
    "bool": bool,
    "list": list,
    "list[str]": list[str],
    "list[int]": list[int],
    "list[float]": list[float],
    "dict": dict,
}
# papermill reads no `int | None`; in quotes, because a notebook does not import it.
_OPTIONAL = re.compile(r"Optional\[(?P<type>.+)\]")


@dataclass(frozen=True)
class Parameter:
    """One line of a parameters cell: `depth: int = 256  # tokens in the cache`.

    What may be None is written `depth: "Optional[int]" = None  # tokens in the cache`.
    """

    name: str
    type: str
    default: str
    help: str

    @property
    def value_type(self) -> str:
        """Return the type of a value that is not None."""
        optional = _OPTIONAL.fullmatch(self.type)
        return optional["type"] if optional else self.type

    @property
    def may_be_none(self) -> bool:
        """Return whether None is a value of it."""
        return self.default == "None" or _OPTIONAL.fullmatch(self.type) is not None


def declared(notebook: Path) -> dict[str, Parameter]:
    """Return the parameters that a notebook declares, by name.

    Raises:
        Problem: the file is not a notebook, a parameter has no type that can be checked, or papermill cannot read it.
    """
    try:
        found = papermill.inspect_notebook(str(notebook))
        assigned = _assigned(notebook)
    except (OSError, ValueError, KeyError, AttributeError, SyntaxError) as error:
        raise Problem(f"{notebook.name} cannot be read as a notebook: {error}") from None
    parameters = {
        name: Parameter(name, item["inferred_type_name"].replace(" ", ""), item["default"], item["help"])
        for name, item in found.items()
    }
    for name in assigned:
        if name not in parameters:
            raise Problem(
                f"papermill cannot read parameter {name} of {notebook.name}",
                expected="`name: type = default  # help` on one line",
                remedy='write "Optional[int]" for int | None',
            )
    for parameter in parameters.values():
        if parameter.value_type not in _TYPES:
            raise Problem(
                f"parameter {parameter.name} of {notebook.name} has the type {parameter.type}",
                expected=f"one of {', '.join(_TYPES)}",
                remedy="declare it as `name: type = default  # help`",
            )
    return parameters


def values_for(notebook: Path, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the given values in the types that the notebook declares.

    Text, as a command line gives it, is read as the declared type; a list is written `256,2048` or as JSON, and
    None where it is allowed as `None`.

    Raises:
        Problem: a name is not declared (with the closest that is), or a value is not of its type.
    """
    known = declared(notebook)
    for name in given:
        if name not in known:
            close = get_close_matches(name, known, n=1)
            raise Problem(
                f"{notebook.stem} has no parameter {name}",
                expected=f"one of {', '.join(known) or 'none'}",
                remedy=f"did you mean {close[0]}?" if close else "",
            )
    return {name: _typed(notebook, known[name], value) for name, value in given.items()}


def _assigned(notebook: Path) -> list[str]:
    """Return the names that a parameters cell assigns, whether papermill can read them or not."""
    cells = read_notebook(notebook).cells
    source = next((cell.source for cell in cells if "parameters" in cell.metadata.get("tags", [])), "")
    targets = [
        target
        for node in ast.parse(source).body
        for target in ([node.target] if isinstance(node, ast.AnnAssign) else getattr(node, "targets", []))
    ]
    return [target.id for target in targets if isinstance(target, ast.Name)]


def _typed(notebook: Path, parameter: Parameter, value: Any) -> Any:
    wanted = _TYPES[parameter.value_type]
    if parameter.may_be_none and value in (None, "None"):
        return None
    try:
        # Text may stand for a number; a number is not taken for text, nor 1.5 for 1.
        return TypeAdapter(wanted).validate_python(_read(value, parameter.value_type), strict=wanted is str)
    except (ValidationError, json.JSONDecodeError):
        raise Problem(
            f"parameter {parameter.name} of {notebook.stem} was given {value!r}", expected=parameter.type
        ) from None


def _read(value: Any, kind: str) -> Any:
    """Return the list or dictionary that text stands for, and anything else as it is."""
    if not isinstance(value, str) or not kind.startswith(("list", "dict")):
        return value
    if value.lstrip().startswith(("[", "{")):
        return json.loads(value)
    parts = [part.strip() for part in value.split(",") if part.strip()]
    if kind == "list[str]":
        return parts
    return [int(part) if part.lstrip("-").isdecimal() else part for part in parts]
