"""What llama.cpp's converter asks of the target: a tokenizer and a configuration in Hugging Face's layout.

The target itself is a GGUF file, so both are read from its metadata.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gguf

from analysis.drafter.export import stated, whole_gguf


def save_target_description(target: Path, directory: Path) -> None:
    """Write what the converter asks of the target: its tokenizer and configuration, read from its GGUF file.

    Raises:
        Problem: the file is missing, damaged, or does not state what the converter asks.
    """
    reader = whole_gguf(target)

    def read(key: str) -> Any:
        return stated(reader, key, target)

    tokens = read("tokenizer.ggml.tokens")
    names = {key: tokens[read(f"tokenizer.ggml.{key}_id")] for key in ("bos_token", "eos_token")}
    marks = {"tokenizer_class": "PreTrainedTokenizerFast", **names}
    marks |= {"chat_template": read("tokenizer.chat_template"), "clean_up_tokenization_spaces": False}
    directory.mkdir(parents=True, exist_ok=True)
    parts = (("config", _config(read)), ("tokenizer", _tokenizer(read)), ("tokenizer_config", marks))
    for name, content in parts:
        (directory / f"{name}.json").write_text(json.dumps(content, ensure_ascii=False), encoding="utf-8")


def _tokenizer(read: Callable[[str], Any]) -> dict[str, Any]:
    tokens, kinds = read("tokenizer.ggml.tokens"), read("tokenizer.ggml.token_type")
    plain = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    special = [
        {"id": index, "content": token, **plain}
        for index, (token, kind) in enumerate(zip(tokens, kinds, strict=True))
        if kind == gguf.TokenType.CONTROL
    ]
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": special,
        "normalizer": None,
        "pre_tokenizer": {
            "type": "Sequence",
            "pretokenizers": [{"type": "Digits", "individual_digits": True}, byte_level],
        },
        "post_processor": None,
        "decoder": {**byte_level, "add_prefix_space": True},
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": False,
            "vocab": {token: index for index, token in enumerate(tokens)},
            "merges": [merge.split(" ") for merge in read("tokenizer.ggml.merges")],
        },
    }


def _config(read: Callable[[str], Any]) -> dict[str, Any]:
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_size": read("llama.embedding_length"),
        "intermediate_size": read("llama.feed_forward_length"),
        "num_hidden_layers": read("llama.block_count"),
        "num_attention_heads": read("llama.attention.head_count"),
        "num_key_value_heads": read("llama.attention.head_count_kv"),
        "vocab_size": read("llama.vocab_size"),
        "rms_norm_eps": 1e-5,
        "rope_theta": read("llama.rope.freq_base"),
        "max_position_embeddings": read("llama.context_length"),
        "bos_token_id": read("tokenizer.ggml.bos_token_id"),
        "eos_token_id": read("tokenizer.ggml.eos_token_id"),
        "tie_word_embeddings": True,
    }
