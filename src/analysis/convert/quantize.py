"""Quantizing through the bundled engine, in process: the same bytes as its command-line tool writes."""

import ctypes
import math
import os
import re
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import llama_cpp
import numpy as np
from gguf import GGML_QUANT_SIZES, GGMLQuantizationType, GGUFReader
from numpy.typing import NDArray
from tqdm import tqdm

from analysis.convert.files import whole_file
from analysis.convert.gguf import GGUFFile, Tensor, read_gguf
from analysis.convert.recipes import QuantRecipe, tensor_type
from analysis.records import Problem

Importance = Mapping[str, NDArray[np.float32]]
# Types so coarse that the engine refuses them without the importance of each value.
NEED_IMPORTANCE = ("IQ2_XXS", "IQ2_XS", "IQ2_S", "IQ1_S", "IQ1_M")

ENGINE_VERSION = str(llama_cpp.__version__)
ERROR = 4  # ggml's level of a logged error; the binding has no name for it


def quantize(
    source: Path,
    target: Path,
    recipe: QuantRecipe,
    *,
    importance: Path | None = None,
    threads: int | None = None,
    progress: bool = True,
) -> GGUFFile:
    """Quantize a GGUF file by a recipe and return the header of the result.

    Args:
        source: the file to read; tensors that are quantized already are quantized again.
        target: the file to write; it gets its name only when it is whole.
        recipe: the types.
        importance: a file of `llama-imatrix`, for types that ask for weights.
        threads: by default one a core.
        progress: show a bar over the tensors.

    Raises:
        Problem: the source is damaged, the disk is full, or the engine refuses.
    """
    model = read_gguf(source)
    if target.exists() and target.samefile(source):
        raise Problem(f"{target} is the source", expected="another file to write")
    _check_room(model, recipe, target)
    weights = read_importance(importance) if importance else {}
    if recipe.importance == "equal":
        weights = {**equal_importance(model, recipe), **weights}
    with whole_file(target) as unfinished, _listening(len(model.tensors), target.name, progress=progress) as complaints:
        settings = _Settings(recipe, weights, threads or os.cpu_count() or 1)
        status = llama_cpp.llama_model_quantize(os.fsencode(source), os.fsencode(unfinished), settings.reference)
        if status:
            _explain(complaints, target)
    return read_gguf(target)


def planned_type(tensor: Tensor, recipe: QuantRecipe) -> str:
    """Return the type a recipe names for a tensor, or an empty string; the engine may leave the tensor as it is."""
    found = next((kind for pattern, kind in recipe.types.items() if re.search(pattern, tensor.name)), "")
    return found.upper()


def equal_importance(model: GGUFFile, recipe: QuantRecipe) -> dict[str, NDArray[np.float32]]:
    """Return weights of one for the tensors whose planned type asks for weights."""
    return {
        tensor.name: np.ones(tensor.shape[0] * math.prod(tensor.shape[2:]), np.float32)
        for tensor in model.tensors
        if planned_type(tensor, recipe) in NEED_IMPORTANCE
    }


def read_importance(path: Path) -> dict[str, NDArray[np.float32]]:
    """Return the mean squared activation of each input, by tensor, from a GGUF file of `llama-imatrix`.

    Raises:
        Problem: the file is damaged or holds no such values.
    """
    read_gguf(path)
    stored = {tensor.name: tensor.data for tensor in GGUFReader(path).tensors}
    found = {}
    for name, sums in stored.items():
        if name.endswith(".in_sum2"):
            tensor = name.removesuffix(".in_sum2")
            counts = stored.get(f"{tensor}.counts")
            if counts is None:
                raise Problem(f"{path} has {name} without counts", expected="a file of llama-imatrix")
            rows = sums.reshape(counts.size, -1)
            seen = counts.reshape(-1, 1)
            found[tensor] = np.where(seen > 0, rows / np.maximum(seen, 1), 1).astype(np.float32).ravel()
    if not found:
        raise Problem(f"{path} holds no importance", expected="a GGUF file of llama-imatrix")
    return found


class _Settings:
    """The engine's parameters, and everything they point to, kept alive together."""

    def __init__(self, recipe: QuantRecipe, weights: Importance, threads: int) -> None:
        self.parameters = llama_cpp.llama_model_quantize_default_params()
        self.parameters.nthread = threads
        self.parameters.ftype = _file_type(recipe.base)
        self.parameters.allow_requantize = True
        self._overrides = (llama_cpp.llama_model_tensor_override * (len(recipe.types) + 1))()
        for place, (pattern, kind) in enumerate(recipe.types.items()):
            self._overrides[place].pattern = pattern.lower().encode()  # the command-line tool lowers them, too
            self._overrides[place].type = int(tensor_type(kind))
        self._overrides[-1].pattern = None
        self._overrides[-1].type = llama_cpp.GGML_TYPE_COUNT
        if recipe.types:
            overrides = ctypes.POINTER(llama_cpp.llama_model_tensor_override)
            self.parameters.tt_overrides = ctypes.cast(self._overrides, overrides)
        self._weights = {name: np.ascontiguousarray(values, np.float32) for name, values in weights.items()}
        self._importance = (llama_cpp.llama_model_imatrix_data * (len(weights) + 1))()
        for place, (name, values) in enumerate(self._weights.items()):
            self._importance[place].name = name.encode()
            self._importance[place].data = values.ctypes.data_as(ctypes.POINTER(ctypes.c_float))
            self._importance[place].size = values.size
        if weights:
            entries = ctypes.POINTER(llama_cpp.llama_model_imatrix_data)
            self.parameters.imatrix = ctypes.cast(self._importance, entries)

    @property
    def reference(self) -> object:
        """Return what the engine takes."""
        return ctypes.byref(self.parameters)


def _file_type(base: str) -> int:
    found = getattr(llama_cpp, f"LLAMA_FTYPE_MOSTLY_{base.upper()}", None)
    if not isinstance(found, int):
        raise Problem(f"the engine has no file type {base!r}", expected="Q8_0, Q4_K_M or the like")
    return found


def _check_room(model: GGUFFile, recipe: QuantRecipe, target: Path) -> None:
    """Refuse before anything is written where the disk cannot hold the result."""
    needed = 0
    for tensor in model.tensors:
        kind = planned_type(tensor, recipe) or tensor.type
        block, width = GGML_QUANT_SIZES[GGMLQuantizationType[kind]]
        needed += min(tensor.nbytes, tensor.parameters // block * width)
    folder = next(parent for parent in target.resolve().parents if parent.exists())
    free = shutil.disk_usage(folder).free
    if needed > free:
        raise Problem(
            f"{folder} has {free} bytes free", expected=f"about {needed} for {target.name}", remedy="free some space"
        )


@contextmanager
def _listening(count: int, name: str, *, progress: bool) -> Iterator[list[str]]:
    """Listen to the engine while it quantizes: a bar over its tensors, and what it complains of.

    Afterwards the engine is silent but for errors, as the binding has it by default.
    """
    complaints: list[str] = []
    with tqdm(total=count, desc=f"quantizing {name}", unit="tensor", disable=not progress, delay=2) as shown:
        hear = llama_cpp.llama_log_callback(_hearer(complaints, shown.update))
        llama_cpp.llama_log_set(hear, ctypes.c_void_p(0))
        try:
            yield complaints
        finally:
            llama_cpp.llama_log_set(llama_cpp._logger.llama_log_callback, ctypes.c_void_p(0))


def _hearer(complaints: list[str], advance: Callable[[int], object]) -> Callable[[int, bytes, object], None]:
    def hear(level: int, text: bytes, _: object) -> None:
        line = text.decode(errors="replace").strip()
        if re.match(r"\[ *\d+/ *\d+\]", line):
            advance(1)
        elif level == ERROR and line:
            complaints.append(line)

    return hear


def _explain(complaints: list[str], target: Path) -> None:
    last = re.sub(r"^\w+: ", "", complaints[-1]) if complaints else "no reason was given"
    if "iostream error" in last:
        raise Problem(
            f"{target} could not be written to its end",
            expected="room on the disk",
            remedy="free some space; nothing half is left",
        )
    if "mportance matrix" in " ".join(complaints) or "imatrix" in last:
        raise Problem(
            f"the engine refuses: {last}", expected="importance for this type", remedy="pass a file of llama-imatrix"
        )
    raise Problem(f"the engine refuses: {last}", remedy="choose another recipe or source")
