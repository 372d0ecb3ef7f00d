"""Pages for those who do not see them or do not use a mouse."""

from collections.abc import Callable
from importlib.resources import files
from importlib.util import find_spec

import pytest
from playwright.sync_api import Page

from conftest import Site, Visit

pytestmark = pytest.mark.browser

# Where axe finds nothing. It has complaints about chapters 05 and 11; the other pages were not looked at yet.
CHECKED = ["intro", "tour", "ingest", "contribute", "chapters/03_acceptance"]
# What WCAG 2.2 asks of a page at levels A and AA.
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]

FOCUSED = """() => { const e = document.activeElement, s = getComputedStyle(e);
    return [e.tagName + e.textContent.trim().slice(0, 40), s.outlineStyle, s.boxShadow, s.textDecorationLine]; }"""

Start = Callable[..., Visit]


@pytest.fixture(scope="module")
def axe() -> str:
    """The axe-core script, which checks a page by the rules of WCAG."""
    if find_spec("axe_playwright_python") is None:
        pytest.skip("axe-playwright-python is not installed: pages were not checked by axe")
    return (files("axe_playwright_python") / "axe.min.js").read_text(encoding="utf-8")


def violations(page: Page, axe: str) -> list[str]:
    page.evaluate(axe)
    found = page.evaluate("(rules) => axe.run(document, {runOnly: {type: 'tag', values: rules}})", RULES)
    assert len(found["passes"]) > 10, "axe looked at the page"
    return [
        f"{broken['id']}: {node['target']} {node['failureSummary']}"
        for broken in found["violations"]
        for node in broken["nodes"]
    ]


@pytest.mark.parametrize("name", CHECKED)
def test_axe_finds_nothing_in_a_committed_page(committed_site: Site, visit: Start, axe: str, name: str) -> None:
    page = visit(committed_site.address, color_scheme="light").open(f"{committed_site.address}/{name}.html")
    assert violations(page, axe) == []


def test_axe_sees_what_is_wrong(committed_site: Site, visit: Start, axe: str) -> None:
    page = visit(committed_site.address).open(f"{committed_site.address}/intro.html")
    picture = '<img src="_static/favicon.svg">'
    page.evaluate("(html) => document.querySelector('main').insertAdjacentHTML('beforeend', html)", picture)
    assert any(said.startswith("image-alt") for said in violations(page, axe))


def test_a_keyboard_reaches_every_link_and_shows_where_it_is(committed_site: Site, visit: Start) -> None:
    page = visit(committed_site.address).open(f"{committed_site.address}/tour.html")
    seen = set()
    for _ in range(12):
        page.keyboard.press("Tab")
        where = page.evaluate(FOCUSED)
        seen.add(where[0])
        assert where[0] != "BODY" or len(seen) > 3
        if where[0] != "BODY":
            assert where[1] != "none" or where[2] != "none" or "underline" in where[3], where
    assert len(seen) > 5
