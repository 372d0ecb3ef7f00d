import sys

from analysis.measure.provenance import command_line


def test_a_recorded_command_line_names_no_folder_of_the_machine(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["/usr/lib/ipykernel_launcher.py", "-f", "/tmp/tmpabc.json", "--quiet"])
    assert command_line() == ("ipykernel_launcher.py", "-f", "tmpabc.json", "--quiet")


def test_a_recorded_command_line_names_no_file_that_holds_a_key(monkeypatch):
    words = [
        "--api-key-file",
        "../key1.txt",
        "--drafted-key-file=../key2.txt",
        "--drafted-key-file",
        "k",
        "--budget",
        "1s",
    ]
    monkeypatch.setattr(sys, "argv", ["/opt/bin/specbook", "decide", *words])
    assert command_line() == (
        *("specbook", "decide", "--api-key-file", "$KEY", "--drafted-key-file=$KEY", "--drafted-key-file", "$KEY"),
        *("--budget", "1s"),
    )
