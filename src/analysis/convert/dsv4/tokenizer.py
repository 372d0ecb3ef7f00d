"""A small byte-level tokenizer that the official converter recognises.

The converter knows a tokenizer by the ids it gives for a check text. A post-processor that answers with the ids of
SmolLM2's tokenizer makes it take this one for SmolLM's; it changes nothing in the engine, which reads only
vocabulary and merges.
"""

import json
from itertools import product
from pathlib import Path
from typing import Any

from analysis.records.places import data_dir

BEGIN, END, PAD = "<｜begin▁of▁sentence｜>", "<｜end▁of▁sentence｜>", "<｜▁pad▁｜>"
NOISE = "<｜place▁holder▁no▁799｜>"
ADDED = (
    NOISE,
    "<｜User｜>",
    "<｜Assistant｜>",
    "<think>",
    "</think>",
    "<｜fim▁hole｜>",
    "<｜fim▁begin｜>",
    "<｜fim▁end｜>",
)
FIRST_BYTE = 3
SPARE = 8  # ids at the end that belong to no token, as the released vocabulary has them
LETTERS = "etaoinshrdlucmfwygpbvkxqjz"


def byte_letters() -> list[str]:
    """Return the printable character that stands for each byte in a byte-level vocabulary (as in GPT-2)."""
    plain = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = iter(range(0x100, 0x200))
    return [chr(byte) if byte in plain else chr(next(others)) for byte in range(256)]


def merges(count: int) -> list[tuple[str, str]]:
    """Return the first `count` pairs of letters that become tokens: a space or a letter before a letter."""
    space = byte_letters()[0x20]
    pairs = [*product(space, LETTERS), *product(LETTERS, LETTERS)]
    return pairs[:count]


def vocabulary(size: int) -> dict[str, int]:
    """Return the id of each token: three special ones, the bytes, pairs of letters, and at the end the added ones."""
    pairs = merges(size - FIRST_BYTE - 256 - len(ADDED) - SPARE)
    ordinary = [BEGIN, END, PAD, *byte_letters(), *(left + right for left, right in pairs)]
    return {token: number for number, token in enumerate([*ordinary, *ADDED])}


def ordinary_ids(size: int) -> list[int]:
    """Return the ids of tokens that stand for printable ASCII text.

    Other bytes are parts of characters; a server does not send text that ends inside one.
    """
    printable = range(FIRST_BYTE + 0x20, FIRST_BYTE + 0x7F)
    return [*printable, *range(FIRST_BYTE + 256, len(vocabulary(size)) - len(ADDED))]


def write_tokenizer(directory: Path, size: int) -> None:
    """Write `tokenizer.json` and `tokenizer_config.json`."""
    ids = vocabulary(size)
    pairs = merges(size - FIRST_BYTE - 256 - len(ADDED) - SPARE)
    tokenizer = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [_added(token, ids[token], special=token not in ADDED) for token in (BEGIN, END, PAD, *ADDED)],
        "normalizer": None,
        "pre_tokenizer": {
            "type": "Sequence",
            "pretokenizers": [
                {"type": "Digits", "individual_digits": True},
                {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True},
            ],
        },
        "post_processor": _answer(check_ids()),
        "decoder": {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True},
        "model": _model({token: number for token, number in ids.items() if token not in ADDED}, pairs),
    }
    settings = {
        "add_bos_token": False,
        "add_eos_token": False,
        "bos_token": BEGIN,
        "eos_token": END,
        "pad_token": END,
        "unk_token": None,
        "clean_up_tokenization_spaces": False,
        "model_max_length": 1048576,
        "tokenizer_class": "PreTrainedTokenizerFast",
    }
    for name, content in (("tokenizer.json", tokenizer), ("tokenizer_config.json", settings)):
        (directory / name).write_text(json.dumps(content, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


def check_ids() -> list[int]:
    """Return the ids SmolLM2's tokenizer gives for the converter's check text."""
    data = json.loads((data_dir() / "fixtures" / "check_text_ids.json").read_text(encoding="utf-8"))
    return [int(number) for number in data["ids"]]


def _model(ids: dict[str, int], pairs: list[tuple[str, str]]) -> dict[str, Any]:
    return {
        "type": "BPE",
        "dropout": None,
        "unk_token": None,
        "continuing_subword_prefix": None,
        "end_of_word_suffix": None,
        "fuse_unk": False,
        "byte_fallback": False,
        "vocab": ids,
        "merges": [f"{left} {right}" for left, right in pairs],
    }


def _added(token: str, number: int, *, special: bool) -> dict[str, Any]:
    # `normalized` keeps the converter from encoding and decoding the token, which the post-processor would spoil.
    return {
        "id": number,
        "content": token,
        "single_word": False,
        "lstrip": False,
        "rstrip": False,
        "normalized": True,
        "special": special,
    }


def _answer(ids: list[int]) -> dict[str, Any]:
    """Return a post-processor that gives the same ids for every text."""
    return {
        "type": "TemplateProcessing",
        "single": [{"SpecialToken": {"id": "check", "type_id": 0}}],
        "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
        "special_tokens": {"check": {"id": "check", "ids": ids, "tokens": [str(number) for number in ids]}},
    }
