import errno
import json
import os
import resource
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis.records import Block, Leg, Problem, Sample
from analysis.records.model import SCHEMA, parse, plain
from analysis.records.store import RunDir, find_run, journal_writing, set_aside, write_atomically
from factories import make_host, make_life, make_run, make_sample


@pytest.fixture
def run(tmp_path: Path) -> RunDir:
    return RunDir.create(tmp_path / "run", make_run())


def test_what_is_appended_is_read_back(run: RunDir):
    with run.writing() as writer:
        first = writer.append(make_sample())
        second = writer.append(make_sample(prompt_id="ast-00"))
        writer.append_life(make_life())
        writer.write_steps()

    assert [s.index for s in (first, second)] == [0, 1]
    again = RunDir.open(run.path)
    assert again.samples() == [first, second]
    assert again.lives() == [make_life()]
    steps = pq.read_table(run.path / "steps.parquet").to_pydict()
    assert steps["sample"] == [0, 0, 0, 1, 1, 1]
    assert steps["accepted"] == [2, 0, 2, 2, 0, 2]


def test_a_line_torn_by_a_kill_is_dropped_and_the_journal_goes_on(run: RunDir):
    with run.writing() as writer:
        writer.append(make_sample())
    with run.samples_file.open("ab") as journal:
        journal.write(b'{"index": 1, "cell": "ab')

    assert len(run.samples()) == 1
    with run.writing() as writer:
        assert writer.append(make_sample()).index == 1
    assert len(run.samples()) == 2


def test_a_line_damaged_in_the_middle_is_said_with_its_place(run: RunDir):
    run.samples_file.write_text("{not json}\n")
    with pytest.raises(Problem, match=r"samples\.jsonl:1 is not JSON"):
        run.samples()


def test_a_newer_schema_is_refused_and_untouched(run: RunDir):
    file = run.path / "run.json"
    data = json.loads(file.read_text()) | {"schema": SCHEMA + 1, "novelty": True}
    file.write_text(json.dumps(data))

    with pytest.raises(Problem, match=rf"schema {SCHEMA + 1}; expected at most {SCHEMA}.*update specbook"):
        RunDir.open(run.path)
    assert json.loads(file.read_text()) == data


def test_an_unknown_field_is_refused(run: RunDir):
    data = plain(make_sample()) | {"surprise": 1}
    with pytest.raises(Problem, match="surprise"):
        parse(Sample, data, where="samples.jsonl:1")


@pytest.mark.parametrize("after", [0, 1])
def test_a_full_disk_keeps_every_sample_that_was_recorded(run: RunDir, monkeypatch: pytest.MonkeyPatch, after: int):
    with run.writing() as writer:
        for _ in range(after):
            writer.append(make_sample())

        def full(_: int) -> None:
            raise OSError(errno.ENOSPC, "No space left on device")

        monkeypatch.setattr(os, "fsync", full)
        with pytest.raises(Problem, match=r"the disk is full while writing .*samples\.jsonl"):
            writer.append(make_sample())
        monkeypatch.undo()
    assert len(run.samples()) == after
    assert run.samples_file.read_bytes().count(b"\n") == after


def test_a_record_that_fits_in_part_leaves_nothing_behind(run: RunDir, monkeypatch: pytest.MonkeyPatch):
    with run.writing() as writer:
        writer.append(make_sample())
        before = run.samples_file.read_bytes()
        limits = resource.getrlimit(resource.RLIMIT_FSIZE)
        monkeypatch.setattr(errno, "ENOSPC", errno.EFBIG)  # a limit can be set here, a full disk cannot
        resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) + 100, limits[1]))
        try:
            with pytest.raises(Problem, match="the disk is full"):
                writer.append(make_sample())
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert run.samples_file.read_bytes() == before


@pytest.mark.parametrize("place", ["folder", "pipe", "link"])
def test_what_is_no_file_is_never_replaced_by_one(tmp_path: Path, place: str):
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("pipe")
    with pytest.raises(Problem, match=f"{place} is no regular file; expected the name of a file to write"):
        write_atomically(tmp_path / place, "text")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["folder", "link", "pipe"]
    assert (tmp_path / "pipe").is_fifo()


def test_a_full_disk_leaves_the_old_run_json(run: RunDir, monkeypatch: pytest.MonkeyPatch):
    before = (run.path / "run.json").read_text()

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with run.writing() as writer, pytest.raises(Problem, match="disk is full"):
        writer.update(title="another")
    assert (run.path / "run.json").read_text() == before


def test_one_writer_at_a_time(run: RunDir):
    code = "import sys; from pathlib import Path; from analysis.records.store import RunDir\n"
    code += "with RunDir.open(Path(sys.argv[1])).writing(): pass"
    command = [sys.executable, "-c", code, str(run.path)]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    with run.writing():
        second = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert second.returncode == 1
    assert "another process is writing" in second.stderr
    assert subprocess.run(command, check=False, env=environment).returncode == 0


def test_a_run_that_is_being_written_is_not_set_aside(run: RunDir):
    with run.writing(), pytest.raises(Problem, match="another process is writing"):
        set_aside(run.path, "2026-01-01T00:00:00")
    set_aside(run.path, "2026-01-01T00:00:00")
    assert [path.name for path in run.path.parent.iterdir()] == [f"{run.path.name}.2026-01-01T000000"]


def test_a_journal_without_a_run_has_one_writer_and_no_torn_line(tmp_path: Path):
    journal = tmp_path / "calibration" / "cells.jsonl"
    with journal_writing(journal):
        journal.write_bytes(b"{}\n{")
        with pytest.raises(Problem, match="another process is writing"), journal_writing(journal):
            pass
    with journal_writing(journal):
        assert journal.read_bytes() == b"{}\n"


def test_a_run_is_created_once(run: RunDir):
    with pytest.raises(Problem, match="already holds a run"):
        RunDir.create(run.path, make_run())


def test_a_missing_run_names_one_that_is_spelt_alike_or_where_all_are_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("SPECBOOK_LOCAL", str(tmp_path))
    RunDir.create(tmp_path / "runs" / "smollm2-ngram-test", make_run())
    assert find_run("smollm2-ngram-test").run == make_run()
    with pytest.raises(Problem, match=r"did you mean smollm2-ngram-test\?"):
        find_run("smollm2-ngram-tset")
    with pytest.raises(Problem, match="`specbook runs` lists them"):
        find_run("nowhere")


def test_a_sample_that_accepted_more_than_it_drafted_is_refused():
    with pytest.raises(ValueError, match="accepted more tokens than it drafted"):
        make_sample(drafted=(1,), accepted=(2,), step_ms=(1.0,))


steps = st.lists(
    st.integers(0, 8).flatmap(lambda d: st.tuples(st.just(d), st.integers(0, d), st.floats(0, 1e6))),
    max_size=20,
)


@settings(max_examples=100)
@given(columns=steps, text=st.text(max_size=50), tokens=st.lists(st.integers(0, 2**17), max_size=20))
def test_any_sample_survives_the_journal(columns, text, tokens):
    drafted, accepted, ms = (tuple(column) for column in zip(*columns, strict=True)) if columns else ((), (), ())
    text = text.encode("utf-8", "replace").decode()
    sample = make_sample(drafted=drafted, accepted=accepted, step_ms=ms, text=text, tokens=tuple(tokens))
    line = json.dumps(plain(sample), ensure_ascii=False)
    assert parse(Sample, json.loads(line), where="line") == sample


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=200)
@given(data=json_values)
def test_any_other_json_is_one_clear_problem(data):
    with pytest.raises(Problem, match="not a valid Sample|schema"):
        parse(Sample, data, where="samples.jsonl:1")


def test_blocks_of_a_duel_are_a_journal_of_their_own(run: RunDir):
    leg = {"server": "a-0", "samples": (0,), "host_before": make_host(), "host_after": make_host()}
    block = Block(number=0, order="baab", legs=tuple(Leg(contestant=side, **leg) for side in "baab"))
    assert run.blocks() == []
    with run.writing() as writer:
        writer.append_block(block)
    with run.blocks_file.open("ab") as journal:
        journal.write(b'{"number": 1, "ord')
    assert run.blocks() == [block]
    with run.writing() as writer:
        writer.append_block(replace(block, number=1))
    assert [found.number for found in run.blocks()] == [0, 1]
