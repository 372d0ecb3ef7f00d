"""Building: nothing is missing from a book that was built, and one that would lack something is not built."""

from pathlib import Path

import pytest
from nbformat import v4

from analysis.publish.build import build_book, check_executed, copy_book, toc_pages
from analysis.publish.ipynb import write_notebook
from analysis.records import Problem

TOC = """\
format: jb-book
root: intro
parts:
  - caption: Measured
    chapters:
      - file: chapters/01_first
        sections:
          - file: chapters/02_second
  - caption: Words
    chapters:
      - file: glossary
"""


METADATA = {"language_info": {"name": "python", "pygments_lexer": "ipython3"}}


def write_chapter(path: Path, *counts: int | None, error: bool = False) -> None:
    cells = [v4.new_code_cell("1 + 1", execution_count=count) for count in counts]
    if error:
        cells[-1].outputs = [v4.new_output("error", ename="ValueError", evalue="no", traceback=[])]
    write_notebook(path, v4.new_notebook(cells=[v4.new_markdown_cell("# Chapter"), *cells], metadata=METADATA))


@pytest.fixture
def book(tmp_path: Path) -> Path:
    folder = tmp_path / "book"
    (folder / "chapters").mkdir(parents=True)
    (folder / "_toc.yml").write_text(TOC)
    (folder / "_config.yml").write_text("title: t\nexecute: {execute_notebooks: 'off'}\n")
    for page in ("intro", "glossary"):
        (folder / f"{page}.md").write_text(f"# {page}\n")
    for name in ("01_first", "02_second"):
        write_chapter(folder / "chapters" / f"{name}.ipynb", 1, 2)
    return folder


def test_the_toc_lists_pages_in_reading_order(book: Path) -> None:
    assert toc_pages(book) == ["intro", "chapters/01_first", "chapters/02_second", "glossary"]


def test_a_copy_takes_pages_over_and_keeps_its_own_chapters(book: Path, tmp_path: Path) -> None:
    copy = copy_book(book, tmp_path / "copy")
    write_chapter(copy / "chapters" / "01_first.ipynb", 1, 2, 3)
    own = (copy / "chapters" / "01_first.ipynb").read_bytes()
    (book / "intro.md").write_text("# changed\n")
    copy_book(book, copy)
    assert (copy / "intro.md").read_text() == "# changed\n"
    assert (copy / "chapters" / "01_first.ipynb").read_bytes() == own
    assert (copy / "chapters" / "02_second.ipynb").exists()


def test_a_book_without_one_of_its_chapters_is_not_built(book: Path) -> None:
    (book / "chapters" / "02_second.ipynb").unlink()
    with pytest.raises(Problem, match="has no chapter 02_second; run it: make chapter NAME=02_second"):
        build_book(book)


def test_a_book_without_one_of_its_pages_is_not_built(book: Path) -> None:
    (book / "glossary.md").unlink()
    with pytest.raises(Problem, match="has no glossary.md"):
        build_book(book)


@pytest.mark.parametrize("counts", [(1, None), (2, 1), (None,)])
def test_a_chapter_with_a_cell_that_was_not_executed_is_refused(tmp_path: Path, counts: tuple[int | None, ...]) -> None:
    write_chapter(tmp_path / "01_a.ipynb", *counts)
    with pytest.raises(Problem, match=rf"code cell {len(counts)} of 01_a.ipynb was not executed"):
        check_executed(tmp_path / "01_a.ipynb")


def test_a_chapter_with_an_error_is_refused(tmp_path: Path) -> None:
    write_chapter(tmp_path / "01_a.ipynb", 1, 2, error=True)
    with pytest.raises(Problem, match="code cell 2 of 01_a.ipynb ended with ValueError: no"):
        check_executed(tmp_path / "01_a.ipynb")


def test_a_chapter_without_code_is_refused(tmp_path: Path) -> None:
    write_chapter(tmp_path / "01_a.ipynb")
    with pytest.raises(Problem, match="no code cell"):
        check_executed(tmp_path / "01_a.ipynb")


def test_the_first_warning_of_jupyter_book_is_said(book: Path) -> None:
    (book / "intro.md").write_text("# intro\n\n{numref}`no-such-table`\n")
    with pytest.raises(Problem, match=r"jupyter-book ended with 1: .*intro.md:3: WARNING: .*no-such-table"):
        build_book(book)


def test_a_damaged_toc_is_said(book: Path) -> None:
    (book / "_toc.yml").write_text("parts: [\n")
    with pytest.raises(Problem, match="_toc.yml cannot be read"):
        build_book(book)
