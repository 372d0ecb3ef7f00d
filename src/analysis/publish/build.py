"""From executed chapters to pages: copy the book, build it, and check that nothing of it is missing."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

from sphinx_external_toc.parsing import MalformedError, parse_toc_yaml
from yaml import YAMLError  # type: ignore[import-untyped]  # its stubs are a package of their own

from analysis.publish.ipynb import read_notebook
from analysis.records import Problem
from analysis.records.places import local_dir, repo_dir

CHAPTERS = "chapters"
# The command of this interpreter's environment, whether or not that is activated.
_JUPYTER_BOOK = "from jupyter_book.cli.main import main; main()"
_WARNING = re.compile(r"\b(?:WARNING|ERROR|CRITICAL)\b:? *(.*)")
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")


def committed_book() -> Path:
    """Return the book of the checkout."""
    return repo_dir() / "book"


def local_book() -> Path:
    """Return this machine's own copy of the book, which git ignores."""
    return local_dir() / "book"


def toc_pages(book: Path) -> list[str]:
    """Return the pages of the table of contents in order, without suffix: `intro`, `chapters/01_convert`, ...

    Raises:
        Problem: the table of contents is missing or cannot be read.
    """
    file = book / "_toc.yml"
    try:
        return list(parse_toc_yaml(file))
    except (OSError, ValueError, YAMLError, MalformedError) as error:
        raise Problem(f"{file} cannot be read: {error}") from None


def copy_book(book: Path, target: Path) -> Path:
    """Bring a copy of the book up to date and return it.

    Hand-written pages, styles and the extension are taken over; an executed chapter that is at the target already is
    this machine's own and stays.
    """
    shutil.copytree(book, target, dirs_exist_ok=True, ignore=shutil.ignore_patterns("_build", CHAPTERS, "__pycache__"))
    (target / CHAPTERS).mkdir(exist_ok=True)
    for chapter in sorted((book / CHAPTERS).glob("*.ipynb")):
        if not (target / CHAPTERS / chapter.name).exists():
            shutil.copy2(chapter, target / CHAPTERS / chapter.name)
    return target


def build_book(book: Path) -> Path:
    """Build a book with jupyter-book, warnings being errors, and return its first page.

    Needs neither an engine nor a network.

    Raises:
        Problem: a chapter is missing or was not executed, jupyter-book warned of something, or a page was not made.
    """
    pages = toc_pages(book)
    for page in pages:
        check_source(book, page)
    log = book / "_build" / "build.log"
    log.parent.mkdir(exist_ok=True)
    argv = [sys.executable, "-c", _JUPYTER_BOOK, "build", str(book), "-W", "-n", "--keep-going"]
    done = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    log.write_text(_COLOUR.sub("", done.stdout), encoding="utf-8")
    if done.returncode:
        raise Problem(
            f"jupyter-book ended with {done.returncode}: {_first_warning(log)}",
            expected="a build without warnings",
            remedy=f"the whole output is in {log}",
        )
    html = book / "_build" / "html"
    missing = [page for page in pages if not (html / f"{page}.html").is_file()]
    if missing:
        raise Problem(f"{html} lacks {', '.join(missing)}", expected="a page for each entry of _toc.yml")
    return html / f"{pages[0]}.html"


def check_source(book: Path, page: str) -> None:
    """Check that the source of a page is there, and executed if it is a chapter.

    Raises:
        Problem: it is not.
    """
    if not page.startswith(f"{CHAPTERS}/"):
        if not (book / f"{page}.md").is_file():
            raise Problem(f"{book} has no {page}.md", expected="a file for each entry of _toc.yml")
        return
    notebook = book / f"{page}.ipynb"
    if not notebook.is_file():
        name = notebook.stem
        raise Problem(f"{book} has no chapter {name}", remedy=f"run it: make chapter NAME={name}")
    check_executed(notebook)


def check_executed(path: Path) -> None:
    """Check that every code cell of a chapter was executed, in order and without an error.

    Raises:
        Problem: one was not; the message says which.
    """
    cells = [cell for cell in read_notebook(path).cells if cell.cell_type == "code" and cell.source.strip()]
    if not cells:
        raise Problem(f"{path.name} has no code cell", expected="an executed chapter")
    before = 0
    for number, cell in enumerate(cells, 1):
        if cell.execution_count is None or cell.execution_count <= before:
            raise Problem(
                f"code cell {number} of {path.name} was not executed",
                expected="a chapter as papermill leaves it",
                remedy=f"run it: make chapter NAME={path.stem}",
            )
        before = cell.execution_count
        failed = [output for output in cell.outputs if output.output_type == "error"]
        if failed:
            raise Problem(f"code cell {number} of {path.name} ended with {failed[0].ename}: {failed[0].evalue}")


def _first_warning(log: Path) -> str:
    found = [match for line in log.read_text(encoding="utf-8").splitlines() if (match := _WARNING.search(line))]
    return found[0].string.strip() if found else "no warning was printed"
