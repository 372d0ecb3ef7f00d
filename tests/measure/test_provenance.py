import sys

from analysis.measure.provenance import command_line


def test_a_recorded_command_line_names_no_folder_of_the_machine(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["/usr/lib/ipykernel_launcher.py", "-f", "/tmp/tmpabc.json", "--quiet"])
    assert command_line() == ("ipykernel_launcher.py", "-f", "tmpabc.json", "--quiet")
