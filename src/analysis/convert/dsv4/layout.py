"""Which tensors a DeepSeek-V4 checkpoint with DSpark holds, where, and what the official converter makes of them.

Matrices of attention and of the shared expert are stored in 8 bits with one scale a 128 x 128 block, routed experts in
4 bits (two values a byte) with one scale a 32 values; scales are powers of two in one byte.
"""

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass

from gguf import GGML_QUANT_SIZES, GGMLQuantizationType

from analysis.convert.dsv4.shape import Shape

FP8_BLOCK = 128
FP4_BLOCK = 32


@dataclass(frozen=True)
class StoredSpec:
    """A tensor of a checkpoint: its name, safetensors dtype and shape, outermost dimension first."""

    name: str
    dtype: str
    shape: tuple[int, ...]

    @property
    def nbytes(self) -> int:
        """Return the bytes of the values."""
        width = {"BF16": 2, "F32": 4, "I64": 8}.get(self.dtype, 1)
        return math.prod(self.shape) * width


@dataclass(frozen=True)
class ConvertedSpec:
    """A tensor of a GGUF file: its name, shape in ggml's order and type."""

    name: str
    shape: tuple[int, ...]
    type: str

    @property
    def nbytes(self) -> int:
        """Return the bytes of the values."""
        block, width = GGML_QUANT_SIZES[GGMLQuantizationType[self.type]]
        return math.prod(self.shape) // block * width


def checkpoint_tensors(shape: Shape) -> tuple[StoredSpec, ...]:
    """Return every tensor of a checkpoint, target first, then the DSpark blocks."""
    found = [_bf16("embed.weight", shape.vocabulary, shape.hidden)]
    for layer, ratio in enumerate(shape.ratios):
        found += _block(f"layers.{layer}", shape, ratio, hashed=layer < shape.hash_layers)
    found += [_bf16("head.weight", shape.vocabulary, shape.hidden), _bf16("norm.weight", shape.hidden)]
    found += _head_connections("", shape)
    for block in range(shape.drafter_blocks):
        found += _block(f"mtp.{block}", shape, 0, hashed=False)
        if block == 0:
            found += _fp8("mtp.0.main_proj", shape.hidden, shape.hidden * len(shape.taps))
            found.append(_bf16("mtp.0.main_norm.weight", shape.hidden))
        if block == shape.drafter_blocks - 1:
            found += _drafter_heads(f"mtp.{block}", shape)
    return tuple(found)


def shards(shape: Shape) -> tuple[tuple[StoredSpec, ...], ...]:
    """Return the tensors of each file: embedding, one file a layer, output, one file a DSpark block.

    For DeepSeek-V4-Flash these are 48 files with the drafter in 46 to 48, as the published checkpoint has them.
    """
    files: dict[str, list[StoredSpec]] = {}
    for tensor in checkpoint_tensors(shape):
        block = re.match(r"(layers|mtp)\.\d+", tensor.name)
        part = block[0] if block else "embed" if tensor.name.startswith("embed") else "head"
        files.setdefault(part, []).append(tensor)
    return tuple(map(tuple, files.values()))


def gguf_tensors(shape: Shape, part: str) -> tuple[ConvertedSpec, ...]:
    """Return the tensors the official converter writes for the `target` or the `drafter`.

    8-bit matrices become Q8_0, the routed experts of a block three MXFP4 tensors; BF16 matrices and F32 stay, vectors
    become F32.
    """
    found: dict[str, ConvertedSpec] = {}
    for tensor in checkpoint_tensors(shape):
        if tensor.name.startswith("mtp.") != (part == "drafter") or tensor.name.endswith(".scale"):
            continue
        name = converted_name(tensor.name)
        rows = tuple(reversed(tensor.shape))
        if tensor.dtype == "I8":
            found[name] = ConvertedSpec(name, (2 * rows[0], rows[1], shape.experts), "MXFP4")
        elif tensor.dtype == "F8_E4M3":
            found[name] = ConvertedSpec(name, rows, "Q8_0")
        elif tensor.dtype == "I64":
            found[name] = ConvertedSpec(name, rows, "I32")
        else:
            found[name] = ConvertedSpec(name, rows, tensor.dtype if len(rows) > 1 else "F32")
    return tuple(found.values())


def _bf16(name: str, *shape: int) -> StoredSpec:
    return StoredSpec(name, "BF16", shape)


def _f32(name: str, *shape: int) -> StoredSpec:
    return StoredSpec(name, "F32", shape)


def _fp8(name: str, out: int, inner: int) -> list[StoredSpec]:
    blocks = (-(-out // FP8_BLOCK), -(-inner // FP8_BLOCK))
    return [StoredSpec(f"{name}.weight", "F8_E4M3", (out, inner)), StoredSpec(f"{name}.scale", "F8_E8M0", blocks)]


def _fp4(name: str, out: int, inner: int) -> list[StoredSpec]:
    return [
        StoredSpec(f"{name}.weight", "I8", (out, inner // 2)),
        StoredSpec(f"{name}.scale", "F8_E8M0", (out, inner // FP4_BLOCK)),
    ]


def _block(name: str, shape: Shape, ratio: int, *, hashed: bool) -> Iterator[StoredSpec]:
    yield from _attention(f"{name}.attn", shape)
    yield from _compressor(f"{name}.attn", shape, ratio)
    yield _bf16(f"{name}.attn_norm.weight", shape.hidden)
    yield from _feed_forward(f"{name}.ffn", shape, hashed=hashed)
    yield _bf16(f"{name}.ffn_norm.weight", shape.hidden)
    mixed = (2 + shape.streams) * shape.streams
    for part in ("hc_attn", "hc_ffn"):
        yield _f32(f"{name}.{part}_base", mixed)
        yield _f32(f"{name}.{part}_fn", mixed, shape.streams * shape.hidden)
        yield _f32(f"{name}.{part}_scale", 3)


def _attention(name: str, shape: Shape) -> Iterator[StoredSpec]:
    values = shape.heads * shape.head_dim
    yield _f32(f"{name}.attn_sink", shape.heads)
    yield _bf16(f"{name}.kv_norm.weight", shape.head_dim)
    yield _bf16(f"{name}.q_norm.weight", shape.q_rank)
    yield from _fp8(f"{name}.wkv", shape.head_dim, shape.hidden)
    yield from _fp8(f"{name}.wo_a", shape.o_groups * shape.o_rank, values // shape.o_groups)
    yield from _fp8(f"{name}.wo_b", shape.hidden, shape.o_groups * shape.o_rank)
    yield from _fp8(f"{name}.wq_a", shape.q_rank, shape.hidden)
    yield from _fp8(f"{name}.wq_b", values, shape.q_rank)


def _compressor(name: str, shape: Shape, ratio: int) -> Iterator[StoredSpec]:
    """Yield what compresses keys and values; with ratio 4 windows overlap, and an indexer chooses among them."""
    if ratio == 0:
        return
    yield from _pooling(f"{name}.compressor", shape.hidden, shape.head_dim, ratio)
    if ratio == 4:
        yield from _pooling(f"{name}.indexer.compressor", shape.hidden, shape.index_head_dim, ratio)
        yield _bf16(f"{name}.indexer.weights_proj.weight", shape.index_heads, shape.hidden)
        yield from _fp8(f"{name}.indexer.wq_b", shape.index_heads * shape.index_head_dim, shape.q_rank)


def _pooling(name: str, hidden: int, width: int, ratio: int) -> Iterator[StoredSpec]:
    pooled = 2 * width if ratio == 4 else width
    yield _f32(f"{name}.ape", ratio, pooled)
    yield _bf16(f"{name}.norm.weight", width)
    yield _bf16(f"{name}.wgate.weight", pooled, hidden)
    yield _bf16(f"{name}.wkv.weight", pooled, hidden)


def _feed_forward(name: str, shape: Shape, *, hashed: bool) -> Iterator[StoredSpec]:
    yield _bf16(f"{name}.gate.weight", shape.experts, shape.hidden)
    if hashed:
        yield StoredSpec(f"{name}.gate.tid2eid", "I64", (shape.vocabulary, shape.experts_used))
    else:
        yield _f32(f"{name}.gate.bias", shape.experts)
    for expert in range(shape.experts):
        for matrix, out, inner in _swiglu(shape):
            yield from _fp4(f"{name}.experts.{expert}.{matrix}", out, inner)
    for matrix, out, inner in _swiglu(shape):
        yield from _fp8(f"{name}.shared_experts.{matrix}", out, inner)


def _swiglu(shape: Shape) -> tuple[tuple[str, int, int], ...]:
    up, down = (shape.intermediate, shape.hidden), (shape.hidden, shape.intermediate)
    return (("w1", *up), ("w2", *down), ("w3", *up))


def _head_connections(name: str, shape: Shape) -> list[StoredSpec]:
    return [
        _f32(f"{name}hc_head_base", shape.streams),
        _f32(f"{name}hc_head_fn", shape.streams, shape.streams * shape.hidden),
        _f32(f"{name}hc_head_scale", 1),
    ]


def _drafter_heads(name: str, shape: Shape) -> list[StoredSpec]:
    return [
        _bf16(f"{name}.confidence_head.proj.weight", 1, shape.hidden + shape.markov_rank),
        *_head_connections(f"{name}.", shape),
        _bf16(f"{name}.markov_head.markov_w1.weight", shape.vocabulary, shape.markov_rank),
        _bf16(f"{name}.markov_head.markov_w2.weight", shape.vocabulary, shape.markov_rank),
        _bf16(f"{name}.norm.weight", shape.hidden),
    ]


# Names in the checkpoint and in GGUF, after the block's number.
IN_BLOCK = {
    "attn.attn_sink": "attn_sinks.weight",
    "attn.kv_norm.weight": "attn_kv_a_norm.weight",
    "attn.q_norm.weight": "attn_q_a_norm.weight",
    "attn.wkv.weight": "attn_kv.weight",
    "attn.wo_a.weight": "attn_output_a.weight",
    "attn.wo_b.weight": "attn_output_b.weight",
    "attn.wq_a.weight": "attn_q_a.weight",
    "attn.wq_b.weight": "attn_q_b.weight",
    "attn.compressor.ape": "attn_compressor_ape.weight",
    "attn.compressor.norm.weight": "attn_compressor_norm.weight",
    "attn.compressor.wgate.weight": "attn_compressor_gate.weight",
    "attn.compressor.wkv.weight": "attn_compressor_kv.weight",
    "attn.indexer.compressor.ape": "indexer_compressor_ape.weight",
    "attn.indexer.compressor.norm.weight": "indexer_compressor_norm.weight",
    "attn.indexer.compressor.wgate.weight": "indexer_compressor_gate.weight",
    "attn.indexer.compressor.wkv.weight": "indexer_compressor_kv.weight",
    "attn.indexer.weights_proj.weight": "indexer.proj.weight",
    "attn.indexer.wq_b.weight": "indexer.attn_q_b.weight",
    "ffn.gate.weight": "ffn_gate_inp.weight",
    "ffn.gate.bias": "exp_probs_b.bias",
    "ffn.gate.tid2eid": "ffn_gate_tid2eid.weight",
    "ffn.shared_experts.w1.weight": "ffn_gate_shexp.weight",
    "ffn.shared_experts.w2.weight": "ffn_down_shexp.weight",
    "ffn.shared_experts.w3.weight": "ffn_up_shexp.weight",
}
EXPERTS = {"w1": "ffn_gate_exps.weight", "w2": "ffn_down_exps.weight", "w3": "ffn_up_exps.weight"}
OUTSIDE = {
    "embed.weight": "token_embd.weight",
    "head.weight": "output.weight",
    "norm.weight": "output_norm.weight",
    "hc_head_base": "output_hc_base.weight",
    "hc_head_fn": "output_hc_fn.weight",
    "hc_head_scale": "output_hc_scale.weight",
    "main_proj.weight": "fc.weight",
    "main_norm.weight": "enc.output_norm.weight",
    "markov_head.markov_w1.weight": "markov_w1.weight",
    "markov_head.markov_w2.weight": "markov_w2.weight",
    "confidence_head.proj.weight": "conf_proj.weight",
}


def converted_name(name: str) -> str:
    """Return the name a tensor of a checkpoint has in GGUF; the experts of a block share one."""
    match = re.match(r"(?:layers|mtp)\.(\d+)\.(.+)", name)
    if match is None:
        return OUTSIDE[name]
    block, rest = match.groups()
    if rest in OUTSIDE:
        return OUTSIDE[rest]
    expert = re.match(r"ffn\.experts\.\d+\.(w[123])\.weight", rest)
    if expert:
        return f"blk.{block}.{EXPERTS[expert[1]]}"
    return f"blk.{block}.{IN_BLOCK.get(rest) or (rest if rest.endswith('.weight') else rest + '.weight')}"
