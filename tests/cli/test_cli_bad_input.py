"""What a user can get wrong, and how the command line ends: one clear line, status 1, nothing lost."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from analysis.publish.build import committed_book
from analysis.records.model import SCHEMA, plain
from analysis.records.places import data_dir
from analysis.records.store import RunDir
from factories import make_run, make_sample


@pytest.fixture
def local(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of its own for what the commands write."""
    monkeypatch.setenv("SPECBOOK_LOCAL", str(tmp_path))
    return tmp_path


def record(folder: Path) -> RunDir:
    run = RunDir.create(folder, make_run())
    with run.writing() as writer:
        writer.append(make_sample())
    return run


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("fetch", "smollm2-rwa"), "unknown pair 'smollm2-rwa' (did you mean smollm2-raw"),
        (("chapter", "04_depth_regmie"), "no chapter 04_depth_regmie; expected one of 01_convert"),
        (("chapter", "04", "-p", "dephts", "256"), "no chapter has a parameter dephts; expected one of"),
        (("chapter", "04", "-p", "prompts", "five"), "parameter prompts of 04_depth_regime was given 'five'"),
        (
            ("gates", "no-such-run"),
            "no run 'no-such-run'; expected the name of a run, or its directory; `specbook runs`",
        ),
        (("gates", "smollm2-ngram-quick-2a2629"), "no run 'smollm2-ngram-quick-2a2629'; expected the name of a run"),
    ],
)
def test_a_name_that_nobody_knows_is_one_line(specbook, local: Path, arguments: tuple[str, ...], said: str):
    status, out, err = specbook(*arguments)
    assert (status, out) == (1, "")
    assert err.startswith(f"specbook: {said}")
    assert err.count("\n") == 1


def test_a_chapter_that_could_not_run_leaves_the_local_pages(specbook, local: Path):
    pages = local / "book" / "chapters"
    status, *_ = specbook("chapter", "04", "-p", "dephts", "256")
    assert status == 1
    for page in (committed_book() / "chapters").glob("*.ipynb"):
        assert (pages / page.name).read_bytes() == page.read_bytes()


@pytest.mark.parametrize(
    "content", [b"hello, this is a text", b"GGUF\x03\x00\x00\x00", b"GGUF" + b"\x03" + b"\xff" * 400]
)
def test_a_file_that_is_no_whole_gguf_is_one_line(specbook, tmp_path: Path, content: bytes):
    file = tmp_path / "model.gguf"
    file.write_bytes(content)
    status, out, err = specbook("inspect", str(file))
    assert (status, out) == (1, "")
    assert "model.gguf" in err
    assert "; expected " in err
    assert err.count("\n") == 1


def test_a_pipe_is_no_model_and_nobody_waits_for_it(specbook, tmp_path: Path):
    os.mkfifo(tmp_path / "model.gguf")
    status, _, err = specbook("inspect", str(tmp_path / "model.gguf"))
    assert (status, err.count("\n")) == (1, 1)
    assert "is no regular file; expected a GGUF file" in err


@pytest.mark.parametrize("file", ["run.json", "samples.jsonl"])
def test_nesting_without_end_is_one_line(specbook, local: Path, file: str):
    run = record(local / "runs" / "deep")
    (run.path / file).write_text("[" * 100_000 + "\n")
    status, out, err = specbook("gates", "deep")
    assert (status, out, err.count("\n")) == (1, "", 1)
    assert file in err


def test_a_run_without_its_record_says_what_is_missing(specbook, local: Path):
    run = record(local / "runs" / "headless")
    (run.path / "run.json").unlink()
    status, _, err = specbook("gates", str(run.path))
    assert status == 1
    assert "no run.json in" in err


def test_a_folder_that_may_not_be_written_is_one_line(specbook, local: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("analysis.publish.build.shutil.copytree", _refused)
    status, _, err = specbook("chapter", "01")
    assert (status, err.count("\n")) == (1, 1)
    assert "Permission denied" in err


def _refused(*_arguments: object, **_options: object) -> None:
    raise PermissionError(13, "Permission denied", "/somewhere/book")


@pytest.mark.parametrize("command", ["gates", "runs"])
def test_a_run_of_a_newer_schema_is_one_line_and_untouched(specbook, local: Path, command: str):
    run = record(local / "runs" / "newer")
    newer = json.dumps(plain(run.run) | {"schema": SCHEMA + 1})
    (run.path / "run.json").write_text(newer)
    journal = run.samples_file.read_bytes()
    status, out, err = specbook(command, *(["newer"] if command == "gates" else []))
    assert (status, out) == (1, "")
    assert f"has schema {SCHEMA + 1}; expected at most {SCHEMA}" in err
    assert "update specbook" in err
    assert err.count("\n") == 1
    assert ((run.path / "run.json").read_text(), run.samples_file.read_bytes()) == (newer, journal)


def test_a_damaged_journal_names_the_line(specbook, local: Path):
    run = record(local / "runs" / "damaged")
    run.samples_file.write_bytes(b"not a record\n" + run.samples_file.read_bytes())
    status, _, err = specbook("gates", "damaged")
    assert status == 1
    assert "samples.jsonl:1 is not JSON" in err


def test_an_interrupt_is_one_line_and_130():
    script = (
        "import os, signal, sys, analysis.cli as cli\n"
        "cli.app.command('wait')(lambda: os.kill(os.getpid(), signal.SIGINT))\n"
        "cli.load = lambda command='': None\n"
        "sys.argv = ['specbook', 'wait']\n"
        "cli.main()\n"
    )
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 130
    assert done.stderr.strip() == "specbook: interrupted; what was recorded is whole, run again to resume"


@pytest.mark.parametrize("columns", ["40", "80", "200"])
def test_the_committed_runs_are_listed_with_whole_ids(
    specbook, monkeypatch: pytest.MonkeyPatch, local: Path, columns: str
):
    monkeypatch.setenv("COLUMNS", columns)
    status, out, _ = specbook("runs")
    assert status == 0
    assert all(file.parent.name in out for file in (data_dir() / "runs").glob("*/run.json"))
