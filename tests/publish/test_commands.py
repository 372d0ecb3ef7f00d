"""The commands that a page or a card shows are ones that run."""

import shlex
from dataclasses import replace

import pytest

from analysis.measure.study import open_study
from analysis.publish.card import card_text
from analysis.publish.chapters.common import provenance
from analysis.publish.commands import START_THEM, measure_again, measure_rows, show_again
from analysis.publish.notebooks import find_notebook
from analysis.publish.parameters import values_for
from analysis.records import Engine
from analysis.records.places import data_dir
from analysis.records.store import RunDir
from factories import make_cell, make_life, make_run, make_sample

RUNS = sorted(path.parent.name for path in (data_dir() / "runs").glob("smollm2-ngram*/run.json"))
CHAPTERS = ["03_acceptance", "04_depth_regime", "05_economics"]


def parameters(words: list[str]) -> dict[str, str]:
    return {words[i + 1]: words[i + 2] for i, word in enumerate(words) if word == "-p"}


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_every_command_gives_parameters_that_the_chapter_takes(chapter):
    run = open_study(RUNS[0]).run
    commands = [show_again(run, chapter), measure_again(run, chapter), *measure_rows(run, chapter)]
    for command in commands:
        given = parameters(shlex.split(command))
        assert values_for(find_notebook(chapter), given).keys() == given.keys()


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_there_is_one_command_for_each_row(chapter):
    run = open_study(RUNS[0]).run
    places = {(cell.depth, cell.regime) for cell in run.cells}
    assert len(measure_rows(run, chapter)) == len(places)


def test_a_chapter_without_depths_has_no_row_to_reproduce():
    assert measure_rows(make_run(), "02_launch") == []


def test_a_run_of_decide_is_repeated_by_its_own_command():
    words = ("specbook", "decide", "--pair", "smollm2-dspark", "--budget", "5min")
    run = make_run(profile="decide", argv=words, cells=(make_cell(n_max=4, p_min=0.6),))
    assert measure_rows(run, "05_economics") == [f"{shlex.join(words)} --n-max 4 --p-min 0.6"]
    given = replace(run, argv=(*words, "--n-max=4", "--p-min", "0.6"))
    assert measure_rows(given, "05_economics") == [f"{shlex.join(words)} --n-max=4 --p-min 0.6"]


def test_a_hostile_command_line_stays_on_its_line():
    run = make_run(profile="decide", argv=("specbook", "x\n```\n<script>alert(1)</script>\x1b[31m"))
    (command,) = measure_rows(run, "05_economics")
    assert "\n" not in command
    assert "\x1b" not in command


def test_a_pair_of_somebody_elses_is_a_file():
    run = make_run(cells=(make_cell(pair="their-own"),))
    assert "-p pair their-own.toml" in measure_again(run, "05_economics")


def test_the_box_of_a_served_run_says_what_could_not_be_checked(tmp_path):
    engine = Engine(source="url", version="b10300", build=10300, commit="", backend="unknown")
    directory = RunDir.create(tmp_path / "run", make_run(engine=engine))
    with directory.writing() as writer:
        writer.append(make_sample())
        writer.append_life(make_life(metrics=None))
    text = provenance(open_study(str(tmp_path / "run")), "05_economics").text
    assert "counters-agree" in text
    assert "not checked" in text
    assert "it does not tell them" in text
    assert "{dropdown} Reproduce one row" in text


def served_run(*words, **changes):
    engine = Engine(source="url", version="b10300", build=10300, commit="", backend="unknown")
    return make_run(profile="decide", engine=engine, argv=words, **changes)


@pytest.mark.parametrize(
    ("words", "command"),
    [
        (
            ("specbook", "decide", "--raw-url", "$URL", "--drafted-url=$URL", "--budget", "2min", "--same-servers"),
            "specbook decide --raw-url RAW_URL --drafted-url DRAFTED_URL --budget 2min",
        ),
        (
            ("__main__.py", "decide", "--raw-url", "$URL", "--drafted-url", "$URL", "--api-key-file", "../key1.txt"),
            "specbook decide --raw-url RAW_URL --drafted-url DRAFTED_URL --api-key-file KEYFILE",
        ),
        (
            ("specbook", "decide", "--raw-url=$URL", "--drafted-url=$URL", "--drafted-key-file=k", "--again"),
            "specbook decide --raw-url RAW_URL --drafted-url DRAFTED_URL --drafted-key-file DRAFTED_KEYFILE",
        ),
        (
            ("pytest", "-q"),
            "specbook decide --raw-url RAW_URL --drafted-url DRAFTED_URL --depths 256 --regimes continuation",
        ),
    ],
)
def test_a_run_of_two_addresses_is_measured_again_by_decide(words, command):
    run = served_run(*words)
    assert measure_again(run, "05_economics") == command
    assert measure_rows(run, "05_economics") == [command]


def test_box_and_card_say_that_the_servers_are_started_first(tmp_path):
    run = served_run(
        "specbook", "decide", "--raw-url", "$URL", "--drafted-url", "$URL", "--api-key-file", "../key1.txt"
    )
    directory = RunDir.create(tmp_path / "run", run)
    with directory.writing() as writer:
        for number in range(5):
            writer.append(make_sample(prompt_id=f"p-{number}", prompt_sha256=f"{number:064x}"))
    study = open_study(str(tmp_path / "run"))
    for text in (provenance(study, "05_economics").text, card_text(study)):
        assert START_THEM in text
        assert text.count("specbook decide --raw-url RAW_URL --drafted-url DRAFTED_URL --api-key-file KEYFILE") == 1
        assert "papermill notebooks/05_economics.ipynb out.ipynb -p pair" not in text
        assert "key1" not in text
