"""Drafters that are broken in the ways seen in public, made from a sound one, so that their signs can be learnt."""

import hashlib
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np

from analysis.convert.gguf import GGUFFile, read_gguf
from analysis.convert.rewrite import Floats, rewrite
from analysis.convert.rotary import Direction, rotary_order
from analysis.records import Problem

_ROTATED = re.compile(r"^blk\.\d+\.attn_(q|k|q_norm|k_norm)\.weight$")


def permute_rotary(source: Path, target: Path, direction: Direction) -> GGUFFile:
    """Write a drafter whose heads are ordered for the other rotary style, and return its header.

    The engine rotates dimension i with i + d/2 (halves, NeoX). A converter that mistakes the style of its source
    reorders each head: `to pairs` puts the two of a pair side by side, `to halves` does the inverse. Queries and keys
    are reordered alike, with their norms, so that without rotation nothing would change.

    Raises:
        Problem: the source is no drafter with separate queries and keys, or the disk is full.
    """
    header = read_gguf(source)
    width = header.number("{arch}.attention.key_length")
    names = [tensor.name for tensor in header.tensors if _ROTATED.match(tensor.name)]
    if not width or not names:
        raise Problem(f"{source} has no separate queries and keys", expected="a drafter with attn_q and attn_k")
    order = rotary_order(width, direction)

    def reorder(values: Floats) -> Floats:
        heads = values.reshape(-1, width, *values.shape[1:])
        return heads[:, order].reshape(values.shape)

    return rewrite(source, target, lambda name: reorder if name in names else None)


def untrained(source: Path, target: Path, seed: int = 1) -> GGUFFile:
    """Write a drafter of the same shape whose matrices are noise of the same spread, and return its header.

    Raises:
        Problem: the source is damaged, or the disk is full.
    """

    def noise_for(name: str) -> Callable[[Floats], Floats] | None:
        def noise(values: Floats) -> Floats:
            digest = hashlib.sha256(f"{seed}/{name}".encode()).digest()
            generator = np.random.default_rng(int.from_bytes(digest[:8], "big"))
            return generator.normal(0, float(values.std()), values.shape).astype(np.float32)

        return None if "norm" in name or name.endswith(".bias") else noise

    return rewrite(source, target, noise_for)
