"""The GGUF files of the synthetic checkpoint: the converter's tensors, and a target that follows its table."""

import json

import numpy as np
import pytest
from gguf import GGMLQuantizationType
from gguf.quants import dequantize

from analysis.convert.dsv4 import TINY, gguf_tensors
from analysis.convert.dsv4.codec import decode_bf16, decode_fp4, decode_fp8
from analysis.convert.gguf import read_gguf
from analysis.convert.safetensors import read_safetensors


@pytest.mark.parametrize("part", ["target", "drafter"])
def test_names_shapes_and_types_are_the_layouts(part, dsv4_target, dsv4_drafter):
    file = read_gguf(dsv4_target if part == "target" else dsv4_drafter)
    assert {(tensor.name, tensor.shape, tensor.type) for tensor in file.tensors} == {
        (tensor.name, tensor.shape, tensor.type) for tensor in gguf_tensors(TINY, part)
    }


def test_metadata_of_target_and_drafter(dsv4_target, dsv4_drafter):
    target, drafter = read_gguf(dsv4_target), read_gguf(dsv4_drafter)
    assert (target.architecture, drafter.architecture) == ("deepseek4", "dflash")
    assert (target.block_count, drafter.block_count) == (5, 3)
    assert target.metadata["deepseek4.attention.compress_ratios"] == (0, 0, 4, 128, 4, 0, 0, 0)
    assert drafter.metadata["dflash.target_layers"] == (3, 4, 5)
    assert drafter.number("dflash.block_size") == 5
    assert drafter.number("tokenizer.ggml.mask_token_id") is not None
    assert target.tokens_sha256 == drafter.tokens_sha256 != ""
    assert target.vocabulary_size == TINY.vocabulary


@pytest.fixture(scope="module")
def values(dsv4_checkpoint, dsv4_drafter):
    """Return functions that give a tensor of the checkpoint as stored, and of the drafter as numbers."""
    stored = {}
    for file in dsv4_checkpoint.glob("*.safetensors"):
        content = file.read_bytes()
        for tensor in read_safetensors(file).tensors:
            stored[tensor.name] = (tensor.shape, content[tensor.start : tensor.end])
    header = {tensor.name: tensor for tensor in read_gguf(dsv4_drafter).tensors}
    content = dsv4_drafter.read_bytes()

    def converted(name):
        tensor = header[name]
        raw = np.frombuffer(content[tensor.offset : tensor.offset + tensor.nbytes], np.uint8)
        rows = raw.reshape(*reversed(tensor.shape[1:]), -1)
        return dequantize(rows, GGMLQuantizationType[tensor.type])

    return lambda name: np.frombuffer(stored[name][1], np.uint8).reshape(stored[name][0][0], -1), converted


def test_experts_are_the_checkpoints_exactly(values):
    source, converted = values
    for block in range(3):
        for matrix, name in (("w1", "gate"), ("w2", "down"), ("w3", "up")):
            experts = converted(f"blk.{block}.ffn_{name}_exps.weight")
            for expert in range(TINY.experts):
                key = f"mtp.{block}.ffn.experts.{expert}.{matrix}"
                expected = decode_fp4(source(f"{key}.weight"), source(f"{key}.scale"))
                np.testing.assert_array_equal(experts[expert], expected)


def test_attention_is_the_checkpoints_to_eight_bits(values):
    """Q8_0 keeps a value to half a step, 1/254 of the largest of its 32."""
    source, converted = values
    expected = decode_fp8(source("mtp.1.attn.wq_b.weight"), source("mtp.1.attn.wq_b.scale"))
    largest = np.abs(expected.reshape(-1, 32)).max(1, keepdims=True)
    error = np.abs(converted("blk.1.attn_q_b.weight").reshape(-1, 32) - expected.reshape(-1, 32))
    assert (error <= largest / 254 * 1.01).all()  # the scale itself is rounded to F16
    assert error.max() > 0


def test_bf16_matrices_stay(values):
    source, converted = values
    raw = source("mtp.2.markov_head.markov_w1.weight")
    np.testing.assert_array_equal(
        converted("markov_w1.weight"), decode_bf16(raw.tobytes(), (TINY.vocabulary, TINY.markov_rank))
    )


@pytest.mark.engine
def test_the_target_follows_its_table(dsv4_checkpoint, dsv4_target):
    from llama_cpp import Llama

    successors = json.loads((dsv4_checkpoint / "fixture.json").read_text())["successors"]
    model = Llama(str(dsv4_target), n_ctx=256, n_threads=1, verbose=False)
    token = 40
    for count, emitted in enumerate(model.generate([5, 9, token], temp=0.0)):
        assert emitted == successors[token], f"after {count} tokens"
        token = emitted
        if count == 48:
            break
