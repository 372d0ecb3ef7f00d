"""Damaged GGUF and safetensors headers: each is read or refused in one line, within bounded memory.

A header is cut, has bytes flipped, numbers replaced by extreme ones, or parts doubled. The address space is limited
while this runs, so that an allocation a header talks the reader into ends it.
"""

import argparse
import json
import random
import resource
import struct
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import psutil
from gguf import GGUFWriter
from safetensors.numpy import save

from analysis.convert.gguf import parse_gguf
from analysis.convert.safetensors import MAX_HEADER, parse_safetensors
from analysis.records import Problem

INPUTS = 100_000
HEADROOM = 256 << 20  # bytes of address space beyond what the process has at the start
EXTREME = (0, 1, 31, 255, 1 << 16, (1 << 31) - 1, 1 << 32, (1 << 62) + 1, 1 << 63, (1 << 64) - 1)
NAMES = Path("fuzzed")


def measure(inputs: int = INPUTS, seed: int = 1) -> list[dict[str, str]]:
    """Feed both readers half of the inputs each and say what came of them."""
    space = psutil.Process().memory_info().vms + HEADROOM
    limits = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (space, limits[1]))
    try:
        return [
            _row("GGUF", inputs // 2, _fuzz(read_gguf_bytes, gguf_seed(), inputs // 2, seed)),
            _row("safetensors", inputs // 2, _fuzz(read_safetensors_bytes, save(_tensors()), inputs // 2, seed)),
        ]
    finally:
        resource.setrlimit(resource.RLIMIT_AS, limits)


def read_gguf_bytes(content: bytes) -> None:
    """Read a whole GGUF file from bytes."""
    file = parse_gguf(content, NAMES)
    assert all(tensor.offset + tensor.nbytes <= len(content) for tensor in file.tensors)


def read_safetensors_bytes(content: bytes) -> None:
    """Read a whole safetensors file from bytes, as `read_safetensors` does from a path."""
    length = struct.unpack("<Q", content[:8])[0] if len(content) >= 8 else MAX_HEADER
    if length > len(content) - 8:
        raise Problem("the header is longer than the file")
    file = parse_safetensors(content[8 : 8 + length], len(content), NAMES)
    assert all(8 + length <= tensor.start <= tensor.end <= len(content) for tensor in file.tensors)


def gguf_seed() -> bytes:
    """Return a small whole GGUF file with every kind of metadata."""
    with tempfile.TemporaryDirectory() as folder:
        writer = GGUFWriter(Path(folder) / "seed.gguf", "llama")
        writer.add_array("tokenizer.ggml.tokens", ["a", "bc", "déf"])
        writer.add_array("tokenizer.ggml.scores", [0.5, 1.5, 2.5])
        writer.add_bool("tokenizer.ggml.add_bos_token", True)
        writer.add_float64("general.x", 1.25)
        for name, tensor in _tensors().items():
            writer.add_tensor(name, tensor)
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()
        return (Path(folder) / "seed.gguf").read_bytes()


def _tensors() -> dict[str, np.ndarray]:
    return {"token_embd.weight": np.zeros((3, 32), np.float32), "output_norm.weight": np.ones(32, np.float16)}


def _fuzz(read: Callable[[bytes], None], seed: bytes, count: int, number: int) -> Counter[str]:
    generator = random.Random(number)
    outcome: Counter[str] = Counter()
    for _ in range(count):
        content = changed(seed, generator)
        started = time.perf_counter()
        try:
            read(content)
            outcome["read"] += 1
        except Problem as problem:
            outcome["refused" if "\n" not in str(problem) else "refused in more than one line"] += 1
        outcome["slowest, µs"] = max(outcome["slowest, µs"], int(1e6 * (time.perf_counter() - started)))
    return outcome


def changed(content: bytes, generator: random.Random) -> bytes:
    """Return content with one to four changes, mostly in the header."""
    data = bytearray(content)
    for _ in range(generator.randint(1, 4)):
        if not data:
            break
        place = generator.randrange(min(len(data), 700))
        match generator.randrange(6):
            case 0:
                data[place] = generator.randrange(256)
            case 1:
                number = generator.choice(EXTREME)
                data[place : place + 8] = struct.pack("<Q", number)
            case 2:
                data[place : place + 4] = struct.pack("<I", generator.choice(EXTREME) & 0xFFFFFFFF)
            case 3:
                del data[place:]
            case 4:
                data[place:place] = data[place : place + generator.randint(1, 64)]
            case 5:
                data[place : place + 1] = json.dumps(generator.choice(EXTREME)).encode()
    return bytes(data)


def _row(what: str, total: int, outcome: Counter[str]) -> dict[str, str]:
    slowest = outcome["slowest, µs"] / 1000
    return {
        "quantity": f"damaged {what} headers read, or refused in one line",
        "measured": f"{outcome['read'] + outcome['refused']:,} of {total:,}",
        "target": "all",
        "note": f"{outcome['refused']:,} refused; slowest {slowest:.1f} ms; {HEADROOM >> 20} MiB of memory at most",
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--inputs", type=int, default=INPUTS)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    for row in measure(options.inputs, options.seed):
        print(f"{row['quantity']}: {row['measured']} ({row['note']})")
