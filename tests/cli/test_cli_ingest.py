"""`specbook ingest` and `specbook diagnose` as a reader types them."""

import io
import json
import sys
from pathlib import Path

import pytest

from analysis.cli import main
from analysis.measure.study import open_study

LOGS = Path(__file__).parent.parent / "ingest" / "logs"


@pytest.fixture
def specbook(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "160")

    def run(*arguments: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["specbook", *map(str, arguments)])
        try:
            main()
            status = 0
        except SystemExit as ended:
            status = ended.code or 0
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    return run


def test_a_log_becomes_tables_and_says_what_is_not_known(specbook) -> None:
    status, out, _ = specbook("ingest", LOGS / "2026-10-whole-life.log")
    assert status == 0
    assert "181/318" in out
    assert "64 (derived)" in out
    assert "not known" in out
    assert "unchecked text-of-its-regime: a log holds no emitted text" in out


def test_a_log_without_a_drafter_shows_what_it_prints_of_tokens_and_speeds(specbook) -> None:
    status, out, _ = specbook("ingest", LOGS / "bundled-raw.log")
    assert status == 0
    for printed in ("160.46", "707.9", "85.24"):
        assert printed in out
    assert "decode rate: 82 [" in out
    assert "not said" not in out
    _, out, _ = specbook("ingest", LOGS / "bundled-raw.log", "--json")
    assert [row["predicted_per_s"] for row in json.loads(out)["reports"]] == [89.0, 85.24, 84.03, 70.95]


def test_gates_that_cannot_be_judged_for_one_reason_stand_in_one_line(specbook) -> None:
    _, out, _ = specbook("ingest", LOGS / "bundled-ordinary.log", LOGS / "bundled-ordinary-metrics.txt")
    unchecked = [line for line in out.splitlines() if line.startswith("  unchecked")]
    assert len(unchecked) < 20
    assert any("life-recorded, memory-still, host-quiet, host-not-shared: " in line for line in unchecked)
    assert all(line.endswith(("(all files)", "(bundled-ordinary.log 1)")) for line in unchecked)


@pytest.mark.parametrize(("page", "level"), [("bundled-ordinary", "pass"), ("bundled-dspark", "refuse")])
def test_a_log_is_held_against_the_page_of_the_same_server(specbook, page, level) -> None:
    files = (LOGS / "bundled-ordinary.log", LOGS / f"{page}-metrics.txt")
    _, out, _ = specbook("ingest", *files, "--same-server")
    (row,) = [line for line in out.splitlines() if line.strip().startswith("counters-agree")]
    assert row.split()[1] == level
    status, _, err = specbook("ingest", files[0], "--same-server")
    assert (status, err.count("\n")) == (1, 1)


def test_json_names_the_meaning_of_every_number(specbook) -> None:
    status, out, _ = specbook("ingest", "--json", LOGS / "speed-bench.json", LOGS / "metrics-vllm.txt")
    assert status == 0
    content = json.loads(out)
    assert {row["meaning"] for row in content["estimates"]} <= content["meanings"].keys()
    assert "<b>" not in out
    assert "\x1b" not in out
    assert len(content["gates"]) >= 23


def test_a_pipe_is_read_too(specbook, monkeypatch) -> None:
    class Piped:
        buffer = io.BytesIO((LOGS / "vllm-v1.log").read_bytes())

    monkeypatch.setattr(sys, "stdin", Piped)
    status, out, _ = specbook("ingest", "-")
    assert status == 0
    assert "standard input" in out


def test_tables_are_written_where_they_are_asked_for(specbook, tmp_path) -> None:
    folder = tmp_path / "my tables"
    status, out, _ = specbook("ingest", LOGS / "bundled-dspark.log", "--out", folder, "--format", "csv")
    assert status == 0
    assert (folder / "steps.csv").is_file()
    assert "wrote" in out


@pytest.mark.parametrize("content", [b"", b"\x00\xff" * 999, b"all slots are idle\n", b'{"a": 1}'])
def test_a_file_that_says_nothing_is_one_line(specbook, tmp_path, content) -> None:
    file = tmp_path / "nothing in here ö.log"
    file.write_bytes(content)
    status, _, err = specbook("ingest", file)
    assert status == 1
    assert err.count("\n") == 1
    assert "nothing that reports speculation" in err


def test_names_with_escapes_are_inert_on_the_terminal(specbook, tmp_path) -> None:
    file = tmp_path / "a\x1b[31m[bold]<b>.log"
    file.write_bytes((LOGS / "speed-bench.json").read_bytes())
    status, out, _ = specbook("ingest", file)
    assert status == 0
    assert "\x1b[31m" not in out
    assert "[bold]<b>.log" in out


def test_a_typed_curve_is_diagnosed(specbook) -> None:
    status, out, _ = specbook("diagnose", "--curve", "0.8,0.1,0.01", "--steps", "900")
    assert status == 0
    assert "a good first position, then a collapse" in out
    assert "rotary" in out


def test_a_log_and_a_run_are_diagnosed(specbook) -> None:
    status, out, _ = specbook("diagnose", LOGS / "bundled-dspark-metrics.txt", "--json")
    assert status == 0
    (found,) = json.loads(out)
    assert found["positions"][0] | {"limits": None} == {
        "position": 1, "conditional": 52 / 93, "accepted": 52, "reached": 93, "limits": None,
    }  # fmt: skip
    status, out, _ = specbook("diagnose", "smollm2-ngram-quick-2a2692", "--json")
    assert status == 0
    assert {len(one["evidence"]) > 0 for one in json.loads(out)} == {True}


def test_what_gates_refuse_enters_no_curve(specbook) -> None:
    _, out, _ = specbook("diagnose", "smollm2-ngram-quick-2a2692", "--json")
    (recall,) = [one for one in json.loads(out) if "recall" in one["curve"]]
    study = open_study("smollm2-ngram-quick-2a2692")
    kept = [s for s in study.publishable if study.cells[s.cell].regime == "recall" and s.leg == "drafted"]
    assert 0 < len(kept) < 10
    first = recall["positions"][0]
    assert first["reached"] == sum(count > 0 for sample in kept for count in sample.drafted)
    assert any("7 of 10 samples are refused and left out (text-of-its-regime 7)" in note for note in recall["notes"])
    assert "depths are pooled: 256 (2 samples), 2048 (1 sample)" in recall["notes"]


def test_a_leg_that_is_refused_whole_has_no_curve_and_says_so(specbook) -> None:
    status, out, _ = specbook("diagnose", "smollm2-dspark-failures-5eeef2")
    assert status == 0
    block = out[out.index("invention, wrong-type") :].split("\n\n")[0]
    assert "sign: none: no sample with a draft that may be used" in block
    assert "6 of 6 samples are refused and left out (pair-fits 6)" in block
    assert "conditional acceptance" not in block


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "neither a source nor a curve"),
        (("x.log", "--curve", "0.5"), "a source and a curve"),
        (("--curve", "1.5"), "'1.5' in the curve"),
        (("no-such-run",), "no run 'no-such-run'"),
        ((LOGS / "timings-pasted.txt",), "no curve along positions"),
        ((LOGS / "bundled-ordinary.log",), "start llama-server with -lv 4, or read its /metrics page"),
    ],
)
def test_what_cannot_be_diagnosed_is_one_line(specbook, arguments, said) -> None:
    status, _, err = specbook("diagnose", *arguments)
    assert (status, err.count("\n")) == (1, 1)
    assert said in err
