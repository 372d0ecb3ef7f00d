"""Every page in a real browser that can reach nothing but the page's own address."""

from collections.abc import Callable
from contextlib import suppress
from itertools import pairwise

import pytest
from playwright.sync_api import Page, TimeoutError
from visits import BOOK, CONTRAST, Site, Visit

from analysis.publish.build import toc_pages

pytestmark = pytest.mark.browser

PAGES = toc_pages(BOOK)
# Chapters whose numbers are not measured are the same in the book of made-up numbers: visited once, as committed.
OF_CARDS = [page for page in PAGES if page.startswith("chapters/1")]
WITH_CHARTS = ["chapters/03_acceptance", "chapters/04_depth_regime", "chapters/05_economics"]
PHONE = 390
LIGHTEST_PAGE, HEAVIEST_PAGE = 50_000, 1_000_000

Start = Callable[..., Visit]

HEADING_LEVELS = """() => [...document.querySelectorAll('main :is(h1, h2, h3, h4)')]
    .filter(h => h.checkVisibility()).map(h => Number(h.tagName[1]))"""
WITHOUT_ALT = "() => [...document.images].filter(i => !i.alt.trim()).map(i => i.outerHTML.slice(0, 80))"
UNLABELLED = """() => [...document.querySelectorAll('main input')]
    .filter(i => !i.labels.length && !i.getAttribute('aria-label')).map(i => i.outerHTML)"""
FITS = """[...document.querySelectorAll('.chart-live svg')]
    .every(svg => Math.abs(svg.clientWidth - svg.closest('.chart-live').clientWidth) < 3)"""

# Text of a chart that lies outside its drawing is cut off there.
CUT_OFF = """() => [...document.querySelectorAll('.chart-live svg')].flatMap(svg => {
    const box = svg.getBoundingClientRect();
    return [...svg.querySelectorAll('text')].map(text => [text.textContent, text.getBoundingClientRect()])
        .filter(([, at]) => at.width && (at.left < box.left - 1 || at.right > box.right + 1))
        .map(([words, at]) => `${words}: ${at.left - box.left} to ${at.right - box.left} of ${box.width}`);
})"""


def check_page(opened: Visit, site: Site, name: str) -> None:
    page = opened.open(f"{site.address}/{name}.html")
    assert opened.complaints == []
    assert opened.refused == []
    for figure in page.locator("figure.chart").all():
        assert figure.locator(".chart-live svg").bounding_box()["height"] > 50  # type: ignore[index]  # it is visible
        assert figure.locator(".chart-still").count() == 0
    levels = page.evaluate(HEADING_LEVELS)
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))
    assert page.evaluate(WITHOUT_ALT) == []
    assert page.evaluate(UNLABELLED) == []
    assert page.evaluate("document.documentElement.lang") == "en"
    check_width(page, 1280)
    weight = sum(size for url, size in opened.weights.items() if not url.endswith("vega-bundle.js"))
    assert LIGHTEST_PAGE < weight < HEAVIEST_PAGE
    for width in (PHONE, 1280):
        page.set_viewport_size({"width": width, "height": 844})
        check_width(page, width)
    assert opened.complaints == []


def check_width(page: Page, width: int) -> None:
    """Nothing but what scrolls inside its own box is wider than the window; charts follow it."""
    page.wait_for_function(
        "[...document.querySelectorAll('.chart-live svg')].every(svg => svg.clientWidth < innerWidth)"
    )
    assert page.evaluate("document.documentElement.scrollWidth") == width
    with suppress(TimeoutError):  # a chart is drawn again a moment after the window became narrow; what is left is told
        page.wait_for_function(f"({CUT_OFF})().length === 0", timeout=10_000)
    assert page.evaluate(CUT_OFF) == []


@pytest.mark.parametrize("name", [*(page for page in PAGES if page not in OF_CARDS), "search", "genindex"])
def test_a_page_is_quiet_whole_and_fetches_nothing(site: Site, visit: Start, name: str) -> None:
    check_page(visit(site.address), site, name)


@pytest.mark.parametrize("name", PAGES)
def test_a_committed_page_is_quiet_whole_and_fetches_nothing(committed_site: Site, visit: Start, name: str) -> None:
    check_page(visit(committed_site.address), committed_site, name)


@pytest.mark.parametrize("name", ["intro", *WITH_CHARTS])
def test_pages_work_from_the_disk(site: Site, visit: Start, name: str) -> None:
    opened = visit("file:")
    page = opened.open((site.html / f"{name}.html").as_uri())
    assert opened.complaints == []
    assert page.locator(".chart-live svg").count() == page.locator("figure.chart").count()


@pytest.mark.parametrize("name", WITH_CHARTS)
def test_without_scripts_the_still_is_shown(site: Site, visit: Start, name: str) -> None:
    page = visit(site.address, scripts=False).open(f"{site.address}/{name}.html")
    stills = page.locator("figure.chart .chart-still img").all()
    assert stills
    for still in stills:
        still.scroll_into_view_if_needed()
        assert still.is_visible()
        assert still.evaluate("image => image.complete && image.naturalWidth") == 640
    assert page.locator(".chart-live").count() == 0


def test_formulas_need_no_script(site: Site, visit: Start) -> None:
    page = visit(site.address, scripts=False).open(f"{site.address}/reading.html")
    formulas = page.locator("main math")
    assert formulas.count() >= 8
    assert formulas.last.bounding_box()["width"] > 5  # type: ignore[index]  # it is visible
    assert page.locator("div.math math mfrac").count() == 1


def test_dark_mode_toggles_and_everything_stays_readable(site: Site, visit: Start) -> None:
    page = visit(site.address, color_scheme="light").open(f"{site.address}/chapters/05_economics.html")
    selectors = "main p, main h2, main td, main th, figcaption, .chart-note, .chart-live label, .bd-sidebar-primary a"
    for mode in ("light", "dark"):
        for _ in range(3):  # the button goes round: as the system has it, light, dark
            if page.evaluate("document.documentElement.dataset.mode") == mode:
                break
            page.locator("button.theme-switch-button:visible").first.click()
        assert page.evaluate("document.documentElement.dataset.theme") == mode
        assert (
            page.evaluate("getComputedStyle(document.querySelector('.chart-card')).backgroundColor")
            == "rgb(255, 255, 255)"
        )
        # Colours fade from one mode to the other.
        page.wait_for_function("document.getAnimations().every(one => !(one instanceof CSSTransition))")
        assert min(page.evaluate(CONTRAST, selectors)) >= 4.5


def test_a_reader_sees_what_their_system_prefers(site: Site, visit: Start) -> None:
    for scheme in ("light", "dark"):
        page = visit(site.address, color_scheme=scheme).open(f"{site.address}/reading.html")
        assert page.evaluate("document.documentElement.dataset.theme") == scheme


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_without_scripts_everything_stays_readable(site: Site, visit: Start, scheme: str) -> None:
    page = visit(site.address, scripts=False, color_scheme=scheme).open(f"{site.address}/rerun.html")
    assert (
        min(page.evaluate(CONTRAST, "main p, main h2, main pre, main pre span, main code, .bd-sidebar-primary a"))
        >= 4.5
    )


def test_a_mouse_moves_the_slider_and_the_crossing_follows(site: Site, visit: Start) -> None:
    page = visit(site.address).open(f"{site.address}/chapters/05_economics.html")
    figure = page.locator("#chart-break-even")
    slider, crossing = figure.locator("input[type=range]"), figure.locator("svg text", has_text="break-even")
    assert crossing.text_content() == "break-even 2.06"
    slider.scroll_into_view_if_needed()
    box = slider.bounding_box()
    assert box is not None
    middle = box["y"] + box["height"] / 2
    before = float(slider.input_value())
    page.mouse.move(box["x"] + box["width"] * 0.4, middle)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.7, middle, steps=5)
    page.mouse.up()
    assert float(slider.input_value()) > before
    assert float(str(crossing.text_content()).split()[1]) > 2.06


def test_a_keyboard_moves_the_slider(site: Site, visit: Start) -> None:
    page = visit(site.address).open(f"{site.address}/chapters/05_economics.html")
    figure = page.locator("#chart-break-even")
    slider = figure.get_by_label("raw decode rate (tokens/s)")
    slider.focus()
    for _ in range(20):
        page.keyboard.press("ArrowRight")
    assert slider.input_value() == "85"
    assert figure.locator("svg text", has_text="break-even").text_content() != "break-even 2.06"


def test_a_reader_picks_meaning_and_depth(site: Site, visit: Start) -> None:
    page = visit(site.address).open(f"{site.address}/chapters/03_acceptance.html")
    figure = page.locator("#chart-acceptance-by-position")

    def drawn() -> list[str | None]:
        points = figure.locator(".chart-live svg path[aria-roledescription=point]").all()
        return [point.get_attribute("aria-label") for point in points]

    survival = drawn()
    assert len(survival) == 20
    figure.get_by_label("conditional").check()
    conditional = drawn()
    assert len(conditional) == 20
    assert conditional != survival
    figure.get_by_label("2048").check()
    assert drawn() != conditional


def test_a_pointer_over_a_point_shows_interval_and_prompts(site: Site, visit: Start) -> None:
    page = visit(site.address).open(f"{site.address}/chapters/04_depth_regime.html")
    page.locator("#chart-length svg path[aria-roledescription=point]").first.hover()
    page.locator("#vg-tooltip-element.visible").wait_for()
    assert "2.86 [2.57, 3.15] (n = 5)" in str(page.locator("#vg-tooltip-element").text_content())


@pytest.mark.parametrize("name", ["chapters/01_convert", "chapters/02_launch"])
def test_hostile_text_does_nothing(site: Site, visit: Start, name: str) -> None:
    opened = visit(site.address)
    page = opened.open(f"{site.address}/{name}.html")
    assert "broken" not in page.title()
    assert opened.refused == []
    assert page.locator("main img").count() == 0
    assert page.locator("main").get_by_text("</pre><script>document.title").first.is_visible()


def test_a_keyboard_reaches_the_text_at_once(site: Site, visit: Start) -> None:
    page = visit(site.address).open(f"{site.address}/intro.html")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent.trim()") == "Skip to main content"
    page.keyboard.press("Enter")
    assert page.evaluate("location.hash") == "#main-content"


def test_search_finds_pages_without_a_network(site: Site, visit: Start) -> None:
    opened = visit(site.address)
    page = opened.open(f"{site.address}/search.html?q=survival")
    page.locator("#search-results li").first.wait_for()
    assert page.locator("#search-results li a", has_text="How to read an interval").count() >= 1
    assert opened.refused == []
