"""The way round an engine that refuses MXFP4 as input: its values written as F16, which holds all of them exactly."""

from pathlib import Path
from typing import BinaryIO

import numpy as np
from gguf import GGMLQuantizationType, GGUFWriter, LlamaFileType

from analysis.convert.compare import read_rows
from analysis.convert.files import CHUNK, bar, whole_file
from analysis.convert.gguf import GGUFFile, Tensor, read_gguf
from analysis.convert.rewrite import copy_metadata
from analysis.records import Problem

WIDENED = "MXFP4"


def widen(source: Path, target: Path, *, progress: bool = True) -> GGUFFile:
    """Write a copy of a GGUF file in which MXFP4 tensors are F16, and return its header.

    An intermediate in Q8_0 would lose something; F16 loses nothing, and where it would (a scale beyond its range)
    this refuses. Rows are converted some at a time.

    Raises:
        Problem: the source is damaged, a value does not fit into F16, or the disk is full.
    """
    model = read_gguf(source)
    with whole_file(target) as unfinished:
        writer = copy_metadata(source, unfinished, LlamaFileType.MOSTLY_F16)
        for tensor in model.tensors:
            _announce(writer, tensor)
        writer.open_output_file()
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_ti_data_to_file()
        out = writer.fout[0] if writer.fout else None
        if out is None:
            raise Problem(f"{target} could not be opened for writing")
        total = sum(tensor.nbytes for tensor in model.tensors)
        with source.open("rb") as read, bar(total, f"writing {target.name}", progress=progress) as shown:
            _pad(out, writer.data_alignment)
            for tensor in model.tensors:
                _write_tensor(read, tensor, out)
                _pad(out, writer.data_alignment)
                shown.update(tensor.nbytes)
        writer.close()
    return read_gguf(target)


def _announce(writer: GGUFWriter, tensor: Tensor) -> None:
    """Add a tensor's entry; quantized types are announced as bytes, as the gguf package wants it."""
    rows = tuple(reversed(tensor.shape))
    if tensor.type == WIDENED:
        half = np.dtype(np.float16)
        writer.add_tensor_info(tensor.name, rows, half, 2 * tensor.parameters, raw_dtype=GGMLQuantizationType.F16)
        return
    width = tensor.nbytes // (tensor.parameters // tensor.shape[0])
    kind = GGMLQuantizationType[tensor.type]
    writer.add_tensor_info(tensor.name, (*rows[:-1], width), np.dtype(np.uint8), tensor.nbytes, raw_dtype=kind)


def _write_tensor(source: BinaryIO, tensor: Tensor, out: BinaryIO) -> None:
    if tensor.type == WIDENED:
        for values in read_rows(source, tensor):
            with np.errstate(over="ignore"):  # seen by the comparison
                half = values.astype(np.float16)
            if not np.array_equal(half.astype(np.float32), values):
                raise Problem(f"{tensor.name} holds values that F16 cannot", expected="scales within F16's range")
            out.write(half.tobytes())
        return
    source.seek(tensor.offset)
    left = tensor.nbytes
    while left:
        chunk = source.read(min(CHUNK, left))
        out.write(chunk)
        left -= len(chunk)


def _pad(out: BinaryIO, alignment: int) -> None:
    out.write(bytes(-out.tell() % alignment))
