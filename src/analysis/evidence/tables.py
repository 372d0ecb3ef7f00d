"""Reading the tables of `data/published/` row by row against their Data Package descriptor.

The descriptor `datapackage.json` is the one place that says which columns a table has and what may stand in them.
The tests validate the same files against it with frictionless, and pages get frames validated with pandera
(`analysis.evidence.frames`). Neither is imported here: reading for an audit takes milliseconds, importing them
takes seconds.
"""

import csv
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from analysis.records.errors import Problem
from analysis.records.places import data_dir

QUOTE_WORDS = 25


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a table: where it stands, and its cells by column name."""

    file: str
    number: int
    cells: dict[str, str]

    def problem(self, reason: str) -> Problem:
        """Return the problem that names this line's file and number."""
        return Problem(f"{self.file}:{self.number}: {reason}")


def published_dir() -> Path:
    """Return the folder of the published tables."""
    return data_dir() / "published"


def read(resource: str, folder: Path | None = None) -> list[Line]:
    """Return the lines of a table, checked against the descriptor.

    Args:
        resource: the table's name, such as `values`.
        folder: where the table and its descriptor lie; the checkout's `data/published` if not given.

    Raises:
        Problem: the table is missing or no CSV, or a line breaks a rule of the descriptor (file, line, reason).
    """
    folder = folder or published_dir()
    schema = _schema(folder / "datapackage.json", resource)
    seen: set[str] = set()
    lines = []
    for line in _lines(folder / f"{resource}.csv", [field["name"] for field in schema["fields"]]):
        for field in schema["fields"]:
            _check_cell(line, field)
        key = line.cells.get(schema.get("primaryKey", ""))
        if key in seen:
            raise line.problem(f"id {key!r} is there already; ids are unique")
        if key is not None:
            seen.add(key)
        if len(line.cells.get("quote", "").split()) > QUOTE_WORDS:
            raise line.problem(f"the quote has more than {QUOTE_WORDS} words")
        lines.append(line)
    return lines


def _lines(path: Path, columns: list[str]) -> Iterator[Line]:
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise Problem(f"{path} is missing", expected="a table of the published cards") from None
    except (OSError, UnicodeDecodeError) as error:
        raise Problem(f"{path.name} cannot be read: {error}") from None
    reader = csv.reader(text.splitlines(keepends=True), strict=True)
    try:
        header = next(reader, [])
        if header != columns:
            raise Problem(f"{path.name}:1: columns are {header}", expected=str(columns))
        for cells in reader:
            if len(cells) != len(columns):
                raise Problem(f"{path.name}:{reader.line_num}: {len(cells)} cells", expected=f"{len(columns)}")
            yield Line(path.name, reader.line_num, dict(zip(columns, cells, strict=True)))
    except csv.Error as error:
        raise Problem(f"{path.name}:{reader.line_num}: {error}") from None


def _check_cell(line: Line, field: dict[str, Any]) -> None:
    name, cell = field["name"], line.cells[field["name"]]
    rules = field.get("constraints", {})
    if not cell:
        if rules.get("required"):
            raise line.problem(f"{name} is empty")
        return
    if "enum" in rules and cell not in rules["enum"]:
        raise line.problem(f"{name} {cell!r} is unknown; known are {', '.join(rules['enum'])}")
    if "pattern" in rules and not re.fullmatch(rules["pattern"], cell):
        raise line.problem(f"{name} {cell!r} does not look like {rules['pattern']}")
    if field["type"] in ("number", "integer") and not re.fullmatch(r"-?\d+(\.\d+)?", cell):
        raise line.problem(f"{name} {cell!r} is not a number")


@cache
def _schema(descriptor: Path, resource: str) -> dict[str, Any]:
    try:
        package = json.loads(descriptor.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise Problem(f"{descriptor} cannot be read: {error}", expected="a Data Package descriptor") from None
    for entry in package["resources"]:
        if entry["name"] == resource:
            schema: dict[str, Any] = entry["schema"]
            return schema
    raise Problem(f"{descriptor.name} describes no table {resource!r}")
