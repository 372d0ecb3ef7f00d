"""The calculator in a browser: with a mouse, with a keyboard, and its arithmetic against the library's."""

import json
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest
from playwright.sync_api import Page
from visits import CONTRAST, Site, Visit

from analysis.evidence import published
from analysis.evidence.choices import choices
from analysis.evidence.consistency.lengths import carried_length
from analysis.evidence.step_model import compare, missed_by, models, raw_steps
from analysis.stats.economics import break_even_acceptance, break_even_length, decode_at

pytestmark = pytest.mark.browser
Start = Callable[..., Visit]
NAME = "chapters/15_calculator"


@pytest.fixture
def page(site: Site, visit: Start) -> Page:
    opened = visit(site.address).open(f"{site.address}/{NAME}.html")
    opened.locator(".calculator[data-ready=true]").wait_for()
    return opened


def result(page: Page, name: str) -> Any:
    return json.loads(str(page.locator(f'[data-result="{name}"]').get_attribute("data-value")))


def fill(page: Page, **values: float) -> None:
    for name, value in values.items():
        page.locator(f'.calculator input[name="{name}"]').fill(str(value))


def test_a_row_brings_its_own_economics(page: Page) -> None:
    page.get_by_label("Acceptance", exact=True).select_option("b_n2_acceptance")
    assert result(page, "verdict") == "pays"
    low, centre, high = result(page, "ratio")
    assert centre == pytest.approx(20.43 / 14.03, rel=1e-3)
    assert 1 < low < centre < high
    assert page.locator(".calculator-row").get_attribute("href") == "17_sources.html#b_n2_acceptance"


@pytest.mark.parametrize(
    ("row", "raw", "step", "n"), [("a_code176_acceptance", 13.4, 391, 5), ("b_n3_acceptance", 9, 150, 2)]
)
def test_its_arithmetic_is_the_librarys(page: Page, row: str, raw: float, step: float, n: int) -> None:
    (choice,) = (c for c in choices(published.rows()) if c.row.id == row)
    page.get_by_label("Acceptance", exact=True).select_option(row)
    fill(page, n=n, raw=raw, step=step)
    length = carried_length(choice.length, choice.n, n)
    ends = [float(bound) for bound in (length.low, length.centre, length.high)]
    assert result(page, "length") == pytest.approx(ends, rel=1e-6)
    assert result(page, "decode") == pytest.approx([decode_at(end, step) for end in ends], rel=1e-6)
    assert result(page, "needed") == pytest.approx([break_even_length(raw, step)] * 3)
    assert result(page, "acceptance") == pytest.approx([break_even_acceptance(raw, step, n)] * 3)
    ratio = [decode_at(end, step) / raw for end in ends]
    assert result(page, "ratio") == pytest.approx(ratio, rel=1e-6)
    said = "pays" if ratio[0] > 1 else "loses" if ratio[2] < 1 else "undecided"
    assert page.locator(".calculator-verdict").text_content() == said


def test_uncertain_inputs_widen_the_interval_until_it_is_undecided(page: Page) -> None:
    page.get_by_label("Acceptance", exact=True).select_option("b_n2_acceptance")
    before = result(page, "ratio")
    fill(page, unsure=30)
    low, centre, high = result(page, "ratio")
    assert (low, centre, high) == pytest.approx((before[0] / 1.69, before[1], before[2] / 0.49))
    assert result(page, "verdict") == "undecided"


def test_a_bandwidth_predicts_as_the_step_model_does(page: Page) -> None:
    page.get_by_label("Acceptance", exact=True).select_option("b_n2_acceptance")
    page.get_by_label("predicted from a memory bandwidth").check()
    page.get_by_label("Target", exact=True).select_option("target_b")
    page.get_by_label("Drafter", exact=True).select_option("drafter_q2k")
    fill(page, bandwidth=250, depth=20000, fixed=2, draft=5)
    machine = {"bandwidth": 250.0, "depth": 20000.0, "fixed_ms": 2.0, "draft_ms": 5.0}
    steps = raw_steps(models()["target_b"], models()["drafter_q2k"], 2, machine).high
    missed = missed_by(compare(published.rows()))
    (choice,) = (c for c in choices(published.rows()) if c.row.id == "b_n2_acceptance")
    bounds = zip(
        (choice.length.low, choice.length.centre, choice.length.high),
        (missed.high, missed.centre, missed.low),
        strict=True,
    )
    assert result(page, "ratio") == pytest.approx(
        [float(length / steps / factor) for length, factor in bounds], rel=1e-6
    )
    one = models()["target_b"].evaluation_bytes(1, 20000).centre / Fraction(250) / 10**6 + 2
    assert result(page, "raw") == pytest.approx(float(1000 / one))


def test_a_mouse_moves_a_slider_and_the_verdict_follows(page: Page) -> None:
    page.get_by_label("Acceptance", exact=True).select_option("b_n2_acceptance")
    assert page.locator(".calculator-verdict").text_content() == "pays"
    slider = page.get_by_label("Step cost (ms)", exact=True)
    slider.scroll_into_view_if_needed()
    box = slider.bounding_box()
    assert box is not None
    middle = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + box["width"] * 0.3, middle)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.9, middle, steps=4)
    page.mouse.up()
    assert float(page.locator('.calculator input[name="step"]').input_value()) > 400
    assert page.locator(".calculator-verdict").text_content() == "loses"


def test_a_keyboard_is_enough(page: Page) -> None:
    row = page.get_by_label("Acceptance", exact=True)
    row.focus()
    page.keyboard.press("Home")
    first = row.input_value()
    page.keyboard.press("ArrowDown")
    assert row.input_value() != first
    page.keyboard.press("Tab")
    n = page.get_by_label("n, tokens drafted a step", exact=True)
    assert n.evaluate("slider => slider === document.activeElement")
    before, length = int(n.input_value()), result(page, "length")[1]
    page.keyboard.press("ArrowLeft")
    assert int(page.locator('.calculator input[name="n"]').input_value()) == before - 1
    assert result(page, "length")[1] < length


def test_the_result_is_announced(page: Page) -> None:
    announced = page.locator(".calculator-result")
    assert announced.get_attribute("role") == "status"
    assert announced.get_attribute("aria-live") == "polite"


def test_a_recorded_run_can_be_picked(page: Page) -> None:
    row = page.get_by_label("Acceptance", exact=True)
    local = row.locator("optgroup[label^=Measured] option").first
    row.select_option(str(local.get_attribute("value")))
    assert result(page, "verdict") in ("pays", "loses", "undecided")
    assert "prompts" in str(page.locator('[data-result="how"]').text_content())


def test_without_scripts_tables_and_formulas_remain(site: Site, visit: Start) -> None:
    page = visit(site.address, scripts=False).open(f"{site.address}/{NAME}.html")
    assert not page.locator(".calculator form").is_visible()
    assert page.locator(".calculator noscript").is_visible()
    assert page.locator("#calculator-cards tbody tr").count() > 10
    assert page.locator("main math").count() > 5


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize(
    "texts",
    [
        ".calculator label, .calculator dt, .calculator dd, .calculator strong, .calculator option, .calculator legend",
        ".calculator a, main p a",
        ".cited td, .cited th, .cited caption, .cited td a",
    ],
)
def test_every_text_stands_out_from_what_lies_behind_it(site: Site, visit: Start, scheme: str, texts: str) -> None:
    opened = visit(site.address, color_scheme=scheme).open(f"{site.address}/{NAME}.html")
    opened.locator(".calculator[data-ready=true]").wait_for()
    found = opened.evaluate(CONTRAST, texts)
    assert found
    assert min(found) >= 4.5  # WCAG 2.2, level AA, for text of normal size
