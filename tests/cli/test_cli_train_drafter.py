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


def test_another_shape_is_the_recipe_with_nothing_else_changed():
    plain, small = shapes.recipe_for("gpu", 2), shapes.recipe_for("gpu", 2, layers=1, block=4)
    assert (small.shape.layers, small.shape.block) == (1, 4)
    assert small.shape.parameters() < plain.shape.parameters()
    assert (small.text, small.schedule, small.seed) == (plain.text, plain.schedule, plain.seed)


def test_a_drafter_deeper_than_its_target_is_refused():
    with pytest.raises(Problem, match=r"31 layers; expected at most the target's 30"):
        shapes.recipe_for("gpu", 1, layers=31)
