"""A built book behind a local address, and a browser that reaches nothing else.

The browser is Debian's Chromium, or the one that `CHROMIUM` names. Where there is none these tests skip.
"""

import os
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from made_up_chapters import write_chapters
from playwright.sync_api import Browser, Page, Route, sync_playwright

from analysis.publish.build import build_book, copy_book

BOOK = Path(__file__).resolve().parents[2] / "book"
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

# WCAG 2's contrast of an element's text with what lies behind it.
CONTRAST = """(selector) => {
    const channels = colour => colour.match(/[\\d.]+/g).map(Number);
    const light = rgb => rgb.slice(0, 3).map(v => v / 255)
        .map(v => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
        .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
    const behind = e => { const c = channels(getComputedStyle(e).backgroundColor);
        return c.length < 4 || c[3] > 0 ? c : e.parentElement ? behind(e.parentElement) : [255, 255, 255]; };
    return [...document.querySelectorAll(selector)].map(e => {
        const pair = [light(channels(getComputedStyle(e).color)), light(behind(e))].sort((a, b) => b - a);
        return (pair[0] + 0.05) / (pair[1] + 0.05); });
}"""


@dataclass(frozen=True)
class Site:
    """A built book: its folder and its local address."""

    html: Path
    address: str


class Visit:
    """A page in a browser of its own, with all that it asked for and complained of."""

    def __init__(self, page: Page, address: str, *, scripts: bool) -> None:
        self.page = page
        self.scripts = scripts
        self.complaints: list[str] = []
        self.refused: list[str] = []
        self.weights: dict[str, int] = {}
        page.on("console", lambda said: said.type in ("error", "warning") and self.complaints.append(said.text))
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("requestfailed", lambda request: self.complaints.append(f"failed: {request.url}"))
        page.on("response", self._weigh)
        page.context.route("**/*", partial(self._gate, address))

    def open(self, address: str) -> Page:
        """Go to an address and wait until its charts are drawn, if scripts are on."""
        self.page.goto(address, wait_until="load")
        if self.scripts:
            self.page.wait_for_function(
                "[...document.querySelectorAll('figure.chart')].every(chart => chart.dataset.drawn === 'live')"
            )
        return self.page

    def _gate(self, address: str, route: Route) -> None:
        if route.request.url.startswith((address, "file:", "data:", "blob:")):
            route.continue_()
        else:
            self.refused.append(route.request.url)
            route.abort()

    def _weigh(self, response: Any) -> None:
        if response.status >= 400:
            self.complaints.append(f"{response.status}: {response.url}")
        elif response.url.startswith("http:"):
            self.weights[response.url.split("?")[0]] = len(response.body())


@contextmanager
def served(html: Path) -> Iterator[str]:
    """Serve a folder on the loopback address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(html)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: Any) -> None:
        pass


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
