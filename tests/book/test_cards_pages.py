"""The pages of the published cards as files: links from numbers to rows, and corrections beside every number."""

import json
import re
from functools import cache
from pathlib import Path

import pytest
from bs4 import BeautifulSoup, Tag

from analysis.evidence import claims, published
from analysis.evidence.choices import choices
from analysis.evidence.corrections import corrections, notes_for, superseded

CARDS = ("10_published_tables", "11_audit", "12_consistency", "13_corrections", "14_published_economics")
CARDS += ("15_calculator", "16_what_travels", "17_sources")
# Where a superseded number may stand: its own kind of box, which must then hold the note's mark.
BOXES = ("tr", "li", "figure", "p")


@cache
def page(folder: Path, name: str) -> Tag:
    found = BeautifulSoup((folder / f"{name}.html").read_text(encoding="utf-8"), "html.parser").select_one("article")
    assert found is not None
    return found


@pytest.fixture(scope="module")
def chapters(made_up_book: Path) -> dict[str, Tag]:
    """The committed chapters of the cards, built: the book of made-up numbers has them as they are."""
    return {name: page(made_up_book / "chapters", name) for name in CARDS}


def test_every_number_leads_to_its_entry(chapters):
    entries = {entry["id"]: entry for entry in chapters["17_sources"].select("tr[id]")}
    assert set(entries) == published.rows().keys() | claims.claims().keys()
    links = [(name, link) for name, article in chapters.items() for link in article.select("a.cite")]
    assert len(links) > 500
    for name, link in links:
        target, _, anchor = link["href"].partition("#")
        assert target == ("" if name == "17_sources" and link.find_parent("td") else "17_sources.html"), (name, link)
        assert anchor in entries, (name, link)


def test_an_entry_shows_its_quote_and_section(chapters):
    for entry in (*published.rows().values(), *claims.claims().values()):
        text = " ".join(chapters["17_sources"].find(id=entry.id).text.split())
        assert " ".join(entry.quote.split()) in text
        assert entry.section in text


def test_every_point_of_a_chart_leads_to_an_entry(chapters):
    known = published.rows().keys() | claims.claims().keys()
    found = 0
    for article in chapters.values():
        for script in article.select('figure.chart script[type="application/vnd.vegalite+json"]'):
            for data in json.loads(script.string).get("datasets", {}).values():
                for point in data:
                    if "href" in point:
                        found += 1
                        assert point["href"] == f"17_sources.html#{point['id']}"
                        assert point["id"] in known
    assert found > 100


def test_a_figure_stands_before_the_first_table(chapters):
    for name, article in chapters.items():
        if name == "17_sources":  # an index
            continue
        first = article.select_one("figure.chart, .cited table")
        assert first.name == "figure", name


def test_no_number_is_shown_without_its_corrections(chapters):
    """Every link to a row or statement that a correction applies to has the correction's mark, and its note."""
    checked = 0
    for name, article in chapters.items():
        if name == "13_corrections":
            continue
        for link in article.select("a.cite, tr[id] > th"):
            alone = link["href"].partition("#")[2] if link.name == "a" else link.parent["id"]
            ids = link.get("data-ids", alone).split()
            for correction in {c.id for notes in notes_for(ids).values() for c in notes}:
                checked += 1
                box = link.find_parent("tr") or link.parent
                mark = box.select_one(f'.correction-mark[data-correction="{correction}"] a')
                assert mark is not None, (name, link.text, correction)
                note = article.select_one(mark["href"])
                assert note["data-correction"] == correction
                assert corrections()[correction].replaced_by in note.text
    assert checked > 100


def test_no_page_shows_a_superseded_number_without_its_note(made_up_book):
    """Wherever the text of a superseded number stands on a page about the cards or in typed prose, its note does."""
    pages = [path for path in made_up_book.rglob("*.html") if not path.stem.startswith(("0", "search", "genindex"))]
    shown = set()
    for path in pages:
        article = BeautifulSoup(path.read_text(encoding="utf-8"), "html.parser").select_one("article")
        if article is None:
            continue
        for number, correction in superseded().items():
            for text in article.find_all(string=standing_alone(number)):
                if text.find_parent(["script", "style"]):
                    continue
                box = text.find_parent(BOXES)
                if about_another_card(box, corrections()[correction].card):
                    continue
                shown.add(number)
                assert carries(box, correction), (path.name, number, str(text)[:200])
    assert shown == set(superseded())


def standing_alone(number: str) -> re.Pattern[str]:
    """The number by itself: no part of a longer one, no end of a range."""
    return re.compile(rf"(?<![\d.,–-])(?<![–-] )(?<!to ){re.escape(number)}(?![\d.]*\d)(?! ?(?:[–-]|to) ?\d)")


def about_another_card(box: Tag | None, card: str) -> bool:
    """Tell whether all rows that a box names are of the other card, which may print the same digits."""
    linked = [] if box is None else [link["href"].partition("#")[2] for link in box.select("a.cite")]
    named = linked + ([box["id"]] if box is not None and box.get("id") else [])
    cards = {name[0].upper() for name in named if name.startswith(("a_", "b_"))}
    return bool(cards) and card not in cards


def carries(box: Tag | None, correction: str) -> bool:
    if box is None:
        return False
    entry = box.get("id") == f"correction-{correction}" or box.get("data-correction") == correction
    return entry or box.select_one(f'[data-correction="{correction}"]') is not None


def test_every_correction_has_an_entry_that_leads_to_its_numbers(chapters):
    for correction in corrections().values():
        entry = chapters["13_corrections"].find(id=f"correction-{correction.id}")
        assert correction.replaced_by in entry.text
        linked = {link["href"].partition("#")[2] for link in entry.select("a.cite")}
        assert linked == set(correction.applies_to)


def test_the_calculator_can_be_read_without_scripts(chapters):
    article = chapters["15_calculator"]
    assert article.select_one(".calculator form").has_attr("hidden")
    assert "needs scripts" in article.select_one(".calculator noscript").text
    rows = article.select("#calculator-cards tbody tr")
    assert len(rows) == len(choices(published.rows()))
    assert article.select("math")
