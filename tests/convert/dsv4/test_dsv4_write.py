"""The synthetic checkpoint: whole, in the right layout, the same for the same seed, with a tunable drafter."""

import hashlib
import json
import math

import numpy as np
import pytest
from gguf import GGMLQuantizationType
from gguf.quants import dequantize
from safetensors import safe_open

from analysis.convert.dsv4 import TINY, Recipe, checkpoint_tensors, write_checkpoint
from analysis.convert.dsv4.codec import FP8_VALUES, decode_bf16, decode_fp4, decode_fp8, to_bf16
from analysis.convert.dsv4.tokenizer import (
    BEGIN,
    NOISE,
    byte_letters,
    check_ids,
    merges,
    ordinary_ids,
    vocabulary,
)
from analysis.convert.dsv4.write import drafter_table, successor_table
from analysis.convert.safetensors import read_safetensors, read_weight_map, shards_with
from analysis.records import Problem
from analysis.records.places import data_dir


@pytest.fixture
def checkpoint(dsv4_checkpoint):
    return dsv4_checkpoint


def stored(checkpoint):
    """Return every tensor as (dtype, shape, bytes)."""
    found = {}
    for file in sorted(checkpoint.glob("*.safetensors")):
        content = file.read_bytes()
        for tensor in read_safetensors(file).tensors:
            found[tensor.name] = (tensor.dtype, tensor.shape, content[tensor.start : tensor.end])
    return found


def test_the_files_hold_the_layout(checkpoint):
    assert {name: (dtype, shape) for name, (dtype, shape, _) in stored(checkpoint).items()} == {
        tensor.name: (tensor.dtype, tensor.shape) for tensor in checkpoint_tensors(TINY)
    }


def test_the_safetensors_library_reads_them(checkpoint):
    weights = read_weight_map(checkpoint)
    for file in set(weights.values()):
        with safe_open(checkpoint / file, "numpy") as opened:
            assert set(opened.keys()) == {name for name, where in weights.items() if where == file}
            assert opened.metadata() == {"format": "pt"}


def test_it_has_a_few_megabytes(checkpoint):
    assert sum(file.stat().st_size for file in checkpoint.iterdir()) < 15e6


def test_only_the_last_files_hold_the_drafter(checkpoint):
    assert shards_with(read_weight_map(checkpoint), ["mtp."]) == [
        f"model-{number:05d}-of-00010.safetensors" for number in (8, 9, 10)
    ]


def test_equal_seeds_give_equal_files(checkpoint, tmp_path):
    def digests(directory):
        return {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in directory.iterdir()}

    write_checkpoint(tmp_path / "again")
    assert digests(tmp_path / "again") == digests(checkpoint)
    write_checkpoint(tmp_path / "other", recipe=Recipe(seed=2))
    other = digests(tmp_path / "other")
    assert all(
        other[name] != digest
        for name, digest in digests(checkpoint).items()
        if "safetensors" in name and "index" not in name
    )


def test_values_are_finite_and_scales_vary(checkpoint):
    tensors = stored(checkpoint)
    for name, (dtype, shape, raw) in tensors.items():
        if dtype == "BF16":
            assert np.isfinite(decode_bf16(raw, shape)).all()
        elif dtype == "F32":
            assert np.isfinite(np.frombuffer(raw, "<f4")).all()
        elif dtype == "F8_E4M3":
            assert np.isfinite(FP8_VALUES[np.frombuffer(raw, np.uint8)]).all()
        elif dtype == "F8_E8M0" and math.prod(shape) >= 16:
            assert len(set(raw)) > 1, name


def test_decoded_matrices_have_the_spread_of_a_layer(checkpoint):
    tensors = stored(checkpoint)

    def codes(name):
        _, shape, raw = tensors[name]
        return np.frombuffer(raw, np.uint8).reshape(shape)

    attention = decode_fp8(codes("layers.0.attn.wkv.weight"), codes("layers.0.attn.wkv.scale"))
    expert = decode_fp4(codes("mtp.1.ffn.experts.2.w2.weight"), codes("mtp.1.ffn.experts.2.w2.scale"))
    assert attention.shape == expert.shape == (256, 256)
    for values in (attention, expert):
        assert 0.4 / 16 < values.std() < 1.5 / 16


def test_hash_routing_sends_a_token_to_different_experts(checkpoint):
    _, shape, raw = stored(checkpoint)["layers.1.ffn.gate.tid2eid"]
    table = np.frombuffer(raw, "<i8").reshape(shape)
    assert set(table.flat) == set(range(TINY.experts))
    assert all(len(set(row)) == TINY.experts_used for row in table)


def test_the_successors_are_one_cycle():
    table = successor_table(TINY, Recipe())
    ordinary = ordinary_ids(TINY.vocabulary)
    token, seen = ordinary[0], set()
    while token not in seen:
        seen.add(token)
        token = table[token]
    assert seen == set(ordinary)
    assert set(table) == set(ordinary)


@pytest.mark.parametrize("agree", [0.0, 0.5, 0.8, 1.0])
def test_the_drafter_knows_the_share_that_was_asked_for(agree):
    recipe = Recipe(agree=agree)
    ordinary = ordinary_ids(TINY.vocabulary)
    right, believed = np.array(successor_table(TINY, recipe)), np.array(drafter_table(TINY, recipe))
    assert np.mean(right[ordinary] == believed[ordinary]) == pytest.approx(agree, abs=1 / len(ordinary))


def test_target_and_drafter_carry_their_tables(checkpoint):
    tensors = stored(checkpoint)
    embed, head, first, second = (
        decode_bf16(tensors[name][2], tensors[name][1])
        for name in (
            "embed.weight",
            "head.weight",
            "mtp.2.markov_head.markov_w1.weight",
            "mtp.2.markov_head.markov_w2.weight",
        )
    )
    ordinary = ordinary_ids(TINY.vocabulary)
    assert (embed[ordinary] @ head.T).argmax(1).tolist() == np.array(successor_table(TINY, Recipe()))[ordinary].tolist()
    believed = np.array(drafter_table(TINY, Recipe()))[ordinary]
    found = (first[ordinary] @ second.T).argmax(1)
    assert np.mean(found == believed) > 0.97  # wrong successors may coincide; then two tokens share a row


def test_a_random_checkpoint_has_no_table(tmp_path):
    write_checkpoint(tmp_path / "random", recipe=Recipe(mode="random"))
    tensors = stored(tmp_path / "random")
    embed, head = (decode_bf16(tensors[name][2], tensors[name][1]) for name in ("embed.weight", "head.weight"))
    ordinary = ordinary_ids(TINY.vocabulary)
    agreeing = (embed[ordinary] @ head.T).argmax(1) == np.array(successor_table(TINY, Recipe()))[ordinary]
    assert np.mean(agreeing) < 0.05


def test_what_was_made_is_written_beside_it(checkpoint):
    fixture = json.loads((checkpoint / "fixture.json").read_text())
    assert fixture["successors"] == successor_table(TINY, Recipe())
    assert (fixture["seed"], fixture["agree"], fixture["mode"]) == (1, 0.8, "successor")


def test_a_directory_that_is_in_use_is_refused(tmp_path):
    (tmp_path / "mine.txt").write_text("keep")
    with pytest.raises(Problem, match="is not empty"):
        write_checkpoint(tmp_path)
    assert (tmp_path / "mine.txt").read_text() == "keep"


def test_an_interrupted_checkpoint_has_no_index(tmp_path, monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("analysis.convert.dsv4.write.write_tokenizer", interrupt)
    with pytest.raises(KeyboardInterrupt):
        write_checkpoint(tmp_path / "cut")
    assert not (tmp_path / "cut" / "model.safetensors.index.json").exists()


def test_the_alphabet_is_that_of_byte_level_vocabularies():
    letters = byte_letters()
    assert len(set(letters)) == 256
    assert all(letters[ord(char)] == char for char in "aZ09~!")
    assert (letters[ord(" ")], letters[ord("\n")], letters[ord("\t")]) == ("Ġ", "Ċ", "ĉ")


def test_the_vocabulary_is_sound(checkpoint):
    tokens = vocabulary(TINY.vocabulary)
    assert sorted(tokens.values()) == list(range(len(tokens)))
    assert len(tokens) < TINY.vocabulary
    assert tokens[BEGIN] == 0
    settings = json.loads((checkpoint / "config.json").read_text())
    assert settings["dspark_noise_token_id"] == tokens[NOISE]
    for left, right in merges(200):
        assert {left, right, left + right} <= set(tokens)


def test_the_converter_takes_it_for_smollm():
    """The converter hashes the ids of its check text; these give the hash it lists for SmolLM."""
    data = json.loads((data_dir() / "fixtures" / "check_text_ids.json").read_text())
    assert hashlib.sha256(str(check_ids()).encode()).hexdigest() == data["sha256"]


def test_4_bit_values_are_those_of_ggml():
    """ggml keeps the two halves of a block of 32 in the low and the high nibbles and doubles the values."""
    generator = np.random.RandomState(3)
    packed = np.frombuffer(generator.bytes(4 * 16), np.uint8).reshape(4, 16)
    scales = generator.randint(110, 130, (4, 1)).astype(np.uint8)
    codes = np.stack([packed & 15, packed >> 4], axis=-1).reshape(4, 32)
    block = np.concatenate([scales, codes[:, :16] | codes[:, 16:] << 4], axis=1)
    np.testing.assert_array_equal(decode_fp4(packed, scales), dequantize(block, GGMLQuantizationType.MXFP4))


@pytest.mark.parametrize(
    ("code", "value"), [(0x00, 0), (0x38, 1), (0xB8, -1), (0x7E, 448), (0x01, 2**-9), (0x08, 2**-6)]
)
def test_8_bit_values(code, value):
    assert FP8_VALUES[code] == value


def test_bf16_rounds_to_even():
    values = np.array([1, 1 + 2**-8, 1 + 3 * 2**-8, -1e-30, 3e38], np.float32)
    rounded = decode_bf16(to_bf16(values), (5,))
    assert rounded[:3].tolist() == [1, 1, 1 + 2**-6]
    np.testing.assert_allclose(rounded[3:], values[3:], rtol=2**-7)
