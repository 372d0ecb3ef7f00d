"""The target in torch, read from its GGUF file: what it says about a text, and what it was thinking meanwhile."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gguf
import numpy as np

from analysis.drafter.export import whole_gguf
from analysis.drafter.torchlib import (
    Tensor,
    functional,
    product32,
    rms_norm,
    rotary_table,
    rotate,
    torch,
    working_dtype,
)
from analysis.records import Problem


@dataclass(frozen=True)
class Target:
    """A frozen Llama with tied embedding.

    `embed` is [vocabulary, hidden]; a layer's matrices are [out, in]; all in the device's working type.
    """

    embed: Tensor
    norm: Tensor
    layers: tuple[Mapping[str, Tensor], ...]
    heads: int
    kv_heads: int
    head_dim: int
    eps: float
    theta: float
    device: str

    @property
    def hidden(self) -> int:
        """Return the width of the residual stream."""
        return int(self.embed.shape[1])

    def logits(self, hidden: Tensor) -> Tensor:
        """Return float32 logits [rows, vocabulary] of normed hidden states [rows, hidden]."""
        return product32(hidden, self.embed.t())


def load_target(path: Path, device: str) -> Target:
    """Read a Llama from a GGUF file of any quantization.

    Raises:
        Problem: the file is missing or holds another architecture.
    """
    if not path.is_file():
        raise Problem(f"no target at {path}", expected="the target's GGUF file", remedy="pass --target FILE")
    reader = whole_gguf(path)
    architecture = _field(reader, "general.architecture")
    if architecture != "llama":
        raise Problem(f"{path} holds a {architecture}", expected="a llama, the only target this recipe knows")
    # cuDNN's attention builds a plan for every new shape, which costs seconds each.
    torch.backends.cuda.enable_cudnn_sdp(False)
    weights = {t.name: gguf.quants.dequantize(t.data, t.tensor_type).astype(np.float32) for t in reader.tensors}
    heads, kv_heads = _field(reader, "llama.attention.head_count"), _field(reader, "llama.attention.head_count_kv")
    hidden = _field(reader, "llama.embedding_length")
    head_dim = hidden // heads
    dtype = working_dtype(device)

    def place(values: Any) -> Tensor:
        return torch.from_numpy(np.ascontiguousarray(values)).to(device, dtype)

    layers = []
    for index in range(_field(reader, "llama.block_count")):
        raw = _of_layer(weights, index)
        raw["attn_q"] = unpermute(raw["attn_q"], heads)
        raw["attn_k"] = unpermute(raw["attn_k"], kv_heads)
        layers.append({name: place(value) for name, value in raw.items()})
    return Target(
        embed=place(weights["token_embd.weight"]),
        norm=place(weights["output_norm.weight"]),
        layers=tuple(layers),
        heads=heads,
        kv_heads=kv_heads,
        head_dim=head_dim,
        eps=float(_field(reader, "llama.attention.layer_norm_rms_epsilon")),
        theta=float(_field(reader, "llama.rope.freq_base")),
        device=device,
    )


def _of_layer(weights: Mapping[str, Any], index: int) -> dict[str, Any]:
    start = f"blk.{index}."
    return {name.split(".")[2]: value for name, value in weights.items() if name.startswith(start)}


def unpermute(weight: Any, heads: int) -> Any:
    """Undo the converter's row order of a Llama's query and key weights (pairs side by side) [out, in]."""
    out, inputs = weight.shape
    return weight.reshape(heads, out // heads // 2, 2, inputs).swapaxes(1, 2).reshape(out, inputs)


def forward(target: Target, ids: Tensor, taps: Sequence[int]) -> tuple[Tensor, Tensor]:
    """Read a batch of texts.

    Args:
        target: the model.
        ids: tokens [batch, length].
        taps: layers whose outputs are wanted, ascending.

    Returns:
        Tapped outputs side by side [batch, length, len(taps) * hidden], and the last normed hidden states
        [batch, length, hidden].
    """
    batch, length = ids.shape
    cos, sin = rotary_table(length, target.head_dim, target.theta, target.device)
    cos, sin = cos.to(target.embed.dtype), sin.to(target.embed.dtype)

    def attend(index: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        q, k, v = (x.transpose(1, 2) for x in (q, k, v))
        repeat = target.heads // target.kv_heads
        k, v = (x.repeat_interleave(repeat, 1) for x in (rotate(k, cos, sin), v))
        mixed = functional.scaled_dot_product_attention(rotate(q, cos, sin), k, v, is_causal=True)
        return mixed.transpose(1, 2).reshape(batch, length, -1)

    x, seen = target.embed[ids], []
    with torch.no_grad():
        for index in range(len(target.layers)):
            x = run_layer(target, index, x, attend)
            if index in taps:
                seen.append(x)
        return torch.cat(seen, -1), rms_norm(x, target.norm, target.eps)


def run_layer(target: Target, index: int, x: Tensor, attend: Callable[[int, Tensor, Tensor, Tensor], Tensor]) -> Tensor:
    """Run one layer on the residual stream `x` [..., hidden].

    `attend` gets the layer's index and the unrotated queries [..., heads, head_dim], keys and values
    [..., kv_heads, head_dim], and returns what attention mixed [..., heads * head_dim].
    """
    layer = target.layers[index]
    normed = rms_norm(x, layer["attn_norm"], target.eps)
    q = (normed @ layer["attn_q"].t()).unflatten(-1, (target.heads, target.head_dim))
    k = (normed @ layer["attn_k"].t()).unflatten(-1, (target.kv_heads, target.head_dim))
    v = (normed @ layer["attn_v"].t()).unflatten(-1, (target.kv_heads, target.head_dim))
    x = x + attend(index, q, k, v) @ layer["attn_output"].t()
    normed = rms_norm(x, layer["ffn_norm"], target.eps)
    gated = functional.silu(normed @ layer["ffn_gate"].t()) * (normed @ layer["ffn_up"].t())
    return x + gated @ layer["ffn_down"].t()


def _field(reader: Any, name: str) -> Any:
    field = reader.fields.get(name)
    if field is None:
        raise Problem(f"the target's file has no {name}", expected="a GGUF file of a Llama")
    return field.contents()
