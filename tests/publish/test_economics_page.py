"""Chapter 05 on a recorded run: its sentence says how to get more certainty."""

import re
from dataclasses import replace

import pytest

from analysis.measure.crossing import crossing_of
from analysis.publish.chapters import economics


@pytest.fixture(scope="module")
def page():
    return economics(run="smollm2-ngram-quick-2a2692", crossing="smollm2-dspark-cpu")


def test_the_sentence_names_the_commands_for_more_prompts(page):
    text = page.sentence().text
    assert "specbook chapter 05_economics -p pair smollm2-ngram -p prompts 20" in text
    assert "specbook decide --pair smollm2-ngram --regimes" in text


def test_the_hour_goes_to_the_cell_with_the_fewest_prompts(page):
    chosen = page.ratios.index == page.ratios.index[-1]
    one = replace(page, ratios=page.ratios.assign(n=page.ratios["n"].where(~chosen, -1)))
    cell = page.ratios.iloc[-1]
    assert f"--regimes {cell['regime']} --depths {cell['depth']} --budget 1h" in one.sentence().text


def test_a_larger_run_is_asked_for_twice_its_prompts(page):
    larger = replace(page, ratios=page.ratios.assign(pairs=24))
    assert "-p prompts 48" in larger.sentence().text


def test_the_recorded_break_even_is_told_with_what_it_was_measured_on(page):
    text = page.crossing_sentence().text
    recorded = page.recorded
    assert f"`{recorded.pair}` on {recorded.machine.cpu}, depth {recorded.depth}" in text
    assert f"equally fast at **{crossing_of(recorded.samples).format(decimals=2)}**" in text
    assert re.search(r"A draft has only|of a whole draft", text)
    chart = page.crossing_chart()
    assert recorded.machine.cpu in chart.note
    assert "raw" in chart.alt


def test_without_a_record_the_page_says_so(page):
    bare = replace(page, recorded=None)
    assert "No break-even" in bare.crossing_sentence().text
    assert "No break-even" in bare.crossing_chart().text
