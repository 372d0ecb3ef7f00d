"""The built pages as files: no broken link, no address that would be fetched, and a build that says what is wrong."""

import re
import shutil
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from visits import BOOK

from analysis.publish.build import build_book, toc_pages
from analysis.records import Problem


class Links(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.links: list[str] = []
        self.anchors: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name == "id" and value:
                self.anchors.add(value)
            if name in ("href", "src") and value:
                self.links.append(value)


def read(page: Path) -> Links:
    links = Links()
    links.feed(page.read_text(encoding="utf-8"))
    return links


def test_every_link_leads_somewhere(made_up_book: Path) -> None:
    pages = {page: read(page) for page in made_up_book.rglob("*.html") if "_static" not in page.parts}
    broken = []
    for page, links in pages.items():
        for link in links.links:
            parts = urlsplit(link)
            if parts.scheme in ("http", "https", "data", "mailto"):
                continue
            target = (page.parent / unquote(parts.path)).resolve() if parts.path else page
            if not target.exists() or (
                parts.fragment and target in pages and parts.fragment not in pages[target].anchors
            ):
                broken.append(f"{page.name} -> {link}")
    assert broken == []


def test_every_page_of_the_toc_is_there(made_up_book: Path) -> None:
    assert all((made_up_book / f"{page}.html").is_file() for page in toc_pages(BOOK))


def test_scripts_are_loaded_only_where_they_have_work(made_up_book: Path) -> None:
    for page in toc_pages(BOOK):
        text = (made_up_book / f"{page}.html").read_text(encoding="utf-8")
        assert ("vega-bundle.js" in text) == ('<figure class="chart"' in text)
        assert not re.search(r"<script[^>]*src=[^>]*(?:thebe|mathjax|require|fontawesome)", text, re.IGNORECASE)


def test_prose_types_no_measured_number() -> None:
    """A decimal, or a number with a unit, in a hand-written page would have to come from data."""
    typed = re.compile(r"\d+\.\d+|\b\d+(?:\.\d+)?\s*(?:ms|tokens/s|t/s|GiB|MiB|%)(?![\w.])")
    for page in sorted(BOOK.glob("*.md")):
        prose = re.sub(r"```.*?```|`[^`]*`|\$\$.*?\$\$", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
        assert typed.findall(re.sub(r"http\S+", "", prose)) == [], page.name


def test_what_is_not_self_contained_fails_the_build(tmp_path: Path) -> None:
    book = tmp_path / "book"
    shutil.copytree(BOOK, book, ignore=shutil.ignore_patterns("*.md", "_toc.yml", "chapters", "_build"))
    (book / "_toc.yml").write_text("format: jb-book\nroot: intro\n")
    picture, formula = '<img src="https://example.com/x.png" alt="x">', r"$\nosuchcommand{x}$"
    (book / "intro.md").write_text(f"# Title\n\n## Heading\n\n{picture}\n\n{formula}\n")
    with pytest.raises(Problem, match=r"formula .* cannot be set"):
        build_book(book)
    log = (book / "_build" / "build.log").read_text()
    assert "WARNING: intro.html fetches from the network: <img src=" in log
