"""Numbers that lead to their row and carry their corrections."""

import pandas as pd
import pytest
from bs4 import BeautifulSoup

from analysis.evidence import claims, published
from analysis.publish.cited import Anchor, Cite, Noted, chart_columns, cite, cited_table, cited_text, cites, corrected
from analysis.records import Problem


def soup(shown) -> BeautifulSoup:
    return BeautifulSoup(shown.text, "html.parser")


def test_a_number_leads_to_its_row():
    link = soup(cited_text("Raw: ", cite("a_vk_raw"), name="raw")).a
    assert link["href"] == "17_sources.html#a_vk_raw"
    assert link.text == published.rows()["a_vk_raw"].printed.text


def test_a_statement_leads_to_its_entry():
    assert cite("a_c_ceiling").text == claims.claims()["a_c_ceiling"].printed


def test_an_unknown_id_is_refused():
    with pytest.raises(Problem, match="no published row or claim is called a_nothing"):
        cite("a_nothing")


def test_a_correction_stands_beside_its_number():
    shown = soup(
        cited_table([["headline", cite("a_raw_headline")], ["other", cite("a_vk_raw")]], ["", "raw"], "Raw", "raw")
    )
    (mark,) = shown.select("td .correction-mark")
    assert mark["data-correction"] == "a_comparator"
    note = shown.select_one(f"aside {mark.a['href']}")
    assert "13.32 to 13.41" in note.text
    assert note.a["href"] == "13_corrections.html#correction-a_comparator"


def test_one_note_serves_several_numbers():
    shown = soup(cited_table([[n, cite(n)] for n in ("b_12k_raw", "b_25k_raw")], ["", "raw"], "Raw", "raw"))
    assert len(shown.select(".correction-mark")) == 2
    assert len(shown.select("aside li")) == 1


def test_a_computed_number_carries_the_notes_of_all_behind_it():
    shown = soup(cited_text(Cite("+43 %", ("a_vk_raw", "a_raw_headline")), name="gain"))
    assert shown.select_one(".correction-mark")["data-correction"] == "a_comparator"


def test_an_entry_is_an_anchor_and_keeps_its_note():
    shown = soup(
        cited_table([[Anchor("row", "here"), Noted("13.55", "a_raw_headline")]], ["id", "printed"], "Rows", "rows")
    )
    assert shown.select_one("tr#here .correction-mark")


def test_text_is_shown_as_it_is():
    shown = soup(cited_table([["<b>x</b>", "\x1b[31m"]], ["a", "b & c"], "<i>", "odd"))
    assert shown.b is None
    assert shown.i is None
    assert shown.td.text == "\N{SYMBOL FOR ESCAPE}[31m"


def test_a_row_with_a_cell_too_few_is_refused():
    with pytest.raises(Problem, match="has 1 cells"):
        cited_table([["a"]], ["a", "b"], "Caption", "short")


def test_constants_are_text():
    assert [type(part) for part in cites(["a_vk_raw", "bpw_q2_k"]).parts] == [Cite, str]


def test_points_of_a_chart_lead_to_their_rows():
    ids = ["a_raw_headline", "a_vk_raw"]
    frame = chart_columns(pd.DataFrame({"id": ids}))
    assert list(frame["href"]) == [f"17_sources.html#{name}" for name in ids]
    assert frame["correction"].tolist()[1] == "none"
    assert corrected(frame["id"]) == "Corrections apply to 1 of 2 values; the table shows them."
    assert corrected(["a_vk_raw"]) == ""
