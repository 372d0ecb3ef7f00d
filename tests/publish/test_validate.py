"""What keeps a run from being contributed."""

import json
import shutil

import pytest

from analysis.measure.study import open_study
from analysis.publish.promote import check_run
from analysis.publish.validate import validate_run
from analysis.records import Problem
from analysis.records.places import data_dir

RUNS = sorted((data_dir() / "runs").glob("*/run.json"))


@pytest.fixture
def run(tmp_path):
    """A copy of a committed run that a test may spoil."""
    return shutil.copytree(RUNS[0].parent, tmp_path / RUNS[0].parent.name)


def bad(run):
    return {check.name for check in validate_run(str(run)) if check.level == "bad"}


def change(run, **fields):
    file = run / "run.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | fields))


@pytest.mark.parametrize("file", RUNS, ids=lambda file: file.parent.name)
def test_a_committed_run_is_fit(file):
    assert bad(file.parent) == set()


@pytest.mark.parametrize(
    ("name", "level"),
    [
        ("smollm2-dspark-reference-15068b", "ok"),
        ("smollm2-dspark-quick-5e2435", "note"),
        ("smollm2-ngram-quick-f5d417", None),
    ],
)
def test_a_run_of_both_legs_has_a_negative_control_or_a_note(name, level):
    checks = validate_run(str(data_dir() / "runs" / name))
    assert next((check.level for check in checks if check.name == "control"), None) == level


def test_a_torn_journal(run):
    with (run / "samples.jsonl").open("ab") as out:
        out.write(b'{"index":')
    assert bad(run) == {"journals"}


def test_a_sample_taken_out_shows_in_numbering_and_steps(run):
    lines = (run / "samples.jsonl").read_bytes().splitlines(keepends=True)
    (run / "samples.jsonl").write_bytes(b"".join(lines[:3] + lines[4:]))
    assert bad(run) == {"journals", "steps"}


def test_steps_that_are_not_the_journals(run):
    line, *rest = (run / "samples.jsonl").read_text().splitlines(keepends=True)
    sample = json.loads(line)
    sample["step_ms"][0] += 1
    (run / "samples.jsonl").write_text(json.dumps(sample) + "\n" + "".join(rest))
    assert bad(run) == {"steps"}


def test_a_file_that_is_missing_and_one_that_does_not_belong(run):
    (run / "steps.parquet").rename(run / "notes.txt")
    assert bad(run) == {"files", "steps"}


def test_a_link_in_place_of_a_file(run, tmp_path):
    (run / "servers.jsonl").rename(tmp_path / "elsewhere")
    (run / "servers.jsonl").symlink_to(tmp_path / "elsewhere")
    assert bad(run) == {"files"}


def test_a_run_under_another_name(run):
    assert bad(run.rename(run.with_name("renamed"))) == {"name"}


def test_a_folder_of_somebodys_home(run):
    change(run, argv=["specbook", "/home/jo/secret/model.gguf"])
    assert bad(run) == {"anonymous"}


def without_one_prompt(run):
    """Take the samples of one prompt out of the first cell, and renumber the others; return that cell."""
    study = open_study(str(run))
    samples = [json.loads(line) for line in (run / "samples.jsonl").read_text().splitlines()]
    first = samples[0]
    kept = [one for one in samples if (one["cell"], one["prompt_id"]) != (first["cell"], first["prompt_id"])]
    lines = [json.dumps(one | {"index": number}) + "\n" for number, one in enumerate(kept)]
    (run / "samples.jsonl").write_text("".join(lines))
    return study.cells[first["cell"]]


def test_too_few_prompts_are_what_publish_would_refuse(tmp_path):
    quick = data_dir() / "runs" / "smollm2-dspark-quick-5e2435"
    run = shutil.copytree(quick, tmp_path / quick.name)
    cell = without_one_prompt(run)
    (said,) = [check for check in validate_run(str(run)) if check.name == "prompts"]
    assert said.level == "bad"
    assert said.saw.startswith(f"{cell.regime} at {cell.depth} ({cell.spec_type}, cell {cell.id}) of {run.name}")
    with pytest.raises(Problem) as refusal:
        check_run(run, tmp_path / "not committed")
    assert said.saw == str(refusal.value)


def test_an_address_and_a_temporary_file_are_what_publish_would_refuse(run):
    change(run, argv=["-p", "server_url", "http://gpu.example.org:8080"])
    assert bad(run) == {"anonymous"}
    change(run, argv=["/tmp/somewhere/model.gguf"])
    assert bad(run) == {"anonymous"}


def test_a_run_that_was_not_finished(run):
    change(run, ended="")
    assert bad(run) == {"provenance"}


def test_a_journal_that_is_no_json(run):
    (run / "samples.jsonl").write_bytes(b"\x00\xff\n")
    assert bad(run) == {"journals"}


def test_cells_of_another_machine(run):
    cells = json.loads((run / "run.json").read_text())["cells"]
    change(run, cells=[cell | {"machine": "other"} for cell in cells])
    assert "cells" in bad(run)
