"""Chapter 03 on a recorded run: loops as a row of their own, and published figures of another model beside it."""

from dataclasses import replace

import pytest

from analysis.publish.chapters import acceptance

RUN = "smollm2-ngram-quick-2a2692"


@pytest.fixture(scope="module")
def page():
    return acceptance(run=RUN)


def rows(text: str) -> list[list[str]]:
    """The cells of a table's rows, headings first."""
    lines = [line for line in text.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def test_the_emission_that_was_left_out_is_of_the_drafted_leg():
    page = acceptance(run="smollm2-dspark-reference-15068b")
    first = next(sample for sample in page.study.samples if sample.index in page.study.refusals)
    assert first.leg == "control"
    assert page._left_out().leg == "drafted"


def test_loops_have_a_row_of_their_own(page):
    headings, _, *body = rows(page.loops_table().text)
    assert headings == ["text", "emissions", "mean accepted length", "with its loops left in", "difference"]
    assert [row[0] for row in body][-1] == "loops, whatever was asked for"
    assert all("that loop" in row[1] for row in body[:-1])


def test_the_sentence_says_how_much_loops_would_change(page):
    text = page.loops_sentence().text
    assert "loop. Their mean accepted length is" in text
    assert "Left in, they would change" in text


def test_without_loops_the_page_says_so(page):
    honest = tuple(sample for sample in page.study.samples if sample.label.kind != "loop")
    clean = replace(page, study=replace(page.study, samples=honest))
    assert "No emission of this depth loops" in clean.loops_sentence().text
    assert "No emission of this depth loops" in clean.loops_table().text


def test_published_figures_are_clearly_of_another_model(page):
    _, _, *body = rows(page.reference_table().text)
    ours, theirs = ([row for row in body if row[-1].startswith(word)] for word in ("measured", "printed"))
    assert {row[0] for row in ours} == {"smollm2-ngram"}
    assert all(row[0].startswith("Qwen3-4B") for row in theirs)
    assert theirs[0][1:6] == ["math: GSM8K", "7", "1", "6.11", ""]
    assert theirs[-1][-1] == "printed, figure 2"
    assert "Model, drafter, texts and sampling are all others" in page.reference_sentence().text
