"""Notebook files, read and written."""

from pathlib import Path
from typing import Any

import nbformat

from analysis.records import Problem
from analysis.records.store import write_atomically

VERSION = 4


def read_notebook(path: Path) -> Any:
    """Return a notebook as an nbformat node.

    Raises:
        Problem: the file is missing or is not a notebook.
    """
    try:
        return nbformat.read(path, VERSION)  # type: ignore[no-untyped-call]  # nbformat is typed in part
    except (OSError, ValueError, KeyError, AttributeError, nbformat.ValidationError) as error:
        raise Problem(f"{path} cannot be read as a notebook: {type(error).__name__}: {error}") from None


def write_notebook(path: Path, notebook: Any) -> None:
    """Write a notebook under its name only when it is whole."""
    text: str = nbformat.writes(notebook, VERSION)  # type: ignore[no-untyped-call]  # nbformat is typed in part
    write_atomically(path, text.rstrip("\n") + "\n")
