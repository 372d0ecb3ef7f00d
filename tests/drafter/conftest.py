from dataclasses import replace
from pathlib import Path

import gguf
import numpy as np
import pytest

from analysis.drafter.prompts import Prompts
from analysis.drafter.shapes import Recipe, Schedule, Shape, TextPlan

TOKENS = [*["<|endoftext|>", "<|im_start|>", "<|im_end|>"], "<mask>", *(chr(33 + i) for i in range(92))]
SHAPE = Shape(
    hidden=64,
    ffn=96,
    layers=2,
    heads=2,
    kv_heads=1,
    head_dim=32,
    vocabulary=96,
    rank=32,
    block=3,
    taps=(1, 2),
    target_layers=4,
    mask_token=3,
)
RECIPE = Recipe(
    shape=SHAPE,
    text=TextPlan(
        length=48, batch=8, batches=2, long_length=64, long_batch=4, long_batches=1, question_length=24, held_out=2
    ),
    schedule=Schedule(
        steps=8, warmup=2, batch=4, anchors=4, long_every=4, frequent=64, rare=16, rows=30, checkpoint_every=4
    ),
)


def write_tiny_target(path: Path, seed: int = 0) -> None:
    """A Llama of four layers with random weights: its text is noise, its arithmetic is a Llama's."""
    rng = np.random.default_rng(seed)
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_block_count(4)
    writer.add_context_length(256)
    writer.add_embedding_length(64)
    writer.add_feed_forward_length(128)
    writer.add_head_count(2)
    writer.add_head_count_kv(1)
    writer.add_rope_freq_base(10_000.0)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_vocab_size(96)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("smollm")
    writer.add_token_list(TOKENS)
    writer.add_token_types([3] * 4 + [1] * 92)
    writer.add_token_merges(['! "'])
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_chat_template("{{ messages }}")
    sizes = {"attn_q": (64, 64), "attn_k": (32, 64), "attn_v": (32, 64), "attn_output": (64, 64)}
    sizes |= {"ffn_gate": (128, 64), "ffn_up": (128, 64), "ffn_down": (64, 128)}
    writer.add_tensor("token_embd.weight", rng.normal(0, 0.5, (96, 64)).astype(np.float32))
    writer.add_tensor("output_norm.weight", np.ones(64, np.float32))
    for layer in range(4):
        for name, size in sizes.items():
            writer.add_tensor(f"blk.{layer}.{name}.weight", rng.normal(0, 0.15, size).astype(np.float32))
        for name in ("attn_norm", "ffn_norm"):
            writer.add_tensor(f"blk.{layer}.{name}.weight", np.ones(64, np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


@pytest.fixture(scope="session")
def tiny_target(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("target") / "tiny.gguf"
    write_tiny_target(path)
    return path


@pytest.fixture
def tiny_recipe() -> Recipe:
    return replace(RECIPE)


@pytest.fixture
def tiny_prompts() -> Prompts:
    rng = np.random.default_rng(5)

    def some(count: int, length: int) -> list[tuple[int, ...]]:
        return [tuple(rng.integers(4, 96, length).tolist()) for _ in range(count)]

    kinds = ("code", "prose", "chat", "chat-code", "recall")
    return Prompts(
        user=(1, 10),
        answer=(2, 11),
        train={kind: some(4, 9) for kind in kinds},
        long={"code": some(4, 30), "recall": some(4, 30)},
        spare={kind: some(2, 8) for kind in kinds if kind != "chat"},
    )
