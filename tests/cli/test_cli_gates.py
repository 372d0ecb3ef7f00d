from collections import Counter

import pytest
from typer.testing import CliRunner

from analysis.cli import app, load
from analysis.measure.study import open_study
from analysis.records import Label
from analysis.records.store import RunDir
from factories import make_life, make_run, make_sample


@pytest.fixture
def recorded(tmp_path):
    """A function that records a run whose five samples have the given label, and returns its path."""

    def record(label):
        directory = RunDir.create(tmp_path / "run", make_run())
        with directory.writing() as writer:
            for number in range(5):
                writer.append(make_sample(prompt_id=f"prompt-{number}", prompt_sha256=f"{number:064x}", label=label))
            writer.append_life(make_life())
        return str(tmp_path / "run")

    return record


def gates(*arguments, columns=300):
    load("gates")
    return CliRunner().invoke(app, ["gates", *arguments], env={"COLUMNS": str(columns)})


def test_a_run_without_refusals_exits_with_0(recorded):
    result = gates(recorded(Label(kind="code", share=1.0, why="parses")))
    assert result.exit_code == 0
    assert "0 refuse" in result.output
    assert "5 of 5 samples fit to publish" in result.output


def test_a_refused_run_exits_with_1_and_names_the_evidence(recorded):
    result = gates(recorded(Label(kind="loop", share=0.8, why="the same line nine times")))
    assert result.exit_code == 1
    assert "text-of-its-regime" in result.output
    assert "loop in a cell of continuation: the same line nine times" in result.output
    assert "0 of 5 samples fit to publish" in result.output


def test_text_from_a_record_is_shown_and_not_obeyed(recorded):
    result = gates(recorded(Label(kind="loop", share=0.8, why="[red]\x1b[31mtext[/red]")))
    assert "[red]\N{REPLACEMENT CHARACTER}[31mtext[/red]" in result.output


def test_what_is_in_order_is_shown_on_demand(recorded):
    result = gates(recorded(Label(kind="code", share=1.0, why="parses")), "--all")
    assert "depth-real" in result.output
    assert "5 samples in order" in result.output


def test_the_counts_are_those_of_the_pages_and_cards():
    name = "smollm2-ngram-quick-2a2692"
    levels = Counter(found.level for found in open_study(name).findings)
    said = ", ".join(f"{levels[level]} {level}" for level in ("refuse", "warn", "unchecked", "pass"))
    assert f"{name}: {said};" in gates(name).output


@pytest.mark.parametrize("columns", [40, 80])
def test_names_of_gates_are_whole_in_a_narrow_terminal(recorded, columns):
    result = gates(recorded(Label(kind="loop", share=0.8, why="the same line nine times")), columns=columns)
    assert "text-of-its-regime" in result.output


def test_the_summary_stands_first(recorded):
    result = gates(recorded(Label(kind="loop", share=0.8, why="the same line nine times")))
    assert "samples fit to publish" in result.output.splitlines()[0]


def test_what_says_the_same_stands_together_and_each_by_itself_on_demand(recorded):
    run = recorded(Label(kind="loop", share=0.8, why="the same line nine times"))
    result = gates(run, columns=80)
    (line,) = [line for line in result.output.splitlines() if line.startswith("refuse text-of-its-regime")]
    assert line == "refuse text-of-its-regime: loop in a cell of continuation: the same line nine times"
    after = result.output.splitlines()[result.output.splitlines().index(line) + 1]
    assert after == "  5 samples: 0-4"
    assert "sample 3" in gates(run, "--all").output


def test_a_recorded_run_fits_two_screens_and_the_worst_stands_first():
    lines = gates("smollm2-dspark-quick-5e2435", columns=80).output.splitlines()
    assert len(lines) < 60
    levels = [line.split()[0] for line in lines[1:-1] if not line.startswith("  ")]
    assert levels == sorted(levels, key=["refuse", "warn", "unchecked"].index)
    assert lines[1].startswith("refuse text-of-its-regime: code in a cell of recall: ")
    assert lines[2] == "  9 samples: 4-5, 12-13, 44-45, 53, 60-61"
    assert "at least 50 % of it repeat what stands in the context" in lines[3]
