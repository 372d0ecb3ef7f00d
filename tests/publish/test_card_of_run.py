"""A card made from a run: valid, quotable, and every number of it found again."""

import re
import shutil
from dataclasses import replace

import pytest
from huggingface_hub import ModelCard
from typer.testing import CliRunner

from analysis.cli import app, load
from analysis.measure.study import open_study
from analysis.publish.card import CardOptions, card_text, check_card
from analysis.publish.card_audit import audit_card, check_numbers, exact_card, failures, read_card
from analysis.records import Machine, Problem
from analysis.records.places import data_dir
from analysis.records.store import RunDir
from factories import make_run, make_sample

# A run of a sweep is one leg at one setting, and there are dozens; whole grids are what cards are written of.
SWEPT = "\n".join(file.read_text() for file in (data_dir() / "sweeps").glob("*.toml"))
RUNS = sorted(path.parent.name for path in (data_dir() / "runs").glob("*/run.json") if path.parent.name not in SWEPT)


@pytest.fixture(scope="module")
def cards():
    """Each committed run's card, rounded and with all decimals."""
    found = {}
    for name in RUNS:
        study = open_study(name)
        found[name] = card_text(study), exact_card(study, CardOptions())
    return found


@pytest.mark.parametrize("name", RUNS)
def test_a_committed_runs_card_is_valid_and_says_what_stands_behind_it(cards, name):
    text, _ = cards[name]
    card = ModelCard(text)
    run = open_study(name).run
    assert card.data.license == "apache-2.0"
    assert card.data.eval_results
    for said in (run.machine.cpu, run.engine.commit, run.commit, "## Gates", "## Corrections", "## Rebuild every row"):
        assert said in text
    cells = {(cell.depth, cell.regime) for cell in run.cells}
    assert all(f"-p depths {depth} -p regimes {regime}" in text for depth, regime in cells)
    assert re.search(r"\d\.\d\d \[\d+\.\d\d, \d+\.\d\d\] \(n = \d+\)", text)


@pytest.mark.parametrize("name", RUNS)
def test_the_audit_finds_every_number_of_the_card_again(cards, name):
    text, exact = cards[name]
    found = check_numbers(text, exact)
    assert len(found) > 200
    assert {one.outcome for one in found} == {"follows"}
    printed = {one.printed for one in found}
    body = re.sub(r"^\|(?:--\|)+$|^ *(?:\d+\.|-) ", "", text, flags=re.MULTILINE)
    digits_seen = sum(char.isdigit() for one in found for char in one.printed)
    assert digits_seen >= sum(char.isdigit() for char in body), "no digit of the card is outside a checked number"
    assert any("." in number for number in printed)


@pytest.mark.parametrize("name", RUNS)
def test_a_changed_digit_is_found_wherever_it_stands(cards, name):
    text, exact = cards[name]
    places = [match.start() for match in re.finditer(r"\d", text)]
    missed = []
    for place in places[::151]:
        changed = text[:place] + str((int(text[place]) + 5) % 10) + text[place + 1 :]
        line = text.count("\n", 0, place) + 1
        if line not in {one.line for one in failures(check_numbers(changed, exact))}:
            missed.append(text.splitlines()[line - 1])
    assert missed == []


def test_a_changed_verdict_is_found(cards):
    name = next(name for name in RUNS if "| undecided |" in cards[name][0])
    text, exact = cards[name]
    found = failures(check_numbers(text.replace("| undecided |", "| pays |", 1), exact))
    assert [(one.printed, one.expected) for one in found] == [("pays", "undecided")]


def test_a_card_may_round_more_and_may_not_round_wrongly(cards):
    text, exact = cards[RUNS[0]]
    line = next(line for line in text.splitlines() if re.match(r"\| \w+ \| \d+ \| \d+ \| 0\.\d{3} \[", line))
    value = re.search(r"0\.\d{3}", line)[0]
    coarse = f"{float(value):.1f}"
    assert failures(check_numbers(text.replace(line, line.replace(value, coarse, 1)), exact)) == []
    wrong = f"{float(value) + 0.1:.1f}"
    assert len(failures(check_numbers(text.replace(line, line.replace(value, wrong, 1)), exact))) == 1


def test_an_authors_own_sentence_is_looked_up_in_the_run(cards):
    text, exact = cards[RUNS[0]]
    own = "\nMy drafter is 12345.678 times faster.\n\nIt was measured at depth 256.\n"
    found = [one for one in check_numbers(text + own, exact) if one.outcome != "follows"]
    assert [(one.printed, one.outcome) for one in found] == [("12345.678", "unknown"), ("256", "elsewhere")]


def test_names_with_markup_and_escape_sequences_are_inert(tmp_path):
    hostile = "<img src=x onerror=alert(1)>\x1b[31m|[x](javascript:1) `$1$`"
    run = make_run(title=hostile, machine=Machine(name="test-2c", cpu=hostile, cores=2, memory=2**30, os="Linux"))
    directory = RunDir.create(tmp_path / "ä run", replace(run, corpus=hostile))
    with directory.writing() as writer:
        for number in range(5):
            writer.append(make_sample(prompt_id=f"p-{number}", prompt_sha256=f"{number:064x}"))
    text = card_text(open_study(str(tmp_path / "ä run")))
    assert "\x1b" not in text
    assert not re.search(r"(?<!\\)<img|(?<!\\)\[x", text)
    check_card(text)


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda text: text.replace("license: apache-2.0", "license: Apache 2.0"), "licence"),
        (lambda text: text.replace("license:", "base_model: no owner\nlicense:"), "no repository"),
        (lambda text: text.replace("---\n", "", 1), "no header"),
        (lambda text: text.replace("| regime | depth |", "| regime |", 1), "cells"),
        (lambda text: text + "\x1b[31m", "control character"),
        (lambda text: text + "/home/somebody/model.gguf", "folder"),
        (lambda text: text.replace("license: apache-2.0", "license: [}"), "not valid"),
    ],
)
def test_what_the_hub_or_a_reader_would_stumble_over_is_refused(cards, spoil, message):
    with pytest.raises(Problem, match=message):
        check_card(spoil(cards[RUNS[0]][0]))


def test_the_commands_write_a_card_and_hold_it_against_its_run(tmp_path):
    load("card")
    load("audit")
    path = tmp_path / "Karte für mich.md"
    runner = CliRunner()
    made = runner.invoke(app, ["card", RUNS[0], "-o", str(path), "--base-model", "owner/target", "--license", "mit"])
    assert made.exit_code == 0
    assert ModelCard(path.read_text()).data.base_model == "owner/target"
    assert runner.invoke(app, ["audit", str(path)]).exit_code == 0
    path.write_text(path.read_text().replace("license: mit", "license: mit\nversion: 7.25"))
    result = runner.invoke(app, ["audit", str(path)], env={"COLUMNS": "200"})
    assert result.exit_code == 1
    assert "unknown" in result.output
    assert "7.25" in result.output


def test_a_card_is_not_written_over_another_text(tmp_path):
    load("card")
    path = tmp_path / "README.md"
    path.write_text("# Somebody's project\n")
    refused = CliRunner().invoke(app, ["card", RUNS[0], "-o", str(path)])
    assert "README.md exists and is no card of a run" in str(refused.exception)
    assert path.read_text() == "# Somebody's project\n"


def test_a_card_is_written_over_an_earlier_one(tmp_path):
    load("card")
    path = tmp_path / "README.md"
    for licence in ("mit", "apache-2.0"):
        assert CliRunner().invoke(app, ["card", RUNS[0], "-o", str(path), "--license", licence]).exit_code == 0
    assert ModelCard(path.read_text()).data.license == "apache-2.0"


def test_a_line_of_a_million_letters_takes_no_time(cards):
    text, exact = cards[RUNS[0]]
    assert failures(check_numbers(text + "x" * 1_000_000 + "\n" + "# 5\n" + "|" * 10_000 + "\n", exact)) == []


def test_a_card_without_a_run_asks_for_one(tmp_path):
    path = tmp_path / "README.md"
    path.write_text("---\nlicense: mit\n---\n\n# Mine\n")
    with pytest.raises(Problem, match="names no run"):
        audit_card(path)


@pytest.mark.parametrize("content", [b"\xff\xfe\x00", None])
def test_what_is_no_card_is_one_line(tmp_path, content):
    path = tmp_path / "no.md"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(Problem, match="no UTF-8|cannot be read"):
        read_card(path)


def test_a_card_of_a_run_that_grew_since_is_told_so_first(tmp_path):
    """The last samples of a copy stand for those that came after the card."""
    load("card")
    load("audit")
    run = shutil.copytree(data_dir() / "runs" / "smollm2-ngram-quick-2a2692", tmp_path / "smollm2-ngram-quick-2a2692")
    whole = (run / "samples.jsonl").read_bytes()
    (run / "samples.jsonl").write_bytes(b"".join(whole.splitlines(keepends=True)[:64]))
    path = tmp_path / "card.md"
    runner = CliRunner()
    assert runner.invoke(app, ["card", str(run), "--out", str(path)]).exit_code == 0
    arguments = ["audit", str(path), "--run", str(run)]
    assert "samples now" not in runner.invoke(app, arguments).output
    (run / "samples.jsonl").write_bytes(whole)
    result = runner.invoke(app, arguments)
    assert result.exit_code == 1
    assert result.output.startswith("The run has 80 samples now and the card was written of 64: ")
