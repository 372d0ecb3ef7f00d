"""The speed ratio is tokens an evaluation over its cost, exactly; a knee is told by which of the two changes more."""

from dataclasses import replace

import pytest

from analysis.measure import knee
from analysis.measure.knee import Factor, Point, change, load_sweep, parts_frame
from analysis.measure.study import Study, open_study
from analysis.records import Problem

RUN = "smollm2-ngram-quick-2a2692"


@pytest.fixture(scope="module")
def study() -> Study:
    return open_study(RUN)


class _Directory:
    def __init__(self, run):
        self.run = run

    def blocks(self):
        return ()


def with_n_max(study: Study, n_max: int, *, slower: float) -> Study:
    """The study as another draft length might have measured it: the same text, each drafted step slower."""
    cells = {c.id: c if c.spec_type == "none" else replace(c, n_max=n_max) for c in study.run.cells}
    run = replace(study.run, cells=tuple(cells.values()))
    samples = tuple(
        replace(
            s,
            cell=cells[s.cell].id,
            step_ms=tuple(slower * ms for ms in s.step_ms) if s.leg == "drafted" else s.step_ms,
        )
        for s in study.samples
    )
    return replace(study, directory=_Directory(run), samples=samples, findings=())


@pytest.fixture
def factor(study) -> Factor:
    points = tuple(
        Point(str(n), with_n_max(study, n, slower=slower), study) for n, slower in ((8, 1.0), (9, 2.0), (10, 3.0))
    )
    return Factor("n_max", "tokens drafted a step", True, points)


def test_the_ratio_is_tokens_over_cost(factor):
    frame = parts_frame(factor)
    shown = frame[frame["refused"] == ""].pivot(index=["value", "regime"], columns="part", values="estimate")
    expected = shown["tokens an evaluation"] / shown["cost of an evaluation"]
    assert shown["ratio"].tolist() == pytest.approx(expected.tolist())


def test_a_step_that_costs_twice_as_much_halves_the_ratio(factor):
    parts = change(factor, "8", "9", "continuation")
    assert parts["tokens an evaluation"].estimate == pytest.approx(1)
    assert parts["cost of an evaluation"].estimate == pytest.approx(2)
    assert parts["ratio"].estimate == pytest.approx(0.5)


def test_a_value_that_was_not_measured(factor):
    with pytest.raises(Problem, match=r"n_max was not measured at '7'; expected 8, 9, 10"):
        change(factor, "8", "7", "prose")


def test_points_must_differ_in_one_factor(study):
    same = Factor("n_max", "n_max", True, (Point("8", study, study), Point("8 again", study, study)))
    with pytest.raises(Problem, match=r"differ in 0 factors \(none\)"):
        knee._require_one_factor(same)


def test_the_name_of_a_pair_is_no_factor(study):
    named = knee.open_factors(load_sweep("smollm2-dspark-h200"))
    layers = next(factor for factor in named if factor.name == "layers")
    pairs = {cell.pair for point in layers.points for cell in point.drafted.run.cells if cell.spec_type != "none"}
    assert pairs == {"smollm2-dspark", "smollm2-dspark-thin"}
