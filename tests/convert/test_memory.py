"""The memory of a server from headers alone, against what the engine allocates and what card B measured."""

import math
from pathlib import Path
from types import MappingProxyType

import pytest

from analysis.convert.dsv4 import FLASH, TINY, gguf_tensors
from analysis.convert.gguf import GGUFFile, Tensor, read_gguf
from analysis.convert.memory import Memory, Serving, estimate_memory, machine_memory, row_bytes
from analysis.records import Problem

GIB = 1 << 30
MIB = 1 << 20
# -c 131072 with one sequence, f16; drafts of two tokens where there is a drafter.
CARD_B = Serving(context=131072)
CARD_B_DRAFTED = Serving(context=131072, rollback=2)


def released(part: str, small: Path, types: dict[str, str]) -> GGUFFile:
    """Return a header with the sizes of the release: metadata of the small file, scaled; tensors retyped by name."""
    sizes = {
        "embedding_length": FLASH.hidden,
        "attention.head_count": FLASH.heads,
        "attention.key_length": FLASH.head_dim,
        "attention.value_length": FLASH.head_dim,
        "attention.compress_ratios": (*FLASH.ratios, 0, 0, 0) if part == "target" else (0, 0, 0),
        "block_count": FLASH.layers if part == "target" else FLASH.drafter_blocks,
        "expert_used_count": FLASH.experts_used,
        "expert_feed_forward_length": FLASH.intermediate,
    }
    file = read_gguf(small)
    metadata = dict(file.metadata) | {f"{file.architecture}.{key}": value for key, value in sizes.items()}
    metadata["tokenizer.ggml.tokens"] = ("",) * FLASH.vocabulary
    tensors = []
    for spec in gguf_tensors(FLASH, part):
        kind = next((kind for name, kind in types.items() if name in spec.name), spec.type)
        tensors.append(
            Tensor(spec.name, spec.shape, kind, 0, row_bytes(kind, spec.shape[0]) * math.prod(spec.shape[1:]))
        )
    return GGUFFile(small, 0, 3, 32, 0, MappingProxyType(metadata), tuple(tensors))


def card_b_target(small: Path) -> GGUFFile:
    """The file card B used: its name tells the types of each group of tensors."""
    fine = {f"blk.{layer}.ffn_{matrix}_exps": "Q4_K" for layer in range(37, 43) for matrix in ("gate", "up", "down")}
    others = {"ffn_gate_exps": "IQ2_XXS", "ffn_up_exps": "IQ2_XXS", "ffn_down_exps": "Q2_K", "output.weight": "Q8_0"}
    return released("target", small, fine | others)


def test_the_weights_of_card_bs_target(dsv4_target):
    """90.9 GiB as published; the name leaves the types of small tensors open."""
    weights = estimate_memory(card_b_target(dsv4_target), CARD_B).weights
    assert weights / GIB == pytest.approx(90.9, abs=0.2)


@pytest.mark.parametrize(
    ("types", "published"),
    [
        ({}, 10.15),
        ({"ffn_gate_exps": "Q2_K", "ffn_up_exps": "Q2_K", "ffn_down_exps": "Q4_K"}, 7.83),
    ],
    ids=["BF16", "Q2K-Q4K"],
)
def test_the_weights_of_card_bs_drafters(dsv4_drafter, types, published):
    drafter = released("drafter", dsv4_drafter, types)
    assert estimate_memory(drafter, CARD_B, "drafter").weights / GIB == pytest.approx(published, abs=0.1)


def test_card_b_target_alone(dsv4_target):
    """About 92 GiB of GTT."""
    total = estimate_memory(card_b_target(dsv4_target), CARD_B).total
    assert total / GIB == pytest.approx(92, rel=0.01)


def test_card_b_target_and_drafter(dsv4_target, dsv4_drafter):
    """About 104 GiB. The card does not say with which file; only the larger one comes near."""
    small_types = {"ffn_gate_exps": "Q2_K", "ffn_up_exps": "Q2_K", "ffn_down_exps": "Q4_K"}
    target = estimate_memory(card_b_target(dsv4_target), CARD_B_DRAFTED)
    larger = target + estimate_memory(released("drafter", dsv4_drafter, {}), CARD_B_DRAFTED, "drafter")
    smaller = target + estimate_memory(released("drafter", dsv4_drafter, small_types), CARD_B_DRAFTED, "drafter")
    assert larger.total / GIB == pytest.approx(104, rel=0.015)
    assert smaller.total / GIB < 104 * 0.98


def test_a_longer_context_costs_cache_and_buffers(dsv4_target):
    short = estimate_memory(read_gguf(dsv4_target), Serving(context=1024))
    long = estimate_memory(read_gguf(dsv4_target), Serving(context=65536))
    assert long.weights == short.weights
    assert long.cache > 5 * short.cache
    assert long.buffers > short.buffers


def test_quantized_caches_are_smaller(local_target):
    model = read_gguf(local_target)
    f16 = estimate_memory(model, Serving(context=8192))
    q8 = estimate_memory(model, Serving(context=8192, kv_k="q8_0", kv_v="q8_0"))
    assert f16.cache == 180 * MIB
    assert q8.cache / f16.cache == pytest.approx(8.5 / 16)


def test_an_unknown_cache_type(local_target):
    with pytest.raises(Problem, match="unknown cache type 'q9_0'"):
        estimate_memory(read_gguf(local_target), Serving(kv_k="q9_0"))


def test_a_header_without_a_size(local_target, small_gguf):
    with pytest.raises(Problem, match="does not state llama"):
        estimate_memory(read_gguf(small_gguf), Serving())


def test_memories_add():
    assert Memory(weights=1, cache=2, buffers=3) + Memory(weights=10) == Memory(weights=11, cache=2, buffers=3)


def test_this_machine_has_memory():
    total, available = machine_memory()
    assert 0 < available <= total


def test_tiny_is_tiny(dsv4_target):
    assert (
        sum(spec.nbytes for spec in gguf_tensors(TINY, "target"))
        == estimate_memory(read_gguf(dsv4_target), Serving()).weights
    )
