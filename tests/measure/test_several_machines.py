"""A run of several machines is looked at one machine at a time."""

from dataclasses import replace

import pytest

from analysis.measure.estimate import depth_frame, ratio_frame
from analysis.measure.study import Study, machines_of, open_study, raw_beside_drafted
from analysis.records import Problem
from factories import make_cell

MACHINES = ("test-2c", "other-8c")


@pytest.fixture
def spread(study) -> Study:
    """A run with both legs on two machines."""
    cells = [
        make_cell(machine=machine, **leg) for machine in MACHINES for leg in ({}, {"spec_type": "none", "n_max": 0})
    ]
    recorded = study("spread", cells=cells)
    machines = tuple(replace(recorded.run.machine, name=name) for name in MACHINES)
    with recorded.directory.writing() as writer:
        writer.update(machines=machines)
    return open_study(str(recorded.directory.path))


@pytest.mark.parametrize("machine", MACHINES)
def test_one_machine_is_a_study_of_its_own(spread: Study, machine: str):
    one = open_study(f"{spread.directory.path}@{machine}")
    assert one.run.machine.name == machine
    assert {cell.machine for cell in one.run.cells} == {machine}
    assert len(one.samples) == 12
    assert len(depth_frame(one, "decode rate")) == len(ratio_frame(one)) == 1


def test_numbers_of_two_machines_are_never_pooled(spread: Study):
    assert [machine.name for machine in machines_of(spread.run)] == list(MACHINES)
    with pytest.raises(Problem, match=r"the run spread was measured on 2 machines; .*; ask for spread@other-8c"):
        depth_frame(spread, "decode rate")


def test_a_drafted_cell_is_set_against_the_raw_one_of_its_machine(spread: Study):
    cells = spread.cells
    pairs = [(cells[raw].machine, cells[drafted].machine) for raw, drafted in raw_beside_drafted(spread.run)]
    assert pairs == [(machine, machine) for machine in MACHINES]


def test_a_machine_that_had_no_part(spread: Study):
    with pytest.raises(Problem, match="no machine 'third' in spread; expected one of test-2c, other-8c"):
        open_study(f"{spread.directory.path}@third")
