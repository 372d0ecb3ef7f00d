"""What `specbook doctor` prints, at the width of a plain terminal."""

import json

import pytest

from analysis.cli import doctor
from analysis.launch import Finding, Report
from analysis.records import Engine, HostState, Machine

REPORT = Report(
    engine=Engine(source="path", version="1.0"),
    machine=Machine(name="test-2c", cpu="Test", cores=2, memory=2**30, os="Test"),
    host=HostState(at="2026-01-01T00:00:00+00:00"),
    findings=(
        Finding("ok", "engine", "llama-server 1.0"),
        Finding("note", "devices", "[red]Radeon[/red] \x1b[31m", "names are untrusted", "look twice"),
        Finding(
            "warning",
            "load",
            "load 4.00 on 2 cores, 100% busy now",
            "other programs take time from the steps: durations grow, acceptance does not",
            "stop them",
        ),
    ),
)
PRINTED = """\
ok       engine   llama-server 1.0
note     devices  [red]Radeon[/red] �[31m
                  why: names are untrusted
                  do:  look twice
warning  load     load 4.00 on 2 cores, 100% busy now
                  why: other programs take time from the steps: durations grow,
                       acceptance does not
                  do:  stop them

Measure with care: load.
"""


def test_a_report_fits_a_plain_terminal(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    doctor._print(REPORT)
    printed = capsys.readouterr().out
    assert [line.rstrip() for line in printed.splitlines()] == PRINTED.splitlines()


def test_a_missing_engine_ends_with_1_and_says_what_to_do(specbook, monkeypatch, tmp_path):
    monkeypatch.setenv("LLAMA_SERVER", str(tmp_path / "nowhere"))
    status, out, _ = specbook("doctor")
    assert status == 1
    assert "does not exist" in out
    assert "Do not measure here: engine." in out


def test_a_key_file_that_is_not_there_is_one_line(specbook, tmp_path):
    status, _, err = specbook("doctor", "--server-url", "http://127.0.0.1:1", "--api-key-file", str(tmp_path / "key"))
    assert status == 1
    assert err.startswith("specbook: the key file")
    assert err.count("\n") == 1


def test_a_server_that_is_not_there(specbook):
    status, out, _ = specbook("doctor", "--server-url", "http://127.0.0.1:9")
    assert status == 1
    assert "no server answers at" in " ".join(out.split())


@pytest.mark.engine
def test_the_truth_about_this_machine(specbook, local_target):
    status, out, _ = specbook("doctor", "--json", "--target", str(local_target))
    report = json.loads(out)
    assert status == 0
    assert report["trusted"] is True
    assert report["engine"]["version"]
    topics = {finding["topic"]: finding for finding in report["findings"]}
    assert {"engine", "devices", "counters", "fast-math", "processor", "memory", "swap", "clock", "temperature",
            "load", "virtualisation", "disk", "other servers"} <= topics.keys()  # fmt: skip
    assert topics["counters"]["level"] == "ok"
