"""How much memory a server will take, from headers alone: weights, caches, rollback copies, and buffers.

Weights and caches follow the engine's own arithmetic and are exact. Buffers for computation depend on what a backend
fuses; their estimate was fitted to the CPU build and is the part to doubt.
"""

import math
from dataclasses import dataclass, fields
from typing import Literal

import psutil
from gguf import GGML_QUANT_SIZES, GGMLQuantizationType

from analysis.convert.gguf import GGUFFile
from analysis.records import Problem

PAD = 256  # the engine rounds contexts and windows up to a multiple of this
F32 = 4


@dataclass(frozen=True, kw_only=True)
class Serving:
    """What of a server's configuration decides its memory. Lengths are in tokens.

    `rollback` is the number of tokens a target keeps copies for, the longest draft; 0 without a drafter.
    """

    context: int = 4096
    batch: int = 2048
    ubatch: int = 512
    parallel: int = 1
    kv_k: str = "f16"
    kv_v: str = "f16"
    rollback: int = 0


@dataclass(frozen=True, kw_only=True)
class Memory:
    """Bytes a model takes: `weights` and `cache` are exact, `buffers` is an estimate."""

    weights: int = 0
    cache: int = 0
    buffers: int = 0

    @property
    def total(self) -> int:
        """Return the sum."""
        return self.weights + self.cache + self.buffers

    def __add__(self, other: "Memory") -> "Memory":
        """Add what two models take."""
        return Memory(**{f.name: getattr(self, f.name) + getattr(other, f.name) for f in fields(self)})


def estimate_memory(model: GGUFFile, serving: Serving, role: Literal["target", "drafter"] = "target") -> Memory:
    """Return the memory of one model of a server.

    Raises:
        Problem: the header lacks a size that is needed, or a cache type is unknown.
    """
    cache = _deepseek4_cache if "deepseek4.attention.compress_ratios" in model.metadata else _plain_cache
    return Memory(
        weights=sum(tensor.nbytes for tensor in model.tensors),
        cache=cache(model, serving),
        buffers=_buffers(model, serving, role),
    )


def machine_memory() -> tuple[int, int]:
    """Return this machine's memory in bytes: all of it, and what could be had now without swapping."""
    memory = psutil.virtual_memory()
    return memory.total, memory.available


def row_bytes(kind: str, values: int) -> int:
    """Return the bytes of a row of values in a cache type (`f16`, `q8_0`).

    Raises:
        Problem: there is no such type.
    """
    try:
        block, width = GGML_QUANT_SIZES[GGMLQuantizationType[kind.upper()]]
    except KeyError:
        raise Problem(f"unknown cache type {kind!r}", expected="f16, bf16, f32, q8_0, q4_0 or the like") from None
    return -(-values // block) * width


def _number(model: GGUFFile, key: str) -> int:
    value = model.number(f"{{arch}}.{key}")
    if value is None:
        raise Problem(f"{model.path} does not state {model.architecture}.{key}", expected="a whole number")
    return value


def _per_layer(model: GGUFFile, key: str) -> list[int]:
    """Return a size of each block; some architectures state one for all."""
    value = model.metadata.get(f"{model.architecture}.{key}")
    layers = _number(model, "block_count")
    if isinstance(value, tuple):
        return [int(item) for item in value][:layers]
    return [_number(model, key)] * layers


def _plain_cache(model: GGUFFile, serving: Serving) -> int:
    """Return the bytes of keys and values, one row a token; window layers keep their window and a batch."""
    context = _padded(serving.context)
    window = model.number("{arch}.attention.sliding_window") or 0
    pattern = model.metadata.get(f"{model.architecture}.attention.sliding_window_pattern")
    keys, values = _head_sizes(model)
    total = 0
    for layer, heads in enumerate(_per_layer(model, "attention.head_count_kv")):
        windowed = window and (
            pattern[layer] if isinstance(pattern, tuple) and len(pattern) > layer else _is_dspark4(model)
        )
        cells = min(context, _padded(window + serving.ubatch)) if windowed else context
        total += cells * (row_bytes(serving.kv_k, heads * keys) + row_bytes(serving.kv_v, heads * values))
    return total * serving.parallel


def _is_dspark4(model: GGUFFile) -> bool:
    """Return whether every layer slides: so in a drafter with DeepSeek-V4's blocks, which states no pattern."""
    return bool(model.number("{arch}.hyper_connection.count"))


def _head_sizes(model: GGUFFile) -> tuple[int, int]:
    width = _number(model, "embedding_length") // max(_per_layer(model, "attention.head_count"))
    keys = model.number("{arch}.attention.key_length") or width
    return keys, model.number("{arch}.attention.value_length") or width


def _deepseek4_cache(model: GGUFFile, serving: Serving) -> int:
    """Return the bytes of DeepSeek-V4's caches: a window for every layer, compressed rows where the ratio is 4 or 128.

    Layers of ratio 4 also keep the indexer's keys. What is being compressed lies in F32, once and once more for each
    token that can be rolled back.
    """
    ratios = _per_layer(model, "attention.compress_ratios")
    width, index = _number(model, "attention.key_length"), _number(model, "attention.indexer.key_length")
    window = _padded(min(_padded(serving.context), _number(model, "attention.sliding_window") + serving.ubatch))
    total = len(ratios) * window * row_bytes(serving.kv_k, width)
    for ratio in ratios:
        if ratio:
            rows = _padded(math.ceil(_padded(serving.context) / ratio))
            indexed = row_bytes(serving.kv_k, index) if ratio == 4 else 0
            total += rows * (row_bytes(serving.kv_k, width) + indexed)
        total += _compressor_state(ratio, width, index) * (1 + serving.rollback)
    return total * serving.parallel


def _compressor_state(ratio: int, width: int, index: int) -> int:
    """Return the bytes of the values and scores that are not yet compressed, of one layer and one sequence."""
    if ratio == 4:  # windows overlap: twice the rows, twice as wide
        return 2 * F32 * (2 * ratio) * (2 * width + 2 * index)
    return 2 * F32 * ratio * width


def _buffers(model: GGUFFile, serving: Serving, role: str) -> int:
    """Estimate the buffers of computation: activations of a batch, masks over the context, logits.

    Activations: three feed-forward rows and four residual rows a token, which gives the CPU build's figures for llama
    exactly and for deepseek4 within a tenth. Masks: 2 bytes a token of context; 12 a compressed row of deepseek4.
    A drafter of blocks holds the logits of a whole batch twice, with and without the Markov head's part.
    """
    ubatch = min(serving.ubatch, serving.context)
    hidden = _number(model, "embedding_length")
    streams = model.number("{arch}.hyper_connection.count") or 1
    inner = _feed_forward(model)
    total = F32 * ubatch * (3 * inner + 4 * hidden * streams)
    total += _mask_bytes(model, serving, ubatch)
    vocabulary = model.vocabulary_size or 0
    if role == "drafter" and model.architecture == "dflash":
        taps = model.metadata.get("dflash.target_layers")
        total += 2 * F32 * ubatch * vocabulary
        total += F32 * serving.batch * hidden * (len(taps) if isinstance(taps, tuple) else 1)
    else:
        total += F32 * vocabulary * (1 + serving.rollback) * serving.parallel
    return total


def _mask_bytes(model: GGUFFile, serving: Serving, ubatch: int) -> int:
    context = _padded(serving.context)
    if "deepseek4.attention.compress_ratios" in model.metadata:
        return 12 * ubatch * context // 4
    if _is_dspark4(model):
        context = min(context, _padded(_number(model, "attention.sliding_window") + serving.ubatch))
    return 2 * ubatch * context


def _feed_forward(model: GGUFFile) -> int:
    used = model.number("{arch}.expert_used_count")
    if used:
        shared = model.number("{arch}.expert_shared_count") or 0
        return (used + shared) * max(_per_layer(model, "expert_feed_forward_length"))
    return max(_per_layer(model, "feed_forward_length"))


def _padded(count: int) -> int:
    return -(-count // PAD) * PAD
