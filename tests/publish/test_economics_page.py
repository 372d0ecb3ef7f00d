"""Chapter 05 on a recorded run: its sentence says how to get more certainty."""

import re
import sys
from dataclasses import replace

import pytest

from analysis.measure.crossing import crossing_of
from analysis.measure.economics import break_even_frame
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


def test_without_a_negative_control_the_page_says_so(page):
    assert "This run has no negative control" in page.sentence().text


def test_a_negative_control_is_told_with_its_interval(page):
    raw = [sample for sample in page.study.samples if sample.leg == "raw"]
    control = tuple(replace(sample, leg="control", index=1000 + sample.index) for sample in raw)
    study = replace(page.study, samples=(*page.study.samples, *control))
    text = replace(page, study=study).sentence().text
    assert re.search(
        r"a second raw server, decoded 1\.000 .{0,60} times as fast as the first \(n = \d+ prompts\)", text
    )


def test_a_break_even_is_of_the_prompts_that_were_kept_on_both_legs():
    study = economics(run="smollm2-dspark-reference-15068b").study
    regimes = {cell.id: cell.regime for cell in study.run.cells}
    own = {
        leg: {(regimes[s.cell], study.cells[s.cell].depth, s.prompt_id) for s in study.publishable if s.leg == leg}
        for leg in ("raw", "drafted")
    }
    both = own["raw"] & own["drafted"]
    assert both < own["raw"] | own["drafted"]
    kept = [s for s in study.publishable if (regimes[s.cell], study.cells[s.cell].depth, s.prompt_id) in both]
    only = replace(study, samples=tuple(kept), findings=())
    frame, expected = break_even_frame(study), break_even_frame(only)
    assert frame[["depth", "estimate", "low", "high", "n"]].equals(expected[["depth", "estimate", "low", "high", "n"]])


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


def test_the_sentence_names_the_pair_and_what_a_step_would_have_to_yield(page):
    text = page.sentence().text
    assert text.startswith(page.study.run.title.removesuffix(f", {page.study.run.profile}"))
    assert re.search(r"At depth \d+ a drafted step yields [\d.]+ .*? would have to yield [\d.]+", text)


def test_a_need_beyond_the_longest_draft_is_called_so(page, monkeypatch):
    assert "can yield" not in page.sentence().text
    module = sys.modules[type(page).__module__]
    costly = module.break_even_frame(page.study).assign(estimate=30.0, low=20.0, high=40.0)
    monkeypatch.setattr(module, "break_even_frame", lambda _study: costly)
    longest = max(cell.n_max for cell in page.study.run.cells)
    assert f"more than a draft of {longest} can yield" in page.sentence().text


def test_a_refused_cell_is_counted_and_is_not_the_one_that_gets_the_hour(page):
    last = page.ratios.index == page.ratios.index[-1]
    refused = page.ratios.assign(
        n=page.ratios["n"].where(~last, float("nan")), refused=page.ratios["refused"].where(~last, "text-of-its-regime")
    )
    text = replace(page, ratios=refused).sentence().text
    assert "(1 more is refused)" in text
    cell = page.ratios.iloc[-1]
    assert f"--regimes {cell['regime']} --depths {cell['depth']} --budget" not in text


def test_the_box_names_the_files_that_were_measured(page):
    text = page.provenance().text
    assert all(file.sha256[:16] in text for file in page.study.run.files)
