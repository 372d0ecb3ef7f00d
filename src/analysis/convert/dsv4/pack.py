"""The GGUF files the official converter makes of a synthetic checkpoint, made without it and without torch.

For tests and chapters that need the architecture but not the conversion. That both ways give the same tensors is
tested where the converter is there.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

import numpy as np
from gguf import GGMLQuantizationType, GGUFWriter, TokenType
from gguf.quants import quantize
from numpy.typing import NDArray

from analysis.convert.dsv4.codec import decode_bf16, decode_fp8
from analysis.convert.dsv4.layout import EXPERTS, converted_name
from analysis.convert.files import whole_file
from analysis.convert.safetensors import StoredTensors

Part = Literal["target", "drafter"]
Stored = Mapping[str, tuple[str, tuple[int, ...], bytes]]
Array = NDArray[Any]


def write_gguf(checkpoint: Path, part: Part, path: Path) -> Path:
    """Write the target or the drafter of a small synthetic checkpoint as GGUF and return the file's path.

    Everything is held in memory once.

    Raises:
        Problem: the checkpoint is damaged, or the disk is full.
    """
    settings = json.loads((checkpoint / "config.json").read_text(encoding="utf-8"))
    tokenizer = json.loads((checkpoint / "tokenizer.json").read_text(encoding="utf-8"))
    drafter = part == "drafter"
    with whole_file(path) as unfinished:
        writer = GGUFWriter(unfinished, "dflash" if drafter else "deepseek4")
        _add_sizes(writer, settings, drafter=drafter)
        _add_vocabulary(writer, tokenizer, settings, drafter=drafter)
        stored = StoredTensors(sorted(checkpoint.glob("*.safetensors")))
        for name, values, kind in converted_tensors(stored, drafter=drafter):
            writer.add_tensor(name, values, raw_dtype=kind)
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()
    return path


def converted_tensors(stored: Stored, *, drafter: bool) -> Iterator[tuple[str, Array, GGMLQuantizationType]]:
    """Yield name, values and type of each tensor of a GGUF file, made from those of the checkpoint one at a time."""
    for name in stored:
        if name.startswith("mtp.") != drafter or name.endswith(".scale") or ".experts." in name:
            continue
        values, kind = _converted(name, stored)
        yield converted_name(name), values, kind
    for block in sorted({name.split(".ffn.")[0] for name in stored if ".ffn.experts." in name}):
        if block.startswith("mtp.") == drafter:
            for matrix, converted in EXPERTS.items():
                experts = pack_experts(stored, f"{block}.ffn.experts", matrix)
                yield f"blk.{block.split('.')[1]}.{converted}", experts, GGMLQuantizationType.MXFP4


def pack_experts(stored: Stored, prefix: str, matrix: str) -> Array:
    """Return one matrix of all experts of a block in MXFP4: for 32 values one byte of scale, then 16 of codes.

    The checkpoint keeps neighbours in one byte, MXFP4 values that are 16 apart; no code changes.
    """
    count = 1 + max(int(name.split(".")[4]) for name in stored if name.startswith(f"{prefix}."))
    packed: Array | None = None
    for expert in range(count):
        _, (out, half), raw = stored[f"{prefix}.{expert}.{matrix}.weight"]
        weight = np.frombuffer(raw, np.uint8).reshape(out, half)
        codes = np.stack([weight & 15, weight >> 4], axis=-1).reshape(out, -1, 32)
        scales = np.frombuffer(stored[f"{prefix}.{expert}.{matrix}.scale"][2], np.uint8).reshape(out, -1, 1)
        blocks = np.concatenate([scales, codes[..., :16] | codes[..., 16:] << 4], axis=-1)
        if packed is None:
            packed = np.empty((count, out, half // 16 * 17), np.uint8)
        packed[expert] = blocks.reshape(out, -1)
    if packed is None:
        raise KeyError(prefix)
    return packed


def _converted(name: str, stored: Stored) -> tuple[Array, GGMLQuantizationType]:
    dtype, shape, raw = stored[name]
    match dtype:
        case "F8_E4M3":
            _, blocks, scales = stored[name.removesuffix("weight") + "scale"]
            codes = np.frombuffer(raw, np.uint8).reshape(shape)
            values = decode_fp8(codes, np.frombuffer(scales, np.uint8).reshape(blocks))
            return quantize(values, GGMLQuantizationType.Q8_0), GGMLQuantizationType.Q8_0
        case "I64":
            return np.frombuffer(raw, "<i8").reshape(shape).astype(np.int32), GGMLQuantizationType.I32
        case "BF16" if len(shape) > 1:
            return np.frombuffer(raw, np.uint8).reshape(*shape[:-1], -1), GGMLQuantizationType.BF16
        case "BF16":
            return decode_bf16(raw, shape), GGMLQuantizationType.F32
        case _:
            return np.frombuffer(raw, "<f4").reshape(shape), GGMLQuantizationType.F32


def _add_sizes(writer: GGUFWriter, settings: Mapping[str, Any], *, drafter: bool) -> None:
    blocks = len(settings["dspark_target_layer_ids"]) if drafter else settings["num_hidden_layers"]
    values: list[tuple[Callable[[Any], None], Any]] = [
        (writer.add_block_count, blocks),
        (writer.add_context_length, settings["max_position_embeddings"]),
        (writer.add_embedding_length, settings["hidden_size"]),
        (writer.add_head_count, settings["num_attention_heads"]),
        (writer.add_head_count_kv, settings["num_key_value_heads"]),
        (writer.add_key_length, settings["head_dim"]),
        (writer.add_value_length, settings["head_dim"]),
        (writer.add_layer_norm_rms_eps, settings["rms_norm_eps"]),
        (writer.add_rope_freq_base, settings["rope_theta"]),
        (writer.add_rope_dimension_count, settings["qk_rope_head_dim"]),
        (writer.add_q_lora_rank, settings["q_lora_rank"]),
        (writer.add_sliding_window, settings["sliding_window"]),
        (writer.add_expert_count, settings["n_routed_experts"]),
        (writer.add_expert_used_count, settings["num_experts_per_tok"]),
        (writer.add_expert_shared_count, settings["n_shared_experts"]),
        (writer.add_expert_feed_forward_length, settings["moe_intermediate_size"]),
        (writer.add_expert_weights_scale, settings["routed_scaling_factor"]),
        (writer.add_expert_weights_norm, settings["norm_topk_prob"]),
        (writer.add_swiglu_clamp_exp, [settings["swiglu_limit"]] * blocks),
        (writer.add_swiglu_clamp_shexp, [settings["swiglu_limit"]] * blocks),
        (writer.add_indexer_head_count, settings["index_n_heads"]),
        (writer.add_indexer_key_length, settings["index_head_dim"]),
        (writer.add_indexer_top_k, settings["index_topk"]),
    ]
    for add, value in values:
        add(value)
    _add_rest(writer, settings, blocks, drafter=drafter)


def _add_rest(writer: GGUFWriter, settings: Mapping[str, Any], blocks: int, *, drafter: bool) -> None:
    """Add what older versions of the gguf package have no method for, by key."""
    name, scaling = writer.arch, settings["rope_scaling"]
    whole = {
        "expert_gating_func": 4,  # the square root of softplus
        "attention.output_group_count": settings["o_groups"],
        "attention.output_lora_rank": settings["o_lora_rank"],
        "hyper_connection.count": settings["hc_mult"],
        "hyper_connection.sinkhorn_iterations": settings["hc_sinkhorn_iters"],
        "hash_layer_count": 0 if drafter else settings["num_hash_layers"],
        "rope.scaling.original_context_length": scaling["original_max_position_embeddings"],
    }
    real = {
        "attention.compress_rope_freq_base": float(settings["compress_rope_theta"]),
        "hyper_connection.epsilon": settings["hc_eps"],
        "rope.scaling.factor": float(scaling["factor"]),
        "rope.scaling.yarn_beta_fast": float(scaling["beta_fast"]),
        "rope.scaling.yarn_beta_slow": float(scaling["beta_slow"]),
    }
    if drafter:
        whole["block_size"] = settings["dspark_block_size"]
    else:
        whole["embedding_length_out"] = settings["hidden_size"] * settings["hc_mult"]
    for key, value in whole.items():
        writer.add_uint32(f"{name}.{key}", value)
    for key, number in real.items():
        writer.add_float32(f"{name}.{key}", number)
    writer.add_string(f"{name}.rope.scaling.type", scaling["type"])
    writer.add_array(f"{name}.attention.compress_ratios", [0] * blocks if drafter else settings["compress_ratios"])
    if drafter:
        writer.add_array(f"{name}.target_layers", [layer + 1 for layer in settings["dspark_target_layer_ids"]])


def _add_vocabulary(
    writer: GGUFWriter, tokenizer: Mapping[str, Any], settings: Mapping[str, Any], *, drafter: bool
) -> None:
    size = settings["vocab_size"]
    tokens = [f"[PAD{number}]" for number in range(size)]
    kinds = [int(TokenType.UNUSED)] * size
    for token, number in tokenizer["model"]["vocab"].items():
        tokens[number], kinds[number] = token, int(TokenType.NORMAL)
    for added in tokenizer["added_tokens"]:
        control = added["special"] or added["content"].startswith("<｜")
        kind = TokenType.CONTROL if control else TokenType.USER_DEFINED
        tokens[added["id"]], kinds[added["id"]] = added["content"], int(kind)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("smollm")
    writer.add_token_list(tokens)
    writer.add_token_types(kinds)
    writer.add_token_merges(tokenizer["model"]["merges"])
    writer.add_bos_token_id(settings["bos_token_id"])
    writer.add_eos_token_id(settings["eos_token_id"])
    writer.add_pad_token_id(settings["eos_token_id"])
    writer.add_add_bos_token(False)
    writer.add_add_eos_token(False)
    if drafter:
        writer.add_mask_token_id(settings["dspark_noise_token_id"])
