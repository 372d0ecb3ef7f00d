"""One drafter in three forms: a checkpoint, an F16 file and a Q8_0 file. Each is made from another and compared.

A directory holds `hf/`, the checkpoint; `target/`, what the converter asks of the target; `f16.gguf`, which llama.cpp's
converter makes of them; and `q8_0.gguf`, which the engine's quantizer makes of that.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import gguf

from analysis.convert.converter import Converter, run_converter
from analysis.convert.quantize import quantize
from analysis.convert.recipes import load_recipe
from analysis.drafter.description import save_target_description
from analysis.drafter.export import checkpoint_of_gguf, load_checkpoint, save_checkpoint, whole_gguf
from analysis.records import Problem


@dataclass(frozen=True)
class Forms:
    """The two files of a drafter, and how many tensors were found equal in them and in the checkpoint."""

    f16: Path
    q8_0: Path
    tensors: int


def unpack(drafter: Path, target: Path, directory: Path) -> None:
    """Write the checkpoint that a drafter's GGUF file is an image of, and what the converter asks of the target.

    Args:
        drafter: an F16 or Q8_0 file.
        target: the target's GGUF file.
        directory: gets `hf/` and `target/`.

    Raises:
        Problem: a file is missing or damaged, or the first holds no DSpark drafter.
    """
    weights, shape = checkpoint_of_gguf(drafter)
    save_target_description(target, directory / "target")
    save_checkpoint(directory / "hf", weights, shape)


def make_forms(directory: Path, converter: Converter, *, progress: bool = True) -> Forms:
    """Make both files from the checkpoint in a directory, and prove that all three hold the same numbers.

    Raises:
        Problem: there is no checkpoint, the converter fails, or a number differs.
    """
    weights, _ = load_checkpoint(directory / "hf")
    found = Forms(directory / "f16.gguf", directory / "q8_0.gguf", len(weights))
    flags = ("--target-model-dir", str(directory / "target"), "--outtype", "f16")
    run_converter(converter, directory / "hf", found.f16, flags, tensors=len(weights), progress=progress)
    quantize(found.f16, found.q8_0, load_recipe("q8_0-plain"), progress=progress)
    for file in (found.f16, found.q8_0):
        written, _ = checkpoint_of_gguf(file)
        for name, values in weights.items():
            if name not in written or not (written[name] == values).all():
                raise Problem(f"{name} in {file} is not the checkpoint's", expected="weights on the grid of `snap`")
    return found


def require_equal_tensors(file: Path, other: Path) -> int:
    """Compare two GGUF files tensor by tensor and byte by byte; return the number of tensors.

    Their metadata may differ: a converter names its directory there.

    Raises:
        Problem: a tensor differs in name, type, shape or bytes.
    """
    mine, theirs = dict(_tensors(file)), dict(_tensors(other))
    differing = sorted(name for name in mine.keys() | theirs.keys() if mine.get(name) != theirs.get(name))
    if differing:
        raise Problem(f"{len(differing)} tensors of {file} are not those of {other}, first {differing[0]}")
    return len(mine)


def _tensors(file: Path) -> Iterator[tuple[str, tuple[str, tuple[int, ...], bytes]]]:
    for tensor in whole_gguf(file).tensors:
        kind = gguf.GGMLQuantizationType(tensor.tensor_type).name
        yield tensor.name, (kind, tuple(int(n) for n in tensor.shape), tensor.data.tobytes())
