"""From weights to a checkpoint that llama.cpp's converter reads, on a grid that Q8_0 and F16 both hold exactly.

Q8_0 stores 32 neighbours as whole numbers from -127 to 127 times one float16 step. If the step has four
significant bits, every product fits float16's eleven; and if the largest neighbour is 127 steps, quantizing finds
the same step again. Weights snapped to such a grid are the same numbers in the float16 checkpoint, in an F16 GGUF
file and in a Q8_0 one, so that any of them can be rebuilt from any other and compared bit by bit.
"""

import json
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import safetensors.numpy
from safetensors import SafetensorError

from analysis.convert.gguf import read_gguf
from analysis.drafter.shapes import Shape
from analysis.records import Problem

NEIGHBOURS = 32
STEPS = 127
WEIGHTS = "model.safetensors"
Arrays = dict[str, Any]


def snap(values: Any) -> Any:
    """Return float32 values [.., a multiple of 32] on the grid.

    A step is rounded to four significant bits, so no weight moves by more than a fifteenth of the largest of its
    neighbours, and most by less than half a step.

    Args:
        values: float32 array; neighbours are 32 along the last axis.
    """
    groups = np.asarray(values, np.float32).reshape(-1, NEIGHBOURS)
    largest = np.abs(groups).max(1, keepdims=True)
    fraction, exponent = np.frexp(largest / STEPS)
    # Float16's smallest normal number bounds the step; smaller steps would lose bits.
    step = np.maximum(np.ldexp(np.round(fraction * 16) / 16, exponent), np.float32(2.0**-14)).astype(np.float32)
    whole = np.clip(np.round(groups / step), -STEPS, STEPS)
    at_largest = np.abs(groups) == largest
    whole = np.where(at_largest & (largest > 0), np.copysign(STEPS, groups), whole)
    return (whole * step).reshape(np.shape(values)).astype(np.float32)


def snapped(weights: Arrays) -> Arrays:
    """Return float16 arrays: matrices on the grid, vectors rounded."""
    return {
        name: (snap(value) if value.ndim == 2 and value.shape[1] % NEIGHBOURS == 0 else value).astype(np.float16)
        for name, value in weights.items()
    }


def save_checkpoint(directory: Path, weights: Arrays, shape: Shape) -> None:
    """Write `config.json` and `model.safetensors`."""
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "config.json").write_text(json.dumps(shape.hf_config(), indent=1) + "\n", encoding="utf-8")
    whole = {name: np.ascontiguousarray(weights[name]) for name in sorted(weights)}
    safetensors.numpy.save_file(whole, directory / WEIGHTS, metadata={"format": "pt"})


def load_checkpoint(directory: Path) -> tuple[Arrays, Shape]:
    """Read a checkpoint.

    Raises:
        Problem: a part of it is missing, or its tensors do not fit its configuration.
    """
    try:
        config = json.loads((directory / "config.json").read_text(encoding="utf-8"))
        weights = safetensors.numpy.load_file(directory / WEIGHTS)
        shape = Shape.of_config(config)
    except (OSError, ValueError, TypeError, KeyError, SafetensorError) as error:
        saw = f"no {error}" if isinstance(error, KeyError) else str(error)
        raise Problem(f"{directory} is no checkpoint: {saw}", expected="config.json and model.safetensors") from None
    count = sum(value.size for value in weights.values())
    if count != shape.parameters():
        raise Problem(
            f"{directory} holds {count} weights", expected=f"{shape.parameters()}, as its config.json describes"
        )
    return weights, shape


def load_fitting(directory: Path, shape: Shape) -> Arrays:
    """Read the weights of a checkpoint that must have a given shape.

    Raises:
        Problem: see `load_checkpoint`; or its shape is another.
    """
    weights, found = load_checkpoint(directory)
    if found != shape:
        mine, theirs = found.hf_config(), shape.hf_config()
        differing = [key for key in mine if mine[key] != theirs[key]]
        raise Problem(
            f"the drafter in {directory} has {', '.join(f'{key} {mine[key]}' for key in differing)}",
            expected=", ".join(f"{key} {theirs[key]}" for key in differing),
            remedy="start from a drafter of the same recipe",
        )
    return weights


def checkpoint_shapes(shape: Shape) -> dict[str, tuple[int, ...]]:
    """Return the name and size of every tensor of a checkpoint."""
    queries, pairs = shape.heads * shape.head_dim, shape.kv_heads * shape.head_dim
    sizes: dict[str, tuple[int, ...]] = {
        "self_attn.q_proj": (queries, shape.hidden),
        "self_attn.k_proj": (pairs, shape.hidden),
        "self_attn.v_proj": (pairs, shape.hidden),
        "self_attn.o_proj": (shape.hidden, queries),
        "self_attn.q_norm": (shape.head_dim,),
        "self_attn.k_norm": (shape.head_dim,),
        "mlp.gate_proj": (shape.ffn, shape.hidden),
        "mlp.up_proj": (shape.ffn, shape.hidden),
        "mlp.down_proj": (shape.hidden, shape.ffn),
        "input_layernorm": (shape.hidden,),
        "post_attention_layernorm": (shape.hidden,),
    }
    names = {f"layers.{i}.{name}.weight": size for i in range(shape.layers) for name, size in sizes.items()}
    return names | {
        "fc.weight": (shape.hidden, len(shape.taps) * shape.hidden),
        "hidden_norm.weight": (shape.hidden,),
        "norm.weight": (shape.hidden,),
        "markov_head.markov_w1.weight": (shape.vocabulary, shape.rank),
        "markov_head.markov_w2.weight": (shape.vocabulary, shape.rank),
        "confidence_head.proj.weight": (1, shape.hidden + shape.rank),
        "confidence_head.proj.bias": (1,),
    }


def checkpoint_of_gguf(path: Path) -> tuple[Arrays, Shape]:
    """Return the checkpoint that a drafter's GGUF file (F16 or Q8_0) is an image of.

    Raises:
        Problem: the file is damaged, or holds no DSpark drafter.
    """
    reader = whole_gguf(path)
    names = {tensor.name for tensor in reader.tensors}
    if "markov_w1.weight" not in names:
        raise Problem(f"{path} has no Markov head", expected="a DSpark drafter")

    def read(key: str) -> Any:
        return stated(reader, key, path)

    layers = int(read("dflash.block_count"))
    translated = _checkpoint_names(layers)
    if names != translated.keys():
        raise Problem(
            f"{path} lacks or adds the tensor {min(names ^ translated.keys())}",
            expected=f"those of a DSpark drafter of {layers} layers",
        )
    weights = {}
    for tensor in reader.tensors:
        values = gguf.quants.dequantize(tensor.data, tensor.tensor_type)
        weights[translated[tensor.name]] = values.reshape(tuple(int(n) for n in tensor.shape[::-1])).astype(np.float16)
    fused = weights["fc.weight"].shape
    shape = Shape(
        hidden=fused[0],
        ffn=weights["layers.0.mlp.gate_proj.weight"].shape[0],
        layers=layers,
        heads=int(read("dflash.attention.head_count")),
        kv_heads=int(read("dflash.attention.head_count_kv")),
        head_dim=int(read("dflash.attention.key_length")),
        vocabulary=weights["markov_head.markov_w1.weight"].shape[0],
        rank=weights["markov_head.markov_w1.weight"].shape[1],
        block=int(read("dflash.block_size")),
        taps=tuple(int(tap) - 1 for tap in read("dflash.target_layers")),
        mask_token=int(read("tokenizer.ggml.mask_token_id")),
        theta=float(read("dflash.rope.freq_base")),
        eps=round(float(read("dflash.attention.layer_norm_rms_epsilon")), 8),
        context=int(read("dflash.context_length")),
    )
    weights["confidence_head.proj.weight"] = weights["confidence_head.proj.weight"].reshape(1, -1)
    return weights, shape


def whole_gguf(path: Path) -> gguf.GGUFReader:
    """Return the reader of a GGUF file whose header was found whole; of a damaged one it would not say what is wrong.

    Raises:
        Problem: the file is missing or damaged.
    """
    read_gguf(path)
    return gguf.GGUFReader(path)


def stated(reader: gguf.GGUFReader, key: str, path: Path) -> Any:
    """Return what a GGUF file's metadata state under a key.

    Raises:
        Problem: they do not have it.
    """
    if key not in reader.fields:
        raise Problem(f"{path} does not state {key}", expected="the metadata that its converter wrote")
    return reader.fields[key].contents()


def _checkpoint_names(layers: int) -> dict[str, str]:
    names = {
        "fc.weight": "fc.weight",
        "enc.output_norm.weight": "hidden_norm.weight",
        "output_norm.weight": "norm.weight",
        "markov_w1.weight": "markov_head.markov_w1.weight",
        "markov_w2.weight": "markov_head.markov_w2.weight",
        "conf_proj.weight": "confidence_head.proj.weight",
        "conf_proj.bias": "confidence_head.proj.bias",
    }
    parts = {
        "attn_norm": "input_layernorm",
        "ffn_norm": "post_attention_layernorm",
        "attn_q": "self_attn.q_proj",
        "attn_k": "self_attn.k_proj",
        "attn_v": "self_attn.v_proj",
        "attn_output": "self_attn.o_proj",
        "attn_q_norm": "self_attn.q_norm",
        "attn_k_norm": "self_attn.k_norm",
        "ffn_gate": "mlp.gate_proj",
        "ffn_up": "mlp.up_proj",
        "ffn_down": "mlp.down_proj",
    }
    for index in range(layers):
        names |= {f"blk.{index}.{old}.weight": f"layers.{index}.{new}.weight" for old, new in parts.items()}
    return names
