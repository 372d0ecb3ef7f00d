"""A calibration measured on one machine, counted on another."""

import json
from dataclasses import replace

import pytest

from analysis.measure.calibration.result import calibration_of, read_journals
from analysis.measure.calibration.selfduels import SelfDuel
from analysis.measure.calibration.synthetic import CELLS, MADE, Made, SyntheticCell
from analysis.records import Problem
from analysis.records.model import plain
from analysis.records.store import append_line
from factories import make_run

RATES = (0.5, 0.25)
RUN = make_run()


@pytest.fixture
def folder(tmp_path):
    campaign = tmp_path / "synthetic-0f1e2d"
    campaign.mkdir()
    made = Made(
        machine=RUN.machine, engine=RUN.engine, commit="0c1e570", dirty=False, requests=5, emitted=9, rates=(RATES,)
    )
    (campaign / MADE).write_text(json.dumps(plain(made)))
    for number in range(3):
        cell = SyntheticCell(
            number=number, rates=RATES, emitted=9, drafted=((2, 2, 2, 1),) * 5, accepted=((1, 2, 0, 0),) * 5
        )
        append_line(campaign / CELLS, cell)
    return tmp_path


def test_the_table_says_what_measured_the_cells_and_not_what_counted_them(folder):
    result = calibration_of(read_journals(folder))
    assert (result.machine, result.engine, result.commit) == (RUN.machine, RUN.engine, "0c1e570")
    assert (result.cells, result.requests, result.duels) == (3, 5, None)
    assert {row.prompts for row in result.coverage} == {3, 5}


def test_a_folder_of_two_campaigns_is_refused(folder):
    (folder / "synthetic-abcdef").mkdir()
    (folder / "synthetic-abcdef" / CELLS).touch()
    with pytest.raises(Problem, match="2 campaigns and 0 journals of duels; expected one campaign"):
        read_journals(folder)


def test_a_folder_without_what_made_it_is_refused(folder):
    (folder / "synthetic-0f1e2d" / MADE).unlink()
    with pytest.raises(Problem, match=r"made\.json cannot be read"):
        read_journals(folder)


def test_duels_may_come_from_a_machine_of_their_own(folder):
    duel = SelfDuel(number=0, block=(0, 0, 1, 1), a=(9.0, 8.0, 9.0, 8.0), b=(9.0, 9.0, 8.0, 8.0))
    append_line(folder / "self-duels-aa11bb.jsonl", duel)
    with pytest.raises(Problem, match=r"self-duels-aa11bb\.json cannot be read"):
        read_journals(folder)
    ground = replace(RUN.machine, name="another")
    (folder / "self-duels-aa11bb.json").write_text(json.dumps(plain(ground)))
    result = calibration_of(read_journals(folder))
    assert (result.machine, result.duels_machine) == (RUN.machine, ground)
    assert (result.duels.cells, result.duels.prompts) == (1, 2)
