"""Tables: what a reader sees is what stood in the frame, whatever stood there."""

import pandas as pd
import pytest
from docutils import nodes
from docutils.core import publish_doctree
from hypothesis import given
from hypothesis import strategies as st
from myst_parser.parsers.docutils_ import Parser

from analysis.publish.formats import format_interval, visible
from analysis.publish.tables import emitted, escape_text, interval_table, table
from analysis.records import Problem
from made_up_frames import NAN, lengths, ratios

NO_BREAK = "\N{NO-BREAK SPACE}"
EXTENSIONS = ["amsmath", "attrs_block", "attrs_inline", "colon_fence", "deflist", "dollarmath", "substitution"]
HOSTILE = "a|b <script>alert(1)</script> `x` $y$ {{z}} {ref}`q` **c** [d](http://e) <f@g.h> &lt; ~~i~~ ![](j) \\"


def rendered(markdown: str) -> nodes.table:
    """The one table that MyST makes of the text; everything in it must be nothing but text or code."""
    settings = {"myst_enable_extensions": EXTENSIONS, "report_level": 5}
    document = publish_doctree(markdown, parser=Parser(), settings_overrides=settings)
    assert [type(node) for node in document.children] == [nodes.table]
    leaves = {type(leaf.parent) for leaf in document.findall(nodes.Text)}
    assert leaves <= {nodes.paragraph, nodes.title, nodes.literal}
    return next(document.findall(nodes.table))


def cells(markdown: str) -> list[list[str]]:
    rows = rendered(markdown).findall(nodes.row)
    return [[entry.astext().replace(NO_BREAK, " ") for entry in row.findall(nodes.entry)] for row in rows]


def test_a_table_is_a_numbered_myst_table() -> None:
    frame = pd.DataFrame({"regime": ["recall", "prose"], "length": [3.5, NAN], "n": [5, 4]})
    assert table(
        frame, "Mean accepted length", "tab-length", columns={"regime": "regime", "length": "tokens"}
    ).text == (
        "~~~{table} Mean accepted length\n"
        ":name: tab-length\n"
        "\n"
        "| regime | tokens |\n"
        "| :-- | --: |\n"
        "| recall | 3.50 |\n"
        "| prose | – |\n"
        "~~~"
    )


def test_one_column_per_regime_with_intervals() -> None:
    frame = lengths((256,)).query("regime in ('recall', 'prose')")
    assert cells(interval_table(frame, "Length", "tab-length").text) == [
        ["depth", "recall", "prose"],
        ["256", "3.58 [3.22, 3.94] (n = 5)", "2.65 [2.39, 2.92] (n = 5)"],
    ]


def test_a_refused_cell_says_why() -> None:
    shown = cells(interval_table(ratios(), "Ratio", "tab-ratio").text)
    assert shown[2] == ["2048", "1.08 [0.97, 1.20] (n = 5)", "refused: 3 of 5 samples are loops"]


def test_two_rows_for_one_cell_are_refused() -> None:
    with pytest.raises(Problem, match="two rows for 256, invention"):
        interval_table(pd.concat([lengths(), lengths()]), "Length", "tab-length")


def test_hostile_text_is_only_text() -> None:
    frame = pd.DataFrame({HOSTILE: [HOSTILE], "code": [HOSTILE]})
    assert cells(table(frame, "c", "tab-c", code=["code"]).text) == [[HOSTILE, "code"], [HOSTILE, HOSTILE]]


def test_hostile_text_in_a_caption_is_only_text() -> None:
    caption = HOSTILE + "\n~~~\n```\n:name: other"
    table_node = rendered(table(pd.DataFrame({"a": [1]}), caption, "tab-c").text)
    assert next(table_node.findall(nodes.title)).astext() == visible(caption)
    assert table_node["names"] == ["tab-c"]


def test_an_interval_is_not_broken_across_lines() -> None:
    text = interval_table(lengths((256,)), "Length", "tab-length").text
    assert f"3.58{NO_BREAK}\\[3.22,{NO_BREAK}3.94\\] (n{NO_BREAK}={NO_BREAK}5)" in text


@given(st.text(max_size=40), st.text(max_size=40))
def test_any_text_survives_a_cell(plain: str, as_code: str) -> None:
    frame = pd.DataFrame({"a": [plain], "b": [as_code], "c": ["end"]})
    shown = cells(table(frame, "c", "tab-c", code=["b"]).text)[1]
    assert shown[0].split() == visible(plain).split()
    assert shown[1].split() == visible(as_code).split()
    assert shown[2] == "end"


@given(st.text(max_size=60))
def test_escaped_text_is_one_line(text: str) -> None:
    assert len(escape_text(text).splitlines()) <= 1


@pytest.mark.parametrize("name", ["Tab", "1st", "a b", "", 'a"b'])
def test_a_name_that_is_no_anchor_is_refused(name: str) -> None:
    with pytest.raises(Problem, match="table name"):
        table(pd.DataFrame({"a": [1]}), "c", name)


def test_a_column_that_is_not_there_is_named() -> None:
    with pytest.raises(Problem, match="table tab-a has no column 'b'; expected a"):
        table(pd.DataFrame({"a": [1]}), "c", "tab-a", columns={"b": "B"})


def test_emitted_text_is_inert_and_its_controls_are_seen() -> None:
    shown = emitted("<b>\x1b[31mred\u202e\r\nend</b>")
    assert "&lt;b&gt;␛[31mred\\u{202e}\nend&lt;/b&gt;" in shown.text
    assert "<b>" not in shown.text


@pytest.mark.parametrize(
    ("numbers", "text"),
    [
        ((0.54, 0.48, 0.6, 5), "0.54 [0.48, 0.60] (n = 5)"),
        ((0.54, NAN, NAN, 3), "0.54 (n = 3)"),
        ((NAN, NAN, NAN, 0), "not measured"),
    ],
)
def test_intervals_as_text(numbers: tuple[float, float, float, int], text: str) -> None:
    assert format_interval(*numbers) == text


def test_a_refusal_hides_the_value() -> None:
    assert format_interval(0.54, 0.48, 0.6, 5, refused="not at depth") == "refused: not at depth"
