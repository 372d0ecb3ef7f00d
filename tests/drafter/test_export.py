from dataclasses import replace

import numpy as np
import pytest

from analysis.drafter import export
from analysis.drafter.description import save_target_description
from analysis.drafter.shapes import Shape
from analysis.records import Problem
from analysis.records.places import data_dir


@pytest.fixture(scope="module")
def weights():
    return np.random.default_rng(3).normal(0, 0.17, (64, 96)).astype(np.float32)


def quantized(values):
    import gguf

    kind = gguf.GGMLQuantizationType.Q8_0
    return gguf.quants.dequantize(gguf.quants.quantize(values, kind), kind)


def test_what_is_on_the_grid_is_the_same_in_float16_and_in_q8_0(weights):
    snapped = export.snap(weights)
    assert (snapped.astype(np.float16).astype(np.float32) == snapped).all()
    assert (quantized(snapped) == snapped).all()
    assert not (quantized(weights) == weights).all()


def test_snapping_moves_no_weight_by_more_than_a_fifteenth_of_its_largest_neighbour(weights):
    largest = np.abs(weights.reshape(-1, 32)).max(1)
    moved = np.abs(export.snap(weights) - weights).reshape(-1, 32).max(1)
    assert (moved <= largest / 15).all()


def test_snapping_again_changes_nothing(weights):
    once = export.snap(weights)
    assert (export.snap(once) == once).all()


def test_neighbours_that_are_all_zero_stay_zero():
    assert (export.snap(np.zeros((2, 32), np.float32)) == 0).all()


def test_a_checkpoint_comes_back_as_it_was_saved(tmp_path):
    shape = Shape(hidden=32, ffn=32, layers=1, heads=1, kv_heads=1, head_dim=32, vocabulary=8, rank=32, taps=(1, 2))
    names = export.checkpoint_shapes(shape)
    rng = np.random.default_rng(0)
    arrays = export.snapped({name: rng.normal(size=size).astype(np.float32) for name, size in names.items()})
    export.save_checkpoint(tmp_path, arrays, shape)

    found, described = export.load_checkpoint(tmp_path)

    assert described == shape
    assert all((found[name] == arrays[name]).all() for name in names)
    assert sum(np.prod(size) for size in names.values()) == shape.parameters()


def test_a_checkpoint_that_does_not_fit_its_configuration_is_refused(tmp_path):
    export.save_checkpoint(tmp_path, {"fc.weight": np.zeros((4, 4), np.float16)}, Shape())
    with pytest.raises(Problem, match="holds 16 weights; expected 15095265"):
        export.load_checkpoint(tmp_path)
    with pytest.raises(Problem, match="is no checkpoint"):
        export.load_checkpoint(tmp_path / "nothing")


def test_a_drafter_of_another_shape_is_no_beginning(tmp_path):
    shape = Shape(hidden=32, ffn=32, layers=1, heads=1, kv_heads=1, head_dim=32, vocabulary=8, rank=32, taps=(1, 2))
    arrays = {name: np.zeros(size, np.float16) for name, size in export.checkpoint_shapes(shape).items()}
    export.save_checkpoint(tmp_path, arrays, shape)
    assert export.load_fitting(tmp_path, shape).keys() == arrays.keys()
    with pytest.raises(Problem, match=r"has block_size 6; expected block_size 5; start from a drafter of the same"):
        export.load_fitting(tmp_path, replace(shape, block=5))


def test_the_shipped_drafter_is_an_exact_image_of_a_float16_checkpoint():
    arrays, shape = export.checkpoint_of_gguf(data_dir() / "drafters" / "smollm2-dspark-q8_0.gguf")
    assert shape == Shape()
    assert {name: value.shape for name, value in arrays.items()} == export.checkpoint_shapes(shape)
    again = export.snapped({name: value.astype(np.float32) for name, value in arrays.items()})
    assert all((again[name] == arrays[name]).all() for name in arrays)


def test_the_targets_description_says_what_its_file_says(tiny_target, tmp_path):
    import json

    save_target_description(tiny_target, tmp_path)
    config, tokenizer = (json.loads((tmp_path / f"{name}.json").read_text()) for name in ("config", "tokenizer"))
    assert (config["hidden_size"], config["num_key_value_heads"], config["vocab_size"]) == (64, 1, 96)
    assert tokenizer["model"]["vocab"]["<|im_end|>"] == 2
    assert [token["content"] for token in tokenizer["added_tokens"]][:2] == ["<|endoftext|>", "<|im_start|>"]
