"""A built book behind a local address, and a browser that reaches nothing else.

The browser is Debian's Chromium, or the one that `CHROMIUM` names. Where there is none these tests skip.
"""

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from made_up_chapters import write_chapters
from playwright.sync_api import Browser, sync_playwright
from visits import BOOK, Site, Visit, served

from analysis.publish.build import build_book, copy_book

FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",  # a small /dev/shm, as containers have, ends pages with a crash
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@pytest.fixture(scope="module")
def chromium() -> str:
    path = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
    if not path:
        pytest.skip("no Chromium found; install Debian's package chromium, or set CHROMIUM to its path")
    return path


@pytest.fixture(scope="session")
def made_up_book(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The book with chapters of invented numbers, built."""
    book = copy_book(BOOK, tmp_path_factory.mktemp("made-up") / "book")
    write_chapters(book / "chapters")
    return build_book(book).parent


@pytest.fixture(scope="session")
def committed_book(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The book as it is committed, built away from the checkout."""
    if not list((BOOK / "chapters").glob("*.ipynb")):
        pytest.skip("no chapters are committed yet")
    return build_book(copy_book(BOOK, tmp_path_factory.mktemp("committed") / "book")).parent


@pytest.fixture(scope="module")
def browser(chromium: str) -> Iterator[Browser]:
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=chromium, args=FLAGS)
        yield launched
        launched.close()


@pytest.fixture(scope="module")
def site(made_up_book: Path) -> Iterator[Site]:
    with served(made_up_book) as address:
        yield Site(made_up_book, address)


@pytest.fixture(scope="module")
def committed_site(committed_book: Path) -> Iterator[Site]:
    with served(committed_book) as address:
        yield Site(committed_book, address)


@pytest.fixture
def visit(browser: Browser) -> Iterator[Callable[..., Visit]]:
    """Open a fresh, empty browser window that reaches one address alone."""
    contexts = []

    def start(address: str, *, width: int = 1280, scripts: bool = True, **options: Any) -> Visit:
        view = {"width": width, "height": 900}
        context = browser.new_context(viewport=view, java_script_enabled=scripts, **options)
        context.set_default_timeout(60_000)  # a machine that also measures can be slow
        contexts.append(context)
        return Visit(context.new_page(), address, scripts=scripts)

    yield start
    for context in contexts:
        context.close()
