"""What the tests of the book share: a site, a page in a browser that reaches nothing else, and what is asked of it."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from playwright.sync_api import Page, Route

BOOK = Path(__file__).resolve().parents[2] / "book"
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
