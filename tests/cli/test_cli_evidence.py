"""`specbook audit` and `specbook corrections`."""

import json
import os
import subprocess
import sys

from analysis.evidence.audit import audit
from analysis.evidence.consistency import check_all
from analysis.evidence.corrections import corrections


def test_json_is_the_audit(specbook):
    status, out, _ = specbook("audit", "--json")
    assert status == 0
    assert json.loads(out) == [result.plain() for result in audit()]


def test_one_card(specbook):
    _, out, _ = specbook("audit", "--json", "--card", "B")
    assert {entry["card"] for entry in json.loads(out)} == {"B"}


def test_the_table_counts_verdicts(specbook, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    status, out, _ = specbook("audit")
    assert status == 0
    assert f"{len(audit())} statements" in out
    assert "underdetermined" in out


def test_texts_that_are_not_there_are_one_line(specbook, tmp_path):
    status, _, err = specbook("audit", "--json", "--texts", str(tmp_path))
    assert status == 1
    assert err.count("\n") == 1
    assert "expected the text of a card" in err


def test_corrections_lists_the_ledger(specbook, monkeypatch):
    monkeypatch.setenv("COLUMNS", "250")
    status, out, _ = specbook("corrections", "--card", "A")
    assert status == 0
    assert out.count("later fact") == sum(c.kind == "later fact" and c.card == "A" for c in corrections().values())


def test_checks_are_listed(specbook, monkeypatch):
    monkeypatch.setenv("COLUMNS", "300")
    status, out, _ = specbook("audit", "--checks", "--card", "B")
    assert status == 0
    assert out.count("accepted_per_position") == sum(
        found.check == "accepted_per_position" and found.card == "B" for found in check_all()
    )


def test_the_command_waits_for_no_library_that_it_does_not_use():
    script = (
        "import sys; from analysis.cli import load; load('audit');"
        "print([m for m in ('numpy', 'pandas', 'pydantic', 'scipy', 'statsmodels', 'gguf') if m in sys.modules])"
    )
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, env=environment)
    assert done.stdout.strip() == "[]"
