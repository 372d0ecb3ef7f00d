"""What a user can get wrong, and how the command line ends: one clear line, status 1, nothing lost."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from analysis.cli.book import notebook_parameters
from analysis.publish.build import committed_book
from analysis.records.model import SCHEMA, plain
from analysis.records.places import data_dir, repo_dir
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


DRAFTER = repo_dir() / "data" / "drafters" / "smollm2-dspark-q8_0.gguf"


@pytest.mark.parametrize("content", [b"", b"hello, this is a text", b"GGUF\x03\x00\x00\x00"])
@pytest.mark.parametrize(
    "command",
    [
        ("convert-drafter", "OUT", "--from", "BAD"),
        ("convert-drafter", "OUT", "--from", str(DRAFTER), "--target", "BAD"),
        ("train-drafter", "OUT", "--target", "BAD"),
        ("perplexity", "BAD", str(DRAFTER)),
        ("perplexity", str(DRAFTER), "BAD"),
    ],
    ids=" ".join,
)
def test_a_damaged_model_is_refused_before_any_work(specbook, tmp_path: Path, command: tuple[str, ...], content: bytes):
    bad = tmp_path / "model.gguf"
    bad.write_bytes(content)
    status, _, err = specbook(*({"OUT": str(tmp_path / "out"), "BAD": str(bad)}.get(word, word) for word in command))
    assert (status, err.count("\n")) == (1, 1)
    assert err.startswith(f"specbook: {bad}")
    assert "; expected a" in err
    assert not (tmp_path / "out").exists()


def test_a_drafter_without_a_checkpoint_needs_no_converter(specbook, tmp_path: Path):
    status, out, err = specbook("convert-drafter", str(tmp_path))
    assert (status, out, err.count("\n")) == (1, "", 1)
    assert "hf is no checkpoint" in err


def test_a_text_that_was_meant_to_be_read_is_not_written_over(specbook, tmp_path: Path):
    text = tmp_path / "text.py"
    text.write_text("print()\n")
    status, out, err = specbook("corpus", str(text))
    assert (status, out) == (1, "")
    assert err.startswith(f"specbook: {text} is no saved corpus")
    assert text.read_text() == "print()\n"


def test_a_card_without_a_header_is_one_line(specbook, tmp_path: Path):
    card = tmp_path / "card.md"
    card.write_text("# A model\n")
    status, out, err = specbook("audit", str(card))
    assert (status, out) == (1, "")
    assert err == "specbook: the card has no header; expected YAML between two lines of three hyphens\n"


@pytest.mark.parametrize(
    "content",
    [
        b"depths = [",
        b"\xff",
        b"",
        b"depths = []",
        b"depths = 1.5\nregimes = 2.5",
        b'depths = [256]\nlocal_tokens = "x"',
    ],
)
def test_a_malformed_grid_is_one_line(specbook, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes):
    data = tmp_path / "data"
    shutil.copytree(data_dir() / "pairs", data / "pairs")
    (data / "grids").mkdir()
    (data / "grids" / "mine.toml").write_bytes(content)
    monkeypatch.setenv("SPECBOOK_DATA", str(data))
    status, out, err = specbook("measure", "smollm2-dspark", "--profile", "mine")
    assert (status, out, err.count("\n")) == (1, "", 1)
    assert "mine" in err


@pytest.mark.parametrize(
    ("name", "remedy"),
    [("file", "name another path"), ("file/inside", "name a folder where"), ("x" * 300, "name a shorter path")],
)
def test_what_stands_in_the_way_is_said_with_what_to_do(specbook, tmp_path: Path, name: str, remedy: str):
    (tmp_path / "file").touch()
    status, _, err = specbook("fixture", "dsv4", str(tmp_path / name))
    assert (status, err.count("\n")) == (1, 1)
    assert remedy in err


def test_infinite_memory_is_no_number(specbook):
    status, _, err = specbook("check", str(DRAFTER), "--memory", "inf")
    assert (status, err.count("\n")) == (1, 1)
    assert "expected a number of GiB" in err


def test_a_pair_nobody_knows_is_said_before_a_notebook_begins(specbook, local: Path):
    status, out, err = specbook("book", "--pair", "smollm2-rwa")
    assert (status, out, err.count("\n")) == (1, "", 1)
    assert not (local / "book").exists()


def test_notebooks_are_given_whole_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.toml").touch()
    (tmp_path / "smoke").mkdir()
    words = ["-p", "pair", "mine.toml", "-p", "profile", "smoke", "-p", "corpus", "./smoke", "-p", "depths", "256"]
    here = {"pair": str(tmp_path / "mine.toml"), "profile": "smoke", "corpus": str(tmp_path / "smoke"), "depths": "256"}
    assert notebook_parameters(words) == here


@pytest.mark.parametrize(("arguments", "reads"), [(("pairs",), str), (("audit", "--json"), json.loads)])
def test_an_output_of_ascii_alone_loses_nothing(arguments: tuple[str, ...], reads):
    command = [sys.executable, "-m", "analysis.cli", *arguments]
    paths = {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path), "COLUMNS": "200"}
    both = [
        subprocess.run(command, env=os.environ | paths | {"PYTHONIOENCODING": coding}, capture_output=True, check=True)
        for coding in ("ascii", "utf-8")
    ]
    plain, whole = (done.stdout.decode() for done in both)
    assert plain.isascii()
    assert not whole.isascii()
    assert reads(plain if reads is json.loads else plain.replace("\\u2013", "–")) == reads(whole)


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


@pytest.mark.parametrize(
    ("sign", "status", "said"),
    [("SIGINT", 130, "interrupted"), ("SIGTERM", 143, "ended"), ("SIGHUP", 129, "the terminal was closed")],
)
def test_a_signal_is_one_line_and_its_status(sign: str, status: int, said: str):
    script = (
        "import os, signal, sys, time, analysis.cli as cli\n"
        "def wait():\n"
        "    try:\n"
        f"        os.kill(os.getpid(), signal.{sign})\n"
        "        time.sleep(60)\n"
        "    finally:\n"
        "        print('cleaned up')\n"
        "cli.app.command('wait')(wait)\n"
        "cli.load = lambda command='': None\n"
        "sys.argv = ['specbook', 'wait']\n"
        "cli.main()\n"
    )
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (status, "cleaned up\n")
    assert done.stderr.strip() == f"specbook: {said}; what was recorded is whole, run again to resume"


@pytest.mark.parametrize("columns", ["40", "80", "200"])
def test_the_committed_runs_are_listed_with_whole_ids(
    specbook, monkeypatch: pytest.MonkeyPatch, local: Path, columns: str
):
    monkeypatch.setenv("COLUMNS", columns)
    status, out, _ = specbook("runs")
    assert status == 0
    assert all(file.parent.name in out for file in (data_dir() / "runs").glob("*/run.json"))
    if columns == "200":
        for file in (data_dir() / "runs").glob("*/run.json"):
            began = json.loads(file.read_text())["created"][:16].replace("T", " ")
            assert any(file.parent.name in line and began in line for line in out.splitlines())
