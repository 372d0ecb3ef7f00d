"""Recipes are data; the ones that ship give the sizes card B publishes."""

import pytest

from analysis.convert.dsv4 import FLASH, gguf_tensors
from analysis.convert.memory import row_bytes
from analysis.convert.quantize import planned_type
from analysis.convert.recipes import list_recipes, load_recipe, tensor_type
from analysis.records import Problem


@pytest.mark.parametrize("recipe", list_recipes(), ids=lambda recipe: recipe.name)
def test_a_shipped_recipe_is_valid(recipe):
    assert load_recipe(recipe.name) == recipe


@pytest.mark.parametrize(
    "recipe", [r for r in list_recipes() if r.types and not r.name.endswith("-card")], ids=lambda recipe: recipe.name
)
def test_critical_tensors_are_kept(recipe):
    """Of a DeepSeek-V4 drafter; recipes without types of their own treat every matrix alike."""
    kept = {tensor.name: planned_type(tensor, recipe) for tensor in gguf_tensors(FLASH, "drafter")}
    assert kept["blk.1.hc_attn_fn.weight"] == kept["output_hc_fn.weight"] == "F32"
    assert kept["markov_w1.weight"] == kept["conf_proj.weight"] == "BF16"


def planned_gib(recipe) -> float:
    """Return the size of the released drafter by a recipe: matrices of floats that no pattern names take the base."""
    total = 5e6  # vocabulary
    for tensor in gguf_tensors(FLASH, "drafter"):
        matrix = len(tensor.shape) > 1 and tensor.type in ("BF16", "F32") and "ffn_gate_inp" not in tensor.name
        kind = planned_type(tensor, recipe) or (recipe.base if matrix else tensor.type)
        total += row_bytes(kind, tensor.shape[0]) * (tensor.nbytes // row_bytes(tensor.type, tensor.shape[0]))
    return total / 2**30


def test_the_published_size_is_that_of_the_printed_command():
    """7.83 GiB: with Markov head and hyper-connections in Q8_0, which the card does not mention."""
    assert f"{planned_gib(load_recipe('q2k-q4k-card')):.2f} GiB" == load_recipe("q2k-q4k-card").published_size
    assert round(planned_gib(load_recipe("q2k-q4k")), 2) == 7.90


def test_the_published_intermediate_in_eight_bits():
    """19.7 GiB."""
    recipe = load_recipe("q8_0")
    types = {**recipe.types, "ffn_.*_exps": "Q8_0"}
    total = planned_gib(type(recipe)(name="all", title="", base="Q8_0", types=types))
    assert round(total, 1) == 19.7


def test_an_unknown_recipe():
    with pytest.raises(Problem, match=r"unknown recipe 'q2k_q4k' \(did you mean q2k-q4k"):
        load_recipe("q2k_q4k")


def test_an_unknown_type(tmp_path):
    file = tmp_path / "mine.toml"
    file.write_text('name = "mine"\ntitle = "Mine"\nbase = "Q9_K"\n')
    with pytest.raises(Problem, match=r"unknown file type 'Q9_K'; expected one of F16, Q4_0"):
        load_recipe(file)
    file.write_text('name = "mine"\ntitle = "Mine"\nbase = "Q4_K_M"\n[types]\nffn = "Q9_K"\n')
    with pytest.raises(Problem, match=r"unknown tensor type 'Q9_K'; expected one of F32, F16"):
        load_recipe(file)
    assert tensor_type("q2_k").name == "Q2_K"


def test_a_pattern_that_is_none(tmp_path):
    file = tmp_path / "mine.toml"
    file.write_text('name = "mine"\ntitle = "Mine"\nbase = "Q4_K_M"\n[types]\n"ffn(" = "Q8_0"\n')
    with pytest.raises(Problem, match=r"'ffn\(' of recipe mine: .*; expected a regular expression over tensors' names"):
        load_recipe(file)
