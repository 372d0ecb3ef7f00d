"""Files: progress that reads well wherever it is seen."""

import sys
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient
from tqdm import tqdm

from analysis.convert.files import bar

CELL = """
from analysis.convert.files import bar
with bar(2048, "hashing target.gguf", delay=0) as shown:
    shown.update(2048)
"""


def test_a_bar_in_a_notebook_is_text_without_widget_or_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(Path(sys.modules["analysis"].__path__[0]).parent))
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(CELL)])
    NotebookClient(notebook, kernel_name="python3", timeout=60).execute()
    outputs = notebook.cells[0].outputs
    assert {(output.output_type, output.name) for output in outputs} == {("stream", "stderr")}
    shown = "".join(output.text for output in outputs)
    assert "hashing target.gguf: 100%" in shown
    assert "Warning" not in shown


def test_a_bar_appears_only_when_the_work_takes_longer(capfd: pytest.CaptureFixture[str]) -> None:
    with bar(2048, "hashing target.gguf") as shown:
        shown.update(2048)
    assert isinstance(shown, tqdm)
    assert "100%" not in capfd.readouterr().err
