"""Every page for those who do not see it, do not use a mouse, or read it on paper."""

from collections.abc import Callable
from importlib.resources import files
from importlib.util import find_spec
from itertools import pairwise

import pytest
from playwright.sync_api import Page
from visits import BOOK, Site, Visit

from analysis.publish.build import toc_pages

pytestmark = pytest.mark.browser

PAGES = toc_pages(BOOK)
SOME = ["intro", "tour", "chapters/05_economics"]
RESULTS = ["chapters/03_acceptance", "chapters/04_depth_regime", "chapters/05_economics"]
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


@pytest.mark.parametrize("name", PAGES)
def test_axe_finds_nothing_in_a_committed_page(committed_site: Site, visit: Start, axe: str, name: str) -> None:
    page = visit(committed_site.address, color_scheme="light").open(f"{committed_site.address}/{name}.html")
    assert violations(page, axe) == []


@pytest.mark.parametrize("name", SOME)
def test_axe_finds_nothing_in_dark_mode_and_on_a_phone(committed_site: Site, visit: Start, axe: str, name: str) -> None:
    opened = visit(committed_site.address, color_scheme="dark", width=390)
    assert violations(opened.open(f"{committed_site.address}/{name}.html"), axe) == []


def test_axe_sees_what_is_wrong(committed_site: Site, visit: Start, axe: str) -> None:
    page = visit(committed_site.address).open(f"{committed_site.address}/intro.html")
    picture = '<img src="_static/favicon.svg">'
    page.evaluate("(html) => document.querySelector('main').insertAdjacentHTML('beforeend', html)", picture)
    assert any(said.startswith("image-alt") for said in violations(page, axe))


@pytest.mark.parametrize("name", SOME)
def test_a_keyboard_reaches_every_link_and_shows_where_it_is(committed_site: Site, visit: Start, name: str) -> None:
    page = visit(committed_site.address).open(f"{committed_site.address}/{name}.html")
    seen = set()
    for _ in range(12):
        page.keyboard.press("Tab")
        where = page.evaluate(FOCUSED)
        seen.add(where[0])
        assert where[0] != "BODY" or len(seen) > 3
        if where[0] != "BODY":
            assert where[1] != "none" or where[2] != "none" or "underline" in where[3], where
    assert len(seen) > 5


@pytest.mark.parametrize("name", ["tour", *RESULTS])
def test_on_paper_stands_the_text_and_nothing_else(committed_site: Site, visit: Start, name: str) -> None:
    page = visit(committed_site.address, color_scheme="dark").open(f"{committed_site.address}/{name}.html")
    page.emulate_media(media="print")
    page.set_viewport_size({"width": 794, "height": 1123})  # A4 at 96 dots an inch
    for hidden in (".bd-sidebar-primary", ".bd-sidebar-secondary", ".bd-header-article", ".prev-next-footer"):
        assert not any(part.is_visible() for part in page.locator(hidden).all()), hidden
    assert [title.is_visible() for title in page.locator("main h1").all()].count(True) == 1
    colours = page.evaluate(
        "[getComputedStyle(document.body).backgroundColor, getComputedStyle(document.querySelector('main p')).color]"
    )
    assert colours[0] in ("rgb(255, 255, 255)", "rgba(0, 0, 0, 0)")
    assert colours[1] == "rgb(0, 0, 0)"
    assert page.evaluate("document.documentElement.scrollWidth") <= 794
    assert page.pdf(format="A4").startswith(b"%PDF")


@pytest.mark.parametrize("name", RESULTS)
def test_a_results_page_says_how_to_reproduce_one_row(committed_site: Site, visit: Start, name: str) -> None:
    page = visit(committed_site.address).open(f"{committed_site.address}/{name}.html")
    box = page.locator(".provenance details")
    commands = box.locator("pre")
    assert not commands.is_visible()
    box.locator("summary").focus()
    page.keyboard.press("Enter")
    assert commands.is_visible()
    rows = [line for line in str(commands.text_content()).splitlines() if line.strip()]
    assert len(rows) >= 4
    assert all(f"specbook chapter {name.split('/')[1]} -p pair" in row for row in rows)
    assert all(first != second for first, second in pairwise(rows))
