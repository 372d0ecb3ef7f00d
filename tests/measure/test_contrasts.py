"""Two runs set against each other: one factor, or nothing is said."""

import json
import re
from dataclasses import replace

import pytest
from typer.testing import CliRunner

from analysis.cli import app, load
from analysis.measure.contrasts import compare_studies
from analysis.records import Problem
from analysis.records.places import repo_dir
from factories import make_cell


def raw_cell(**changes):
    return make_cell(spec_type="none", n_max=0, **changes)


def test_one_factor_is_named_and_its_effect_taken_prompt_by_prompt(study):
    slow = study("slow", cells=[raw_cell(), make_cell(p_min=0.0)])
    fast = study("fast", cells=[raw_cell(), make_cell(p_min=0.5)], speed=1.5)
    found = compare_studies(slow, fast)
    assert found.factor == "p min"
    rate = next(d for d in found.changes if d.is_ratio)
    assert rate.change.estimate == pytest.approx(1.5)
    assert rate.change.n == 6
    assert {d.leg for d in found.controls} == {"raw"}
    assert found.controls[0].change.estimate == pytest.approx(1.0)


def test_a_negative_control_is_no_part_of_the_raw_cells(study):
    slow = study("slow", cells=[raw_cell(), make_cell(p_min=0.0)])
    fast = study("fast", cells=[raw_cell(), make_cell(p_min=0.5)], speed=1.5)
    raw = {cell.id for cell in slow.run.cells if cell.spec_type == "none"}
    control = [
        replace(sample, index=1000 + sample.index, leg="control", step_ms=tuple(9 * ms for ms in sample.step_ms))
        for sample in slow.samples
        if sample.cell in raw
    ]
    with_control = replace(slow, samples=(*slow.samples, *control))
    assert compare_studies(with_control, fast).controls == compare_studies(slow, fast).controls


def test_two_factors_are_refused(study):
    first = study("first", cells=[make_cell()])
    second = study("second", cells=[make_cell(n_max=8, flash_attn="on")])
    with pytest.raises(Problem, match="n_max, flash_attn.*exactly one factor"):
        compare_studies(first, second)


def test_another_text_is_a_factor_of_its_own(study):
    cells = [make_cell()]
    first, second = study("first", cells=cells), study("second", cells=cells, corpus="b" * 64)
    found = compare_studies(first, second)
    assert found.factor == "text prompted with"
    assert not found.paired
    assert all(d.change is None for d in found.changes)
    with pytest.raises(Problem, match="n_max, text prompted with"):
        compare_studies(first, study("third", cells=[make_cell(n_max=8)], corpus="b" * 64))


def test_runs_that_do_not_differ_are_refused_with_what_to_compare_instead(study):
    with pytest.raises(Problem, match="differ in nothing; .*specbook sweep PAIR --vary.*specbook card RUN"):
        compare_studies(study("one", cells=[make_cell()]), study("two", cells=[make_cell()]))


def test_runs_at_one_depth_each_are_a_contrast_of_depth(study):
    shallow, deep = study("shallow", cells=[make_cell()]), study("deep", cells=[make_cell(depth=320)])
    assert compare_studies(shallow, deep).factor == "depth"


def test_runs_without_a_common_cell_are_one_line(study):
    first = study("first", cells=[make_cell(), make_cell(depth=320)])
    second = study("second", cells=[make_cell(depth=512), make_cell(depth=640)])
    with pytest.raises(Problem, match="no cell of the first run has a counterpart"):
        compare_studies(first, second)


def test_the_runs_that_the_page_names_are_a_contrast_of_one_factor():
    page = (repo_dir() / "book" / "rerun.md").read_text()
    words = re.search(r"\$ specbook (compare smollm2\S+ \S+)", page)[1].split()
    load("compare")
    result = CliRunner().invoke(app, words, env={"COLUMNS": "200"}, catch_exceptions=False)
    assert result.exit_code == 0
    assert "they differ in n max" in result.output


def test_the_command_prints_factor_and_changes(study):
    load("compare")
    slow = study("slow", cells=[make_cell(p_min=0.0)])
    fast = study("fast", cells=[make_cell(p_min=0.5)], speed=1.5)
    arguments = ["compare", str(slow.directory.path), str(fast.directory.path)]
    shown = CliRunner().invoke(app, arguments, env={"COLUMNS": "200"})
    assert "they differ in p min" in shown.output
    assert "x 1.50" in shown.output
    plain = json.loads(CliRunner().invoke(app, [*arguments, "--json"]).output)
    assert plain["factor"] == "p min"
    assert [row["quantity"] for row in plain["changes"]][-1] == "decode rate (tokens/s)"


def test_a_cell_that_is_refused_is_named_with_its_gate(study):
    load("compare")
    slow = study("slow", cells=[raw_cell(), make_cell(p_min=0.0)])
    loops = make_cell(p_min=0.5)
    fast = study("fast", cells=[raw_cell(), loops], loops=[loops])
    found = compare_studies(slow, fast)
    assert found.changes == ()
    (said,) = found.refused
    assert said == "continuation at 256, drafted, of fast: all 6 samples are refused (text-of-its-regime 6)"
    shown = CliRunner().invoke(app, ["compare", str(slow.directory.path), str(fast.directory.path)])
    assert "No cell of the factor that differs is left to compare on both sides." in shown.output
    assert said in shown.output


def test_one_prompt_makes_no_interval_and_that_is_said(study):
    load("compare")
    slow = study("slow", cells=[make_cell(p_min=0.0)], prompts=1)
    fast = study("fast", cells=[make_cell(p_min=0.5)], prompts=1, speed=12.0)
    arguments = ["compare", str(slow.directory.path), str(fast.directory.path)]
    shown = CliRunner().invoke(app, arguments, env={"COLUMNS": "300"})
    assert "x 12.00 (no interval: 1 prompt, and an interval needs 3)" in shown.output
