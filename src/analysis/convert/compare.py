"""What a conversion did to a model: sizes and error by group of tensors."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np
from gguf import GGMLQuantizationType
from gguf.quants import dequantize
from numpy.typing import NDArray

from analysis.convert.files import bar
from analysis.convert.gguf import GGUFFile, Tensor
from analysis.convert.summary import group_of
from analysis.records import Problem

SLAB = 16 << 20  # values at a time


@dataclass(frozen=True)
class Change:
    """A group of tensors in two files.

    `rms` is the root of the mean squared difference over that of the values: 0 where no value changed.
    """

    name: str
    tensors: int
    types_before: tuple[str, ...]
    types_after: tuple[str, ...]
    bytes_before: int
    bytes_after: int
    parameters: int
    rms: float

    @property
    def bits_before(self) -> float:
        """Return the stored bits a value before."""
        return 8 * self.bytes_before / self.parameters

    @property
    def bits_after(self) -> float:
        """Return the stored bits a value after."""
        return 8 * self.bytes_after / self.parameters


def compare_models(before: GGUFFile, after: GGUFFile, *, progress: bool = True) -> tuple[Change, ...]:
    """Compare two files of one model, value by value, and return its groups, largest first.

    Raises:
        Problem: the files hold different tensors, or a type that cannot be read back.
    """
    pairs = _paired(before, after)
    errors = _squares(before.path, after.path, pairs, progress=progress)
    groups: dict[str, list[tuple[Tensor, Tensor]]] = {}
    for old, new in pairs:
        groups.setdefault(group_of(old.name), []).append((old, new))
    return tuple(
        sorted((_change(name, members, errors) for name, members in groups.items()), key=lambda g: -g.bytes_before)
    )


def read_rows(source: BinaryIO, tensor: Tensor) -> Iterator[NDArray[np.float32]]:
    """Yield the values of a tensor as float32, some rows at a time.

    Raises:
        Problem: its type cannot be read back.
    """
    rows = tensor.parameters // tensor.shape[0]
    width = tensor.nbytes // rows
    step = max(1, SLAB // tensor.shape[0])
    kind = GGMLQuantizationType[tensor.type]
    for first in range(0, rows, step):
        count = min(step, rows - first)
        source.seek(tensor.offset + first * width)
        raw = np.frombuffer(source.read(count * width), np.uint8).reshape(count, width)
        try:
            yield np.asarray(dequantize(raw, kind) if tensor.type != "I32" else raw.view("<i4"), np.float32)
        except NotImplementedError:
            raise Problem(f"{tensor.name} has the type {tensor.type}", expected="one that can be read back") from None


def _paired(before: GGUFFile, after: GGUFFile) -> list[tuple[Tensor, Tensor]]:
    new = {tensor.name: tensor for tensor in after.tensors}
    if set(new) != {tensor.name for tensor in before.tensors}:
        raise Problem(f"{after.path} and {before.path} hold different tensors", expected="two files of one model")
    pairs = [(tensor, new[tensor.name]) for tensor in before.tensors]
    for old, changed in pairs:
        if old.parameters != changed.parameters or old.shape[0] != changed.shape[0]:  # ones at the end may be dropped
            raise Problem(f"{old.name} is {changed.shape} in {after.path}", expected=f"{old.shape}")
    return pairs


def _squares(
    before: Path, after: Path, pairs: list[tuple[Tensor, Tensor]], *, progress: bool
) -> dict[str, tuple[float, float]]:
    """Return for each tensor the sums of the squared differences and of the squared values."""
    found: dict[str, tuple[float, float]] = {}
    total = sum(old.nbytes for old, _ in pairs)
    with (
        before.open("rb") as old_file,
        after.open("rb") as new_file,
        bar(total, f"comparing {after.name}", progress=progress) as shown,
    ):
        for old, new in pairs:
            difference = size = 0.0
            for left, right in zip(read_rows(old_file, old), read_rows(new_file, new), strict=True):
                difference += float(np.square(left - right, dtype=np.float64).sum())
                size += float(np.square(left, dtype=np.float64).sum())
            found[old.name] = (difference, size)
            shown.update(old.nbytes)
    return found


def _change(name: str, members: list[tuple[Tensor, Tensor]], errors: dict[str, tuple[float, float]]) -> Change:
    difference = sum(errors[old.name][0] for old, _ in members)
    size = sum(errors[old.name][1] for old, _ in members)
    return Change(
        name=name,
        tensors=len(members),
        types_before=tuple(sorted({old.type for old, _ in members})),
        types_after=tuple(sorted({new.type for _, new in members})),
        bytes_before=sum(old.nbytes for old, _ in members),
        bytes_after=sum(new.nbytes for _, new in members),
        parameters=sum(old.parameters for old, _ in members),
        rms=math.sqrt(difference / size) if size else 0.0,
    )
