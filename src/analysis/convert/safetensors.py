"""What a safetensors file or checkpoint says of itself: headers and index, without the tensors' values.

Layout: <https://github.com/huggingface/safetensors#format>. The header is one JSON object whose length comes first.
"""

import json
import math
import struct
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from analysis.records import Problem

MAX_HEADER = 100_000_000  # the format's own limit, in bytes
BITS = {
    "BOOL": 8, "U8": 8, "I8": 8, "F8_E4M3": 8, "F8_E5M2": 8, "F8_E8M0": 8, "U16": 16, "I16": 16, "F16": 16, "BF16": 16,
    "U32": 32, "I32": 32, "F32": 32, "U64": 64, "I64": 64, "F64": 64,
}  # fmt: skip
INDEX = "model.safetensors.index.json"
SINGLE = "model.safetensors"


@dataclass(frozen=True)
class StoredTensor:
    """One tensor of a file. `start` and `end` are bytes from the start of the file; `shape` is outermost first."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    start: int
    end: int

    @property
    def nbytes(self) -> int:
        """Return the bytes of the values."""
        return self.end - self.start


@dataclass(frozen=True)
class SafetensorsFile:
    """The header of a safetensors file."""

    path: Path
    size: int
    tensors: tuple[StoredTensor, ...] = field(repr=False)


def read_safetensors(path: str | Path) -> SafetensorsFile:
    """Read the header of a safetensors file.

    Raises:
        Problem: the file is missing, too short for its header or its tensors, or its header is damaged.
    """
    path = Path(path)
    try:
        with path.open("rb") as source:
            size = source.seek(0, 2)
            source.seek(0)
            length = _header_length(source.read(8), size, path)
            return parse_safetensors(source.read(length), size, path)
    except OSError as error:
        raise Problem(f"{path} cannot be read: {error.strerror}", expected="a safetensors file") from None


def parse_safetensors(header: bytes, size: int, path: Path) -> SafetensorsFile:
    """Read a header's JSON. `size` is the size of the whole file; `path` is for messages.

    Raises:
        Problem: as `read_safetensors`.
    """
    try:
        data = json.loads(header.decode("utf-8"), parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise _damaged(path, f"the header is not JSON ({_first_line(error)})") from None
    if not isinstance(data, dict):
        raise _damaged(path, "the header is not a JSON object")
    base = 8 + len(header)
    tensors = sorted(
        (_read_tensor(name, entry, base, path) for name, entry in data.items() if name != "__metadata__"),
        key=lambda tensor: (tensor.start, tensor.end),
    )
    if not tensors:
        raise Problem(f"{path} holds no tensors", expected="at least one", remedy="fetch it again")
    end = base
    for tensor in tensors:
        if tensor.start != end:
            raise _damaged(path, f"tensor {tensor.name!r} begins at byte {tensor.start}, not at {end}")
        end = tensor.end
    if end != size:
        raise Problem(
            f"{path} has {size} bytes", expected=f"{end}, the end of its last tensor", remedy="fetch it again"
        )
    return SafetensorsFile(path=path, size=size, tensors=tuple(tensors))


def read_weight_map(directory: Path) -> dict[str, str]:
    """Return which file holds each tensor of a checkpoint, from its index alone.

    A checkpoint of one file has no index; then the file's header is read.

    Raises:
        Problem: there is neither index nor file, or the index is damaged.
    """
    index = directory / INDEX
    if not index.is_file():
        if (directory / SINGLE).is_file():
            return {tensor.name: SINGLE for tensor in read_safetensors(directory / SINGLE).tensors}
        raise Problem(f"no {INDEX} and no {SINGLE} in {directory}", expected="a checkpoint's directory")
    try:
        weights = json.loads(index.read_text(encoding="utf-8"))["weight_map"]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        raise Problem(f"{index} has no readable weight_map", remedy="fetch it again") from None
    if not isinstance(weights, dict) or not weights or not all(map(_is_file_name, weights.values())):
        raise Problem(
            f"{index} has no readable weight_map", expected="names of files beside it", remedy="fetch it again"
        )
    return weights


def shards_with(weights: dict[str, str], prefixes: Iterable[str]) -> list[str]:
    """Return the files that hold tensors whose names begin with one of the prefixes, in order."""
    wanted = tuple(prefixes)
    return sorted({file for tensor, file in weights.items() if tensor.startswith(wanted)})


def _is_file_name(value: Any) -> bool:
    return isinstance(value, str) and bool(value) and Path(value).name == value


def _header_length(start: bytes, size: int, path: Path) -> int:
    if len(start) < 8:
        raise Problem(f"{path} has {size} bytes", expected="a safetensors file", remedy="fetch it again")
    length: int = struct.unpack("<Q", start)[0]
    if length > min(size - 8, MAX_HEADER):
        raise Problem(
            f"{path} states a header of {length} bytes and has {size} in all",
            expected=f"a header of at most {min(size - 8, MAX_HEADER)}",
            remedy="this is no safetensors file, or it is truncated: fetch it again",
        )
    return length


def _read_tensor(name: str, entry: Any, base: int, path: Path) -> StoredTensor:
    try:
        dtype, shape, (start, end) = entry["dtype"], entry["shape"], entry["data_offsets"]
        sound = dtype in BITS and all(_is_count(number) for number in (*shape, start, end))
    except (TypeError, KeyError, ValueError):
        sound = False
    if not sound:
        raise _damaged(path, f"the entry of tensor {name!r} is not readable")
    if (end - start) * 8 != math.prod(shape) * BITS[dtype]:
        raise _damaged(path, f"tensor {name!r} of {shape} {dtype} cannot have {end - start} bytes")
    return StoredTensor(name=name, dtype=dtype, shape=tuple(shape), start=base + start, end=base + end)


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 63


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} in the header")


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or ["no message"])[0]


def _damaged(path: Path, saw: str) -> Problem:
    return Problem(f"{path}: {saw}", expected="a whole safetensors header", remedy="fetch it again")


class StoredTensors(Mapping[str, tuple[str, tuple[int, ...], bytes]]):
    """The tensors of a checkpoint's files by name: dtype, shape and bytes, which are read when they are asked for."""

    def __init__(self, files: Iterable[Path]) -> None:
        """Read the headers.

        Raises:
            Problem: a file is missing or damaged.
        """
        self._where = {tensor.name: (file, tensor) for file in files for tensor in read_safetensors(file).tensors}

    def __getitem__(self, name: str) -> tuple[str, tuple[int, ...], bytes]:
        """Return dtype, shape and bytes of a tensor."""
        file, tensor = self._where[name]
        with file.open("rb") as source:
            source.seek(tensor.start)
            return tensor.dtype, tensor.shape, source.read(tensor.nbytes)

    def __iter__(self) -> Iterator[str]:
        """Iterate over the names."""
        return iter(self._where)

    def __len__(self) -> int:
        """Return how many tensors there are."""
        return len(self._where)

    def header(self, name: str) -> StoredTensor:
        """Return a tensor's entry without its bytes."""
        return self._where[name][1]
