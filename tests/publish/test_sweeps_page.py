"""The chapter of sweeps on a recorded run that was made to differ: what is told of a knee, and of a difference."""

from dataclasses import replace

import pytest

from analysis.measure.knee import Factor, Point, RecordedSweep, load_sweep, parts_frame, rates_frame
from analysis.measure.study import Study, open_study
from analysis.publish.chapters.sweeps import SweepsPage, sweeps
from analysis.publish.frames import SWEEP, checked
from analysis.records import Problem

RUN = "smollm2-ngram-quick-2a2692"


class _Directory:
    def __init__(self, run):
        self.run = run

    def blocks(self):
        return ()


def made(study: Study, slower: float, **changes: int) -> Study:
    """The study as it might have been measured with other settings: the same text, each drafted step slower."""
    cells = {c.id: c if c.spec_type == "none" else replace(c, **changes) for c in study.run.cells}
    samples = tuple(
        replace(
            s,
            cell=cells[s.cell].id,
            step_ms=tuple((slower if s.leg == "drafted" else 1.0) * ms for ms in s.step_ms),
        )
        for s in study.samples
    )
    run = replace(study.run, cells=tuple(cells.values()))
    return replace(study, directory=_Directory(run), samples=samples, findings=())


def with_slots(study: Study, slots: int) -> Study:
    """The study as if both of its legs had been asked so many requests at once."""
    cells = {cell.id: replace(cell, parallel=slots) for cell in study.run.cells}
    samples = tuple(replace(sample, cell=cells[sample.cell].id) for sample in study.samples)
    run = replace(study.run, cells=tuple(cells.values()))
    return replace(study, directory=_Directory(run), samples=samples, findings=())


@pytest.fixture(scope="module")
def page() -> SweepsPage:
    study = open_study(RUN)
    rising = [
        Point(str(n), made(study, slower, n_max=n), study) for n, slower in ((8, 1.5), (9, 1.0), (10, 2.0), (11, 3.0))
    ]
    plain = [Point("8", made(study, 1.0, n_max=8), study), Point("9", made(study, 2.0, n_max=9), study)]
    factors = (
        Factor("n_max", "tokens drafted a step", True, tuple(rising)),
        Factor("other_thing", "another thing", False, tuple(plain)),
        Factor("rising", "no end", True, tuple(rising[:2])),
    )
    return SweepsPage(
        RecordedSweep(name="made", title="Made up", factors=(), note="Nothing of it was measured so."), factors
    )


def test_a_knee_is_told_by_what_the_next_and_the_last_value_change(page):
    lines = page.explanation("n_max").text.splitlines()
    assert len(lines) == 4
    assert all("the ratio is highest at 9, " in line for line in lines)
    assert all("At 10 an evaluation gives +0 %" in line and "costs +100 %" in line for line in lines)
    assert all("At 11 an evaluation gives +0 %" in line and "costs +200 %" in line for line in lines)


def test_where_the_ratio_still_rises_no_knee_is_claimed(page):
    assert all("no knee was seen" in line for line in page.explanation("rising").text.splitlines())


def test_values_without_an_order_are_set_against_the_first(page):
    lines = page.explanation("other_thing").text.splitlines()
    assert all("against 8: At 9" in line and "the ratio changes by -50 %" in line for line in lines)


def test_the_table_and_the_chart_name_the_machine_and_both_parts(page):
    text = page.table("n_max").text
    assert "AMD EPYC" in text
    assert "cost, in raw evaluations" in text
    chart = page.chart("other_thing")
    assert "AMD EPYC" in chart.note
    assert checked(parts_frame(page.factors[0]), SWEEP)["value"].nunique() == 4


def test_the_sentence_and_the_box_say_what_was_run(page):
    assert "Nothing of it was measured so." in page.sentence().text
    assert "specbook sweep smollm2-ngram --vary n_max=8,9,10,11" in page.provenance().text


def test_the_best_of_everything_is_named_with_how_much_was_tried(page):
    alone = replace(page, factors=page.factors[:1])
    text = alone.best().text
    assert text.count("tokens drafted a step: 9") == 4
    assert "flattered by chance" in text
    assert text.count("| 4 |") == 4
    # all factors are made from one run, so that the others bring no setting of their own
    assert page.best().text == text


def test_requests_at_once_are_shown_as_a_request_s_rate_and_as_all_of_them(page):
    study = open_study(RUN)
    points = tuple(Point(str(n), with_slots(study, n), with_slots(study, n)) for n in (1, 4))
    factor = Factor("parallel", "requests at once", False, points)
    rates = rates_frame(factor).pivot(index=["value", "regime", "leg"], columns="quantity", values="estimate")
    alone, together = rates.loc["1"], rates.loc["4"]
    assert alone["throughput"].tolist() == alone["decode rate"].tolist()
    assert together["throughput"].tolist() == pytest.approx((4 * together["decode rate"]).tolist())
    text = replace(page, factors=(factor,)).at_once().text
    assert "raw, all requests" in text
    assert "drafted / raw" in text
    assert "against 1: At 4" in text
    assert "one request at a time" in page.at_once().text


def test_what_a_sweep_did_not_vary_is_said_and_an_unknown_sweep_is_refused(page):
    assert "did not vary n\\_mx" in page.table("n_mx").text
    assert "did not vary p\\_min" in sweeps("smollm2-dspark-h200").chart("p_min").text
    assert page.explanation("n_mx").text == ""
    with pytest.raises(Problem, match="unknown sweep 'nothing'"):
        load_sweep("nothing")
