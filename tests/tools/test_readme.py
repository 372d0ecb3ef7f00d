"""What the README promises is there."""

import re
import sys
from pathlib import Path

import pytest

from analysis.gates.checklist import GATES, LATE_GATES

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text()


def test_the_table_of_figures_is_made_from_the_recorded_results():
    sys.path.insert(0, str(ROOT / "benchmarks"))
    import run as benchmarks

    shown = README.split(benchmarks.BEGIN)[1].split(benchmarks.END)[0].strip()
    assert shown == benchmarks.table().strip(), "run `make bench`, or benchmarks/run.py --table"


def test_it_counts_the_gates():
    assert f"{len(GATES) + len(LATE_GATES)} gates look at every run" in README


@pytest.mark.parametrize(
    "path", sorted(set(re.findall(r"`((?:book|data|docs|src|tests|benchmarks|notebooks)/[\w./-]*)`", README)))
)
def test_every_path_it_names_exists(path: str):
    assert (ROOT / path).exists()


def test_every_make_target_it_names_exists():
    makefile = (ROOT / "Makefile").read_text()
    for target in set(re.findall(r"[`$] ?make ([a-z]+)", README)):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target
