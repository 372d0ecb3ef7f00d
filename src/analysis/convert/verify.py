"""Is a converted file its checkpoint? Tensor by tensor against the source, bit by bit."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from gguf import GGMLQuantizationType

from analysis.convert.checkpoint import Plan
from analysis.convert.dsv4.pack import converted_tensors
from analysis.convert.files import bar
from analysis.convert.gguf import GGUFFile
from analysis.convert.safetensors import StoredTensors
from analysis.records import Problem


@dataclass(frozen=True)
class Verified:
    """How many tensors and bytes of a converted file are, bit by bit, what the source gives."""

    tensors: int
    nbytes: int


def verify_conversion(plan: Plan, file: GGUFFile, *, progress: bool = True) -> Verified:
    """Compare every tensor of a converted DeepSeek-V4 file with the checkpoint.

    Routed experts are only rearranged and BF16 and F32 only copied, so they hold the same values; 8-bit matrices are
    rounded to Q8_0 by the same rule. One tensor is held in memory at a time.

    Raises:
        Problem: a tensor differs, is missing, or is one too many; or the layout of this architecture is not known.
    """
    if plan.tensors is None or plan.part == "mtp":
        raise Problem(f"{plan.checkpoint.architecture or 'this architecture'} cannot be compared tensor by tensor")
    left = {tensor.name: tensor for tensor in file.tensors}
    stored = StoredTensors(plan.checkpoint.path / name for name in plan.files)
    count = nbytes = 0
    with (
        bar(plan.nbytes, f"verifying {Path(file.path).name}", progress=progress) as shown,
        file.path.open("rb") as source,
    ):
        for name, values, kind in converted_tensors(stored, drafter=plan.part == "drafter"):
            tensor = left.pop(name, None)
            if tensor is None:
                raise Problem(f"{file.path} lacks {name}", expected="every tensor of the checkpoint")
            source.seek(tensor.offset)
            if tensor.type != GGMLQuantizationType(kind).name or source.read(tensor.nbytes) != _bytes(values):
                raise Problem(f"{name} of {file.path} is not the checkpoint's", remedy="convert it again")
            count, nbytes = count + 1, nbytes + tensor.nbytes
            shown.update(tensor.nbytes)
    if left:
        raise Problem(f"{file.path} has tensors the checkpoint has not: {', '.join(sorted(left)[:3])}")
    return Verified(count, nbytes)


def _bytes(values: np.ndarray) -> bytes:
    return np.ascontiguousarray(values).tobytes()
