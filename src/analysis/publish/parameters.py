"""The parameters that a notebook declares, and values for them. papermill itself only logs a misspelt one."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import papermill
from pydantic import TypeAdapter, ValidationError

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


@dataclass(frozen=True)
class Parameter:
    """One line of a parameters cell: `depth: int = 256  # tokens in the cache`."""

    name: str
    type: str
    default: str
    help: str


def declared(notebook: Path) -> dict[str, Parameter]:
    """Return the parameters that a notebook declares, by name.

    Raises:
        Problem: the file is not a notebook, or a parameter has no type that can be checked.
    """
    try:
        found = papermill.inspect_notebook(str(notebook))
    except (OSError, ValueError, KeyError, AttributeError) as error:
        raise Problem(f"{notebook.name} cannot be read as a notebook: {error}") from None
    parameters = {
        name: Parameter(name, item["inferred_type_name"].replace(" ", ""), item["default"], item["help"])
        for name, item in found.items()
    }
    for parameter in parameters.values():
        if parameter.type not in _TYPES:
            raise Problem(
                f"parameter {parameter.name} of {notebook.name} has the type {parameter.type}",
                expected=f"one of {', '.join(_TYPES)}",
                remedy="declare it as `name: type = default  # help`",
            )
    return parameters


def values_for(notebook: Path, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the given values in the types that the notebook declares.

    Text, as a command line gives it, is read as the declared type; a list is written `256,2048` or as JSON. A parameter
    whose default is None also takes None.

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


def _typed(notebook: Path, parameter: Parameter, value: Any) -> Any:
    wanted, read = _TYPES[parameter.type], value
    if value is None and parameter.default == "None":
        return None
    try:
        if isinstance(value, str) and parameter.type.startswith(("list", "dict")):
            read = json.loads(value) if value.lstrip().startswith(("[", "{")) else _split(value)
        # Text may stand for a number; a number is not taken for text, nor 1.5 for 1.
        return TypeAdapter(wanted).validate_python(read, strict=wanted is str)
    except (ValidationError, json.JSONDecodeError):
        raise Problem(
            f"parameter {parameter.name} of {notebook.stem} was given {value!r}", expected=parameter.type
        ) from None


def _split(text: str) -> list[int | str]:
    parts = [part.strip() for part in text.split(",") if part.strip()]
    return [int(part) if part.lstrip("-").isdecimal() else part for part in parts]
