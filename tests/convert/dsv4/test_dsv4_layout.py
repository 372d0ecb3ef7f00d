"""The layout of the 0731 release, name by name, and its published figures."""

import re
from collections import Counter

import pytest

from analysis.convert.dsv4 import FLASH, LARGE, TINY, checkpoint_tensors, config, gguf_tensors, shards

GIB = 1 << 30

FP8 = r"(attn\.(wq_a|wq_b|wkv|wo_a|wo_b)|attn\.indexer\.wq_b|ffn\.shared_experts\.w[123])"
# What stands in a block, after `layers.N.` or `mtp.N.`: pattern and dtype.
IN_BLOCK = [
    (FP8 + r"\.weight", "F8_E4M3"),
    (FP8 + r"\.scale", "F8_E8M0"),
    (r"ffn\.experts\.\d+\.w[123]\.weight", "I8"),
    (r"ffn\.experts\.\d+\.w[123]\.scale", "F8_E8M0"),
    (r"(attn_norm|ffn_norm|attn\.q_norm|attn\.kv_norm|ffn\.gate)\.weight", "BF16"),
    (r"attn\.(indexer\.)?compressor\.(norm|wgate|wkv)\.weight", "BF16"),
    (r"attn\.indexer\.weights_proj\.weight", "BF16"),
    (r"attn\.(indexer\.)?compressor\.ape", "F32"),
    (r"attn\.attn_sink", "F32"),
    (r"hc_(attn|ffn)_(base|fn|scale)", "F32"),
    (r"ffn\.gate\.bias", "F32"),
    (r"ffn\.gate\.tid2eid", "I64"),
]
ELSEWHERE = [
    (r"(embed|head|norm)\.weight", "BF16"),
    (r"(mtp\.2\.)?hc_head_(base|fn|scale)", "F32"),
    (r"mtp\.0\.main_proj\.weight", "F8_E4M3"),
    (r"mtp\.0\.main_proj\.scale", "F8_E8M0"),
    (r"mtp\.0\.main_norm\.weight", "BF16"),
    (r"mtp\.2\.(norm|markov_head\.markov_w[12]|confidence_head\.proj)\.weight", "BF16"),
]
PATTERNS = [*((r"(layers|mtp)\.\d+\." + name, dtype) for name, dtype in IN_BLOCK), *ELSEWHERE]


def test_each_name_has_its_dtype():
    for tensor in checkpoint_tensors(TINY):
        fitting = [dtype for pattern, dtype in PATTERNS if re.fullmatch(pattern, tensor.name)]
        assert fitting == [tensor.dtype], tensor.name


@pytest.mark.parametrize(("pattern", "dtype"), PATTERNS)
def test_no_name_of_the_release_is_missing(pattern, dtype):
    assert any(re.fullmatch(pattern, tensor.name) for tensor in checkpoint_tensors(TINY))


def test_scales_cover_their_weights():
    stored = {tensor.name: tensor for tensor in checkpoint_tensors(FLASH)}
    for name, scale in stored.items():
        if name.endswith(".scale"):
            weight = stored[name.removesuffix("scale") + "weight"]
            out, inner = weight.shape
            if weight.dtype == "I8":
                assert scale.shape == (out, inner * 2 // 32)
            else:
                assert scale.shape == (-(-out // 128), -(-inner // 128))


def test_hash_layers_route_by_table_and_the_others_by_bias():
    routed = {tensor.name: tensor.shape for tensor in checkpoint_tensors(TINY) if ".gate." in tensor.name}
    for layer in range(TINY.layers):
        assert (f"layers.{layer}.ffn.gate.tid2eid" in routed) == (layer < 3)
        assert (f"layers.{layer}.ffn.gate.bias" in routed) == (layer >= 3)
    assert routed["layers.0.ffn.gate.tid2eid"] == (TINY.vocabulary, TINY.experts_used)


def test_compressors_stand_where_the_ratio_is_not_zero():
    names = [tensor.name for tensor in checkpoint_tensors(FLASH)]
    with_compressor = {int(name.split(".")[1]) for name in names if ".attn.compressor.ape" in name}
    with_indexer = {int(name.split(".")[1]) for name in names if ".indexer.wq_b.weight" in name}
    assert with_compressor == set(range(2, 43))
    assert with_indexer == set(range(2, 43, 2))


def test_the_release_has_48_files_with_the_drafter_in_the_last_three():
    files = shards(FLASH)
    assert len(files) == 48
    holding = [number for number, file in enumerate(files, 1) if any(t.name.startswith("mtp.") for t in file)]
    assert holding == [46, 47, 48]
    assert sum(map(len, files)) == len(checkpoint_tensors(FLASH))


def test_the_release_has_304_billion_parameters_of_which_the_target_284():
    """Packed experts hold two values a byte; scales are no parameters."""

    def parameters(part: str) -> float:
        return sum(
            tensor.nbytes * {"I8": 2, "BF16": 0.5, "F32": 0.25, "F8_E4M3": 1}[tensor.dtype]
            for tensor in checkpoint_tensors(FLASH)
            if not tensor.name.endswith((".scale", "tid2eid")) and tensor.name.startswith("mtp.") == (part == "mtp")
        )

    assert round(parameters("target") / 1e9) == 284
    assert round((parameters("target") + parameters("mtp")) / 1e9) == 304


def test_the_drafter_has_the_published_tensors_and_size():
    """81 tensors in 3 blocks: 24 each and 9 more; 10.15 GiB (10.9 GB) with the vocabulary."""
    tensors = gguf_tensors(FLASH, "drafter")
    blocks = Counter(tensor.name.split(".")[1] for tensor in tensors if tensor.name.startswith("blk."))
    assert blocks == {"0": 24, "1": 24, "2": 24}
    assert len(tensors) == 81
    vocabulary = 5e6  # tokens, merges and token types; not in the tensors
    total = sum(tensor.nbytes for tensor in tensors) + vocabulary
    assert round(total / GIB, 2) == 10.15
    assert round(total / 1e9, 1) == 10.9


def test_the_drafter_borrows_embedding_and_output():
    names = {tensor.name for tensor in gguf_tensors(FLASH, "drafter")}
    assert not names & {"token_embd.weight", "output.weight"}
    assert {"fc.weight", "enc.output_norm.weight", "markov_w1.weight", "markov_w2.weight", "conf_proj.weight"} <= names


def test_the_configuration_has_a_ratio_for_every_block():
    settings = config(FLASH, noise_token=128799)
    assert len(settings["compress_ratios"]) == 46
    assert settings["compress_ratios"][-4:] == [4, 0, 0, 0]
    assert settings["dspark_target_layer_ids"] == [40, 41, 42]
    assert settings["num_nextn_predict_layers"] == 1


@pytest.mark.parametrize("shape", [TINY, LARGE, FLASH], ids=["tiny", "large", "flash"])
def test_sizes_that_the_engine_asks_for(shape):
    assert shape.head_dim != shape.index_head_dim
    assert shape.hidden % 256 == shape.intermediate % 256 == 0
    assert set(shape.ratios) <= {0, 4, 128}
    assert shape.streams == 4


def test_large_is_large_enough_to_measure_memory_on():
    assert sum(tensor.nbytes for tensor in checkpoint_tensors(LARGE)) > 3e9
