"""The chapters of the cards: they run without an engine, and a bad row stops them with file, row and reason."""

import shutil
from pathlib import Path

import pytest

from analysis.publish.cited import use_data
from analysis.publish.notebooks import find_notebook, notebook_names, run_notebook
from analysis.publish.parameters import declared
from analysis.records import Problem
from analysis.records.places import data_dir, repo_dir


@pytest.fixture
def broken(tmp_path: Path) -> Path:
    """A data folder whose first published value has a unit that nobody knows."""
    shutil.copytree(data_dir() / "published", tmp_path / "data" / "published")
    values = tmp_path / "data" / "published" / "values.csv"
    values.write_text(values.read_text(encoding="utf-8").replace(",GB,", ",furlong,", 1), encoding="utf-8")
    return tmp_path / "data"


def test_a_bad_row_stops_a_chapter_and_leaves_the_old_page(broken, monkeypatch, tmp_path):
    monkeypatch.setenv("PYTHONPATH", str(repo_dir() / "src"))  # the kernel is a process of its own
    page = tmp_path / "17_sources.ipynb"
    page.write_text("the old page")
    with pytest.raises(Problem, match=r"17_sources failed in cell 3: values\.csv:2: unit 'furlong' is unknown"):
        run_notebook(find_notebook("17"), page, {"data": str(broken)}, failed=tmp_path / "failed")
    assert page.read_text() == "the old page"


def test_the_chapters_take_another_folder_of_tables(monkeypatch, tmp_path):
    monkeypatch.setenv("SPECBOOK_DATA", "untouched")
    use_data("")
    assert data_dir() == Path("untouched").resolve()
    use_data(str(tmp_path))
    assert data_dir() == tmp_path


@pytest.mark.parametrize("name", [name for name in notebook_names() if name.startswith("1")])
def test_the_chapters_of_the_cards_take_one_parameter(name):
    assert list(declared(find_notebook(name))) == ["data"]
