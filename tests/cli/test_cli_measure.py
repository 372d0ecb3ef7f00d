"""Commands that measure, as far as they go without an engine: what they refuse, and what they show of a record."""

import re

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from analysis.cli import app, load
from analysis.cli.duel import said
from analysis.cli.measure import _table as measured_table
from analysis.measure.access import corpus_of
from analysis.measure.study import open_study
from analysis.records import Problem
from analysis.records.model import REGIMES
from analysis.stats import mean_t


def invoke(*arguments):
    load(arguments[0])
    return CliRunner().invoke(app, list(arguments), env={"COLUMNS": "200"})


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("sweep", "smollm2-ngram", "--vary", "n_mx=1"), "no factor named 'n_mx'"),
        (("sweep", "smollm2-ngram", "--vary", "p_min=2"), "p_min cannot be '2'"),
        (("sweep", "smollm2-ngrm", "--vary", "n_max=4"), "smollm2-ngrm"),
        (("duel", "raw", "raw"), "names no target"),
        (("duel", "smollm2-ngram", "smollm2-ngram", "--regime", "poetry"), "no regime named 'poetry'"),
        (("crossing", "smollm2-raw"), "drafts nothing"),
        (("measure", "smollm2-ngrm"), "smollm2-ngrm"),
        (("measure", "smollm2-ngram", "--profile", "qick"), "no profile named 'qick'"),
        (("measure", "smollm2-ngram", "--corpus", "README.md"), "expected a file that `specbook corpus` wrote"),
        (("corpus", "text.json.gz", "--from", "nowhere"), "no directory nowhere"),
        (("perplexity", "nowhere.gguf", "README.md"), "nowhere.gguf"),
    ],
)
def test_what_cannot_be_measured_is_said_before_anything_starts(arguments, complaint):
    result = invoke(*arguments)
    assert result.exit_code == 1
    assert isinstance(result.exception, Problem)
    assert complaint in str(result.exception)


@pytest.mark.parametrize("command", ["duel", "sweep", "calibrate", "crossing", "measure"])
def test_every_option_says_what_it_does(command):
    shown = invoke(command, "--help")
    assert shown.exit_code == 0
    assert "Goes on" in shown.output or "goes on" in shown.output or "already fought" in shown.output


def test_an_interval_without_limits_says_why():
    assert said(mean_t([1.0, 1.1], unit="blocks")) == "1.050, no interval: 2 blocks, and an interval needs 3"
    assert said(mean_t([1.0, 1.1, 1.2], unit="blocks")).endswith("(t, 3 blocks)")


def test_decide_says_what_its_options_take():
    load("decide")
    shown = CliRunner().invoke(app, ["decide", "--help"], env={"COLUMNS": "80"})
    words = " ".join(shown.output.replace("│", " ").split())
    assert "default: 0" not in words
    assert all(regime in words for regime in REGIMES)


@pytest.mark.parametrize(
    ("run", "headings"),
    [
        ("smollm2-ngram-quick-2a2692", ["acceptance", "raw decode rate", "drafted / raw", "verdict"]),
        ("smollm2-ngram-quick-f5d417", ["acceptance", "decode rate"]),
    ],
)
def test_a_measured_grid_is_shown_by_its_legs(run, headings):
    table = measured_table(open_study(run))
    shown = [str(column.header) for column in table.columns]
    assert set(headings) <= set(shown)
    assert ("verdict" in shown) == ("verdict" in headings)
    assert table.row_count == 8


def test_help_lists_commands_by_name():
    load()
    names = get_command(app).list_commands(None)
    assert "fixture" in names
    assert names == sorted(names)


def test_the_prompts_text_is_saved_for_another_machine(tmp_path):
    result = invoke("corpus", str(tmp_path / "text.json.gz"))
    assert result.exit_code == 0
    assert re.search(r"\d+ texts of Python .*, SHA-256 [0-9a-f]{64}", result.output)
    assert corpus_of(str(tmp_path / "text.json.gz")).sha256 == corpus_of("").sha256
