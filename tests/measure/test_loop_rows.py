"""Loops as a row of their own, on a recorded run, and how much they would change."""

import math
from dataclasses import replace

import pytest

from analysis.measure.estimate import acceptance_of
from analysis.measure.loops import loop_acceptance, loop_frame, looped
from analysis.measure.study import Study, open_study

RUN = "smollm2-ngram-quick-2a2692"
DEPTH = 2048


@pytest.fixture(scope="module")
def study() -> Study:
    return open_study(RUN)


def test_only_drafted_loops_of_the_depth_are_looked_at(study):
    loops = looped(study, DEPTH)
    assert loops
    assert {sample.label.kind for sample in loops} == {"loop"}
    assert {study.cells[sample.cell].depth for sample in loops} == {DEPTH}
    assert all(any(sample.drafted) for sample in loops)
    assert not {sample.index for sample in loops} & {sample.index for sample in study.publishable}


def test_the_difference_is_what_leaving_them_in_adds(study):
    frame = loop_frame(study, DEPTH).set_index("regime")
    assert frame["loops"].sum() == len(looped(study, DEPTH))
    for regime, row in frame.iterrows():
        if row["samples"]:
            assert row["difference"].estimate == pytest.approx(row["left_in"].estimate - row["without"].estimate), (
                regime
            )
        if not row["loops"]:
            assert row["difference"].estimate == 0


def test_loops_alone_are_one_kind_of_text_whatever_was_asked_for(study):
    alone = loop_acceptance(study, DEPTH)
    loops = looped(study, DEPTH)
    steps = sum(d > 0 for sample in loops for d in sample.drafted)
    assert alone.steps == steps
    assert alone.mean_length.estimate == pytest.approx(1 + sum(sum(s.accepted) for s in loops) / steps)


def test_a_loop_that_is_refused_for_more_than_its_text_stays_out(study):
    worst = looped(study, DEPTH)[0]
    finding = next(f for f in study.findings if f.where.kind == "sample" and f.where.id == str(worst.index))
    also = replace(finding, gate="depth-real")
    assert worst not in looped(replace(study, findings=(*study.findings, also)), DEPTH)


def test_without_loops_there_is_nothing_to_show(study):
    cell = next(cell for cell in study.run.cells if cell.spec_type != "none")
    honest = tuple(sample for sample in study.samples if sample.label.kind != "loop")
    assert loop_acceptance(replace(study, samples=honest), DEPTH) is None
    assert math.isnan(acceptance_of([], cell).mean_length.estimate)
