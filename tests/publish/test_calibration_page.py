"""The calibration as a page shows it, from made-up counts."""

from dataclasses import replace

import pytest

from analysis.measure.calibration.coverage import Coverage, Stopping
from analysis.measure.calibration.result import Calibration, Population, read_calibration, write_calibration
from analysis.publish.chapters.calibration import NOT_RUN, CalibrationPage
from analysis.records import Problem
from factories import make_run


def row(quantity, prompts, covered, shown=200):
    return Coverage(quantity=quantity, prompts=prompts, cells=200, shown=shown, covered=covered, width=0.1)


@pytest.fixture
def found():
    run = make_run()
    return Calibration(
        at=run.created,
        machine=run.machine,
        engine=run.engine,
        commit="0" * 40,
        dirty=False,
        cells=200,
        requests=8,
        emitted=24,
        rates=((0.5, 0.25), (0.9, 0.8)),
        coverage=(row("survival 1", 3, 190), row("mean accepted length", 3, 188), row("mean accepted length", 8, 192)),
        stopping=(
            Stopping(
                width=0.3,
                cells=40,
                covered=40,
                held=39,
                fixed_covered=34,
                prompts=31.5,
                fixed_prompts=9.25,
                price=2.5,
            ),
        ),
        population=Population(
            run="smollm2-dspark-quick-abc123",
            pair="smollm2-dspark",
            regime="continuation",
            depth=160,
            prompts=301,
            replications=200,
            coverage=(
                row("survival 1, over prompts", 20, 188),
                row("survival 1, over steps", 20, 120),
            ),
        ),
        duels=row("speed ratio of a server to itself", 4, 96, shown=100),
    )


def test_every_share_is_shown_with_its_own_interval(found):
    page = CalibrationPage(found)
    assert "95.0% of 600 intervals" in page.sentence().text
    assert "96.0 [92.3, 98.3] %" in page.sentence().text
    assert "survival at position 1" in page.coverage_table().text
    assert "200 of 200" in page.refused_table().text
    assert "85.0%" in page.stopping_table().text
    assert "over prompts hold the truth in 94%" in page.population_sentence().text
    assert "replication in 60%" in page.population_sentence().text
    assert "| survival at position 1 | 20 | 94.0" in page.population_table().text
    assert "| over prompts | over steps |" in page.population_table().text.replace(":", "")
    assert "In 200 duels of 4 blocks" in page.duels_sentence().text
    assert "0.5 0.25; 0.9 0.8" in page.provenance().text


def test_a_part_that_was_not_run_says_so(found):
    page = CalibrationPage(replace(found, coverage=(), stopping=(), population=None, duels=None))
    for shown in (page.sentence(), page.stopping_table(), page.population_table(), page.duels_sentence()):
        assert shown.text == NOT_RUN


def test_what_is_written_is_read_again(found, tmp_path):
    path = write_calibration(found, tmp_path / "calibration" / "result.json")
    assert read_calibration(path) == found


def test_without_a_calibration_the_way_to_one_is_said(tmp_path):
    with pytest.raises(Problem, match="no calibration at .*; run `specbook calibrate --write`"):
        read_calibration(tmp_path / "none.json")
