"""Writing a synthetic DeepSeek-V4 checkpoint: same names, dtypes, scales and shards, made-up values.

In the successor mode every token has one successor. The target's output layer knows all of them, so greedy output
walks a long cycle; the drafter's Markov head knows the share `agree`, so acceptance follows from a number.
"""

import hashlib
import json
import math
import struct
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from analysis.convert.dsv4.codec import to_bf16
from analysis.convert.dsv4.layout import FP4_BLOCK, FP8_BLOCK, StoredSpec, shards
from analysis.convert.dsv4.shape import TINY, Shape, config
from analysis.convert.dsv4.tokenizer import NOISE, ordinary_ids, vocabulary, write_tokenizer
from analysis.convert.files import bar, whole_file
from analysis.convert.safetensors import INDEX
from analysis.records import Problem

Floats = NDArray[np.float64]
Makers = dict[str, Callable[[], bytes]]

# Codes of 8-bit values (sign, 4 bits of exponent, 3 of mantissa) between 0.25 and 1.875; their standard deviation is
# 0.97, that of uniform 4-bit codes 2.93.
FP8_CODES = np.array([s << 7 | e << 3 | m for s in (0, 1) for e in (5, 6, 7) for m in range(8)], np.uint8)
FP4_SPREAD = 2.93


@dataclass(frozen=True)
class Recipe:
    """What the values of a synthetic checkpoint are.

    Attributes:
        seed: equal seeds give equal files.
        mode: `successor`, or `random` for weights without any order.
        agree: share of tokens whose successor the drafter knows.
        margin: how far the successor stands out in the target's logits. At 1 far more than rounding can move; near 0.1
            little more than the rest, so that a change of rounding changes some greedy outputs.
    """

    seed: int = 1
    mode: Literal["successor", "random"] = "successor"
    agree: float = 0.8
    margin: float = 1.0


def write_checkpoint(
    directory: Path, shape: Shape = TINY, recipe: Recipe | None = None, *, progress: bool = True
) -> list[int]:
    """Write a checkpoint into a new or empty directory and return the successor of each token id.

    Tensors are made and written one at a time, so that a large checkpoint needs little memory.

    Raises:
        Problem: the directory holds something already, or the disk is full.
    """
    recipe = recipe or Recipe()
    if directory.is_dir() and any(directory.iterdir()):
        raise Problem(f"{directory} is not empty", expected="a new directory", remedy="remove it or name another")
    directory.mkdir(parents=True, exist_ok=True)
    makers = _hash_routing(shape, recipe) | _successor_tensors(shape, recipe)
    successors = successor_table(shape, recipe)
    files = shards(shape)
    weights: dict[str, str] = {}
    total = sum(tensor.nbytes for file in files for tensor in file)
    with bar(total, f"writing {directory.name}", progress=progress) as shown:
        for number, tensors in enumerate(files, 1):
            name = f"model-{number:05d}-of-{len(files):05d}.safetensors"
            with whole_file(directory / name) as unfinished:
                _write_shard(unfinished, tensors, recipe.seed, makers, shown.update)
            weights |= {tensor.name: name for tensor in tensors}
    write_tokenizer(directory, shape.vocabulary)
    settings = config(shape, noise_token=vocabulary(shape.vocabulary)[NOISE])
    _write_json(directory / "config.json", settings)
    _write_json(directory / "fixture.json", {**asdict(recipe), "successors": successors})
    _write_json(directory / INDEX, {"metadata": {"total_size": total}, "weight_map": weights})
    return successors


def successor_table(shape: Shape, recipe: Recipe) -> list[int]:
    """Return the successor of each token id: one cycle through all printable tokens, into which the others lead."""
    generator = _generator(recipe.seed, "successors")
    ordinary = np.array(ordinary_ids(shape.vocabulary))
    order = generator.permutation(ordinary)
    table = generator.choice(ordinary, shape.vocabulary)
    table[order] = np.roll(order, -1)
    return [int(token) for token in table]


def drafter_table(shape: Shape, recipe: Recipe) -> list[int]:
    """Return the successors the drafter believes in: right for the share `agree` of the tokens, else another."""
    right = successor_table(shape, recipe)
    generator = _generator(recipe.seed, "agreement")
    ordinary = np.array(ordinary_ids(shape.vocabulary))
    wrong = generator.permutation(ordinary)[: round((1 - recipe.agree) * len(ordinary))]
    table = list(right)
    for token in wrong:
        others = ordinary[ordinary != right[token]]
        table[token] = int(generator.choice(others))
    return table


def _hash_routing(shape: Shape, recipe: Recipe) -> Makers:
    """Return makers of the tables that send each token to fixed, different experts."""

    def table(name: str) -> bytes:
        keys = _generator(recipe.seed, name).random_sample((shape.vocabulary, shape.experts))
        return keys.argsort(axis=1)[:, : shape.experts_used].astype("<i8").tobytes()

    names = [f"layers.{layer}.ffn.gate.tid2eid" for layer in range(shape.hash_layers)]
    return {name: partial(table, name) for name in names}


def _successor_tensors(shape: Shape, recipe: Recipe) -> Makers:
    """Return makers of the tensors that carry the successor table."""
    if recipe.mode == "random":
        return {}
    names = ["embed.weight", "head.weight"]
    names += [f"mtp.{shape.drafter_blocks - 1}.markov_head.markov_w{number}.weight" for number in (1, 2)]
    known = ordinary_ids(shape.vocabulary)
    width = math.sqrt(shape.hidden)

    def noise(number: int, columns: int) -> Floats:
        return _generator(recipe.seed, names[number]).standard_normal((shape.vocabulary, columns))

    def embedding() -> bytes:
        return to_bf16(2 * noise(0, shape.hidden))  # twice, so that it outweighs what the layers add

    def head() -> bytes:
        rows = noise(1, shape.hidden) / width
        rows[np.array(successor_table(shape, recipe))[known]] += (
            2 * recipe.margin * noise(0, shape.hidden)[known] / width
        )
        return to_bf16(rows)

    def markov_in() -> bytes:
        return to_bf16(noise(2, shape.markov_rank))

    def markov_out() -> bytes:
        rows = 0.1 * noise(3, shape.markov_rank)
        np.add.at(rows, np.array(drafter_table(shape, recipe))[known], noise(2, shape.markov_rank)[known])
        return to_bf16(rows)

    return dict(zip(names, (embedding, head, markov_in, markov_out), strict=True))


def _write_shard(
    path: Path,
    tensors: tuple[StoredSpec, ...],
    seed: int,
    makers: Makers,
    written: Callable[[int], object],
) -> None:
    header: dict[str, object] = {"__metadata__": {"format": "pt"}}
    end = 0
    for tensor in tensors:
        header[tensor.name] = {
            "dtype": tensor.dtype,
            "shape": list(tensor.shape),
            "data_offsets": [end, end + tensor.nbytes],
        }
        end += tensor.nbytes
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)  # the format asks for data aligned to eight bytes
    with path.open("wb") as out:
        out.write(struct.pack("<Q", len(text)) + text)
        for tensor in tensors:
            out.write(_values(tensor, seed, makers))
            written(tensor.nbytes)


def _values(tensor: StoredSpec, seed: int, makers: Makers) -> bytes:
    if tensor.name in makers:
        return makers[tensor.name]()
    generator = _generator(seed, tensor.name)
    count = math.prod(tensor.shape)
    match tensor.dtype:
        case "I8":
            return bytes(generator.bytes(count))
        case "F8_E4M3":
            return FP8_CODES[np.frombuffer(generator.bytes(count), np.uint8) % len(FP8_CODES)].tobytes()
        case "F8_E8M0":
            return _scales(tensor, generator)
        case "F32":
            return _floats(tensor, generator).astype("<f4").tobytes()
        case _:
            return to_bf16(_floats(tensor, generator))


def _scales(tensor: StoredSpec, generator: np.random.RandomState) -> bytes:
    """Return power-of-two scales that vary from block to block around 1 / sqrt(inputs), so that a mix-up shows."""
    if ".experts." in tensor.name:
        wanted = 1 / math.sqrt(tensor.shape[1] * FP4_BLOCK) / FP4_SPREAD
    else:
        wanted = 1 / math.sqrt(tensor.shape[1] * FP8_BLOCK)
    exponent = 127 + round(math.log2(wanted))
    return (exponent - generator.randint(0, 2, tensor.shape)).astype(np.uint8).tobytes()


def _floats(tensor: StoredSpec, generator: np.random.RandomState) -> Floats:
    values = generator.standard_normal(tensor.shape)
    name = tensor.name
    if name.endswith("_scale"):
        return np.full(tensor.shape, 0.5)
    if name.endswith(("norm.weight",)):
        return 1 + 0.1 * values
    if name.endswith(("gate.bias", "_base", "confidence_head.proj.weight")):
        return 0.1 * values
    if len(tensor.shape) == 2 and not name.endswith(".ape"):
        return values / math.sqrt(tensor.shape[1])
    return values


def _generator(seed: int, name: str) -> np.random.RandomState:
    """Return a generator of a tensor's own; RandomState gives the same numbers under every version of numpy."""
    digest = hashlib.sha256(f"{seed}/{name}".encode()).digest()
    return np.random.RandomState(np.frombuffer(digest[:16], "<u4"))


def _write_json(path: Path, content: object) -> None:
    with whole_file(path) as unfinished:
        unfinished.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
