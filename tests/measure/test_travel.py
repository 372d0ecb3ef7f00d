"""Two runs beside each other, paired by prompt: two recorded ones of one machine, and ones made to differ."""

from dataclasses import replace

import pytest

from analysis.measure.knee import Factor, Point
from analysis.measure.study import Study, open_study
from analysis.measure.travel import (
    acceptance_differences,
    against,
    pooled_difference,
    ratios_beside,
    raw_again,
    step_cost_ratios,
    travels,
    verdicts_beside,
)
from analysis.publish.chapters.travels import travels as travels_page
from analysis.records import Problem
from analysis.stats import mean_t

FIRST, SECOND = "smollm2-ngram-quick-2a2692", "smollm2-ngram-quick-f5d417"


@pytest.fixture(scope="module")
def runs() -> tuple[Study, Study]:
    return open_study(FIRST), open_study(SECOND)


def slower(study: Study, factor: float) -> Study:
    """The study as a machine would have measured it that takes `factor` times as long for everything."""
    samples = tuple(replace(s, step_ms=tuple(factor * ms for ms in s.step_ms)) for s in study.samples)
    return replace(study, samples=samples)


def test_one_machine_twice_accepts_the_same(runs):
    frame = acceptance_differences(*runs)
    assert len(frame) == 8
    assert (frame["equal_text"] == frame["pairs"]).mean() > 0.7
    shown = frame[frame["refused"] == ""]
    assert (shown["estimate"].abs() < 0.1).all()
    assert "beyond the margin" not in set(shown["travels"])


def test_a_slower_machine_shows_in_the_cost_and_not_in_acceptance(runs):
    first = runs[0]
    second = slower(first, 3.0)
    costs = step_cost_ratios(first, second)
    assert costs.loc[costs["refused"] == "", "estimate"].tolist() == pytest.approx(
        [3.0] * (costs["refused"] == "").sum()
    )
    differences = acceptance_differences(first, second)
    judged = set(differences.loc[differences["refused"] == "", "travels"])
    assert judged <= {"equal in every prompt", "undecided"}
    assert "equal in every prompt" in judged


def test_two_raw_servers_are_a_negative_control(runs):
    first = runs[0]
    again = raw_again(first, first)
    assert again.estimate == 1.0
    assert again.n > 3
    assert raw_again(first, slower(first, 2.0)).estimate == pytest.approx(0.5)
    assert raw_again(*runs).n == 0, "the second has no raw leg"


def test_the_committed_page_tells_its_noise():
    page = travels_page(
        "smollm2-dspark-machines-5e2435",
        "smollm2-dspark-machines-7844a7",
        first_sweep="smollm2-dspark-cpu",
        second_sweep="smollm2-dspark-h200",
    )
    text = page.noise_table().text
    assert "| CPU | ` smollm2-dspark-machines-5e2435 ` | raw leg of smollm2-dspark-machines-120b15 | " in text
    assert "| CUDA | ` smollm2-dspark-machines-7844a7 ` | raw leg of smollm2-dspark-machines-40f499 | " in text
    bare = travels_page("smollm2-dspark-machines-5e2435", "smollm2-dspark-machines-7844a7")
    assert "Neither grid has a control leg" in bare.noise_table().text
    own = travels_page("smollm2-dspark-reference-15068b", "smollm2-dspark-reference-15068b")
    assert "| its own control leg | " in own.noise_table().text


def test_verdicts_need_a_raw_leg_on_both_sides(runs):
    assert verdicts_beside(*runs).empty
    twice = verdicts_beside(runs[0], runs[0])
    assert len(twice) == 8
    assert (twice["verdict_first"] == twice["verdict_second"]).all()


@pytest.mark.parametrize(
    ("differences", "said"),
    [
        ([0.0, 0.0, 0.0], "equal in every prompt"),
        ([0.0, 0.0], "undecided"),
        ([0.01, -0.01, 0.005, 0.0], "within the margin"),
        ([0.2, 0.21, 0.19, 0.2], "beyond the margin"),
        ([-0.2, -0.21, -0.19, -0.2], "beyond the margin"),
        ([0.2, -0.1, 0.05], "undecided"),
    ],
)
def test_a_difference_is_judged_by_its_whole_interval(differences, said):
    assert travels(differences, 0.05) == said


def test_all_cells_together_count_a_prompt_once(runs):
    first, second = runs
    assert pooled_difference(first, first).estimate == 0
    pooled = pooled_difference(first, second)
    pairs = [s for s in first.publishable if any(s.drafted)]
    assert pooled.n == len({sample.prompt_id for sample in pairs} & {s.prompt_id for s in second.publishable})
    assert pooled.n < len(pairs)


@pytest.mark.parametrize("margin", [0.0, 0.05])
def test_where_there_is_no_interval_nothing_is_judged(margin):
    assert against(mean_t([0.0, 0.0]), margin) == "undecided"


def swept(study: Study, factor: float) -> Factor:
    """One factor with two values, as a machine that takes `factor` times as long for the drafted leg measured it."""
    drafted = tuple(
        replace(s, step_ms=tuple(factor * ms for ms in s.step_ms)) if s.leg == "drafted" else s for s in study.samples
    )
    points = tuple(Point(value, replace(study, samples=drafted), study) for value in ("8", "9"))
    return Factor("n_max", "tokens drafted a step", True, points)


def test_one_factor_on_two_machines_stands_in_one_frame(runs):
    frame = ratios_beside(swept(runs[0], 1.0), swept(runs[0], 2.0))
    assert frame.groupby("machine").size().tolist() == [8, 8]
    shown = frame[frame["refused"] == ""].pivot(index=["regime", "value"], columns="machine", values="estimate")
    assert (shown["first"] / shown["second"]).tolist() == pytest.approx([2.0] * len(shown))


def test_sweeps_that_share_no_value_or_differ_in_more_than_the_machine_are_refused(runs):
    first = swept(runs[0], 1.0)
    others = replace(first, points=tuple(replace(point, value=f"{point.value}0") for point in first.points))
    with pytest.raises(Problem, match="two sweeps of n_max have no value in common"):
        ratios_beside(first, others)
    run = replace(runs[0].run, cells=tuple(replace(cell, p_min=0.5) for cell in runs[0].run.cells))
    changed = replace(runs[0], directory=_Directory(run))
    with pytest.raises(Problem, match="the runs differ in p_min"):
        ratios_beside(first, replace(first, points=tuple(replace(p, drafted=changed) for p in first.points)))


def test_runs_that_differ_in_more_than_the_machine_are_refused(runs):
    first, second = runs
    run = replace(second.run, cells=tuple(replace(cell, n_max=4) for cell in second.run.cells))
    other = replace(second, directory=_Directory(run))
    with pytest.raises(Problem, match=r"the runs differ in n_max at invention, depth 256; expected the same pair"):
        acceptance_differences(first, other)


def test_runs_without_a_cell_in_common_are_refused(runs):
    first, second = runs
    run = replace(second.run, cells=tuple(replace(cell, depth=99) for cell in second.run.cells))
    with pytest.raises(Problem, match="have no cell in common"):
        acceptance_differences(first, replace(second, directory=_Directory(run)))


def test_the_page_accepts_two_recorded_runs():
    page = travels_page(FIRST, SECOND)
    assert "Both runs are of one machine" in page.sentence().text
    assert "margin 0.05" in page.acceptance_table().text
    assert "no raw leg that may be published" in page.verdict_table().text
    for shown in (page.machines_table(), page.cost_table()):
        assert "AMD EPYC" in shown.text
    assert "first: verdict" in travels_page(FIRST, FIRST).verdict_table().text
    assert f"`{FIRST}`" in page.provenance().text
    assert "margin, 0.05 either way" in page.acceptance_chart().note
    assert "No sweep on both machines" in page.sweep_chart().text
    assert page.sweep_table().text == ""


def test_the_page_shows_a_sweep_of_both_machines_in_one_row(runs):
    page = replace(travels_page(FIRST, SECOND), sweeps={"n_max": (swept(runs[0], 1.0), swept(runs[0], 2.0))})
    text = page.sweep_table().text
    assert "1: AMD EPYC" in text
    assert "2: AMD EPYC" in text
    chart = page.sweep_chart()
    assert "At 1 both are equally fast." in chart.note
    assert runs[0].run.id in page.provenance().text


class _Directory:
    def __init__(self, run):
        self.run = run

    def blocks(self):
        return ()


def test_another_drafter_is_shown_beside_the_shipped_one_of_its_own_machine_only():
    page = travels_page("smollm2-dspark-machines-5e2435", "smollm2-dspark-machines-7844a7")
    shown = page.other_drafter("smollm2-dspark-thin-machines-8d81d9", on="second").text
    assert "one layer" in shown
    assert shown.count("| 2048 |") == shown.count("| 256 |") == 4
    with pytest.raises(Problem, match="differ in machine"):
        page.other_drafter("smollm2-dspark-thin-machines-8d81d9", on="first")
    with pytest.raises(Problem, match="8f4c46 has no raw leg"):
        page.other_drafter("smollm2-dspark-thin-machines-8f4c46", on="first")
    assert "No run" in page.other_drafter("", on="first").text


def test_both_machines_have_a_curve_by_position():
    page = travels_page("smollm2-dspark-machines-5e2435", "smollm2-dspark-machines-7844a7")
    shown = page.positions_table().text
    assert "second: conditional" in shown
    assert shown.count("| recall |") == 5
    assert "depth 256" in shown
