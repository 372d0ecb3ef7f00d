"""The command line as these tests run it."""

import sys

import pytest

from analysis.cli import main
from analysis.cli.show import console


@pytest.fixture(autouse=True)
def wide_terminal(monkeypatch):
    """A terminal in which no table folds, unless a test asks for another with COLUMNS.

    A console that was made while COLUMNS was set keeps that width; pytest-xdist sets it for its workers.
    """
    monkeypatch.setattr(console, "_width", None)
    monkeypatch.setenv("COLUMNS", "200")


@pytest.fixture
def specbook(monkeypatch, capsys):
    """Run the command line in this process; return its exit status, its output and its complaint."""

    def run(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["specbook", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
        captured = capsys.readouterr()
        return ended.value.code or 0, captured.out, captured.err

    return run
