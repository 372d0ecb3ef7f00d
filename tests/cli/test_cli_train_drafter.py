import sys

import pytest

from analysis.drafter import recipe, shapes
from analysis.records import Problem


def test_without_torch_a_stage_that_computes_says_what_to_install(monkeypatch, tmp_path):
    for name in [name for name in sys.modules if name.startswith("analysis.drafter.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(Problem, match=r"torch is not installed; .* pip install torch==2\.13\.0"):
        recipe.run_stage("write", tmp_path / "no.gguf", shapes.cpu_recipe(), tmp_path, print)
