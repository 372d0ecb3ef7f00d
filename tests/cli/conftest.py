"""The command line as these tests run it."""

import sys

import pytest

from analysis.cli import main


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
