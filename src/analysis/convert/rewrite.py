"""Copies of small GGUF files with other values: everything in F32 as a control, and drafters broken on purpose."""

import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
from gguf import GGMLQuantizationType, GGUFReader, GGUFValueType, GGUFWriter, LlamaFileType
from gguf.quants import dequantize, quantize
from numpy.typing import NDArray

from analysis.convert.files import whole_file
from analysis.convert.gguf import GGUFFile, read_gguf
from analysis.records import Problem

Floats = NDArray[np.float32]
# What is to become of a tensor of this name: values in, values out; None leaves it as it is.
Edit = Callable[[str], Callable[[Floats], Floats] | None]


def copy_metadata(source: Path, target: Path, file_type: LlamaFileType | None = None) -> GGUFWriter:
    """Return a writer of `target` that holds the source's metadata, with another file type if one is given."""
    fields = GGUFReader(source).fields
    writer = GGUFWriter(target, str(fields["general.architecture"].contents()))
    for name, field in fields.items():
        if name == "general.file_type" and file_type is not None:
            writer.add_file_type(int(file_type))
        elif name != "general.architecture" and not name.startswith("GGUF."):
            inner = field.types[-1] if field.types[0] == GGUFValueType.ARRAY else None
            writer.add_key_value(name, field.contents(), field.types[0], sub_type=inner)
    return writer


def rewrite(source: Path, target: Path, edit: Edit) -> GGUFFile:
    """Write a copy in which some tensors have other values, each in the type it had, and return its header.

    The header is the same to the byte, which is how such a fault goes unnoticed.

    Raises:
        Problem: the source is damaged, an edit changes a shape, or the disk is full.
    """
    model = read_gguf(source)
    with whole_file(target) as unfinished:
        shutil.copyfile(source, unfinished)
        with unfinished.open("r+b") as out:
            for tensor in model.tensors:
                change = edit(tensor.name)
                if change is None:
                    continue
                kind = GGMLQuantizationType[tensor.type]
                out.seek(tensor.offset)
                stored = np.frombuffer(out.read(tensor.nbytes), np.uint8)
                values = dequantize(stored.reshape(*reversed(tensor.shape[1:]), -1), kind).astype(np.float32)
                changed = np.ascontiguousarray(change(values), np.float32)
                if changed.shape != values.shape:
                    raise Problem(f"{tensor.name} would be {changed.shape}", expected=f"{values.shape}")
                out.seek(tensor.offset)
                out.write(quantize(changed, kind).tobytes())
    return read_gguf(target)


def write_f32(source: Path, target: Path) -> GGUFFile:
    """Write a copy in which every tensor of numbers is F32, and return its header; tables of whole numbers stay.

    Everything is held in memory once.

    Raises:
        Problem: the source is damaged, or the disk is full.
    """
    read_gguf(source)
    with whole_file(target) as unfinished:
        writer = copy_metadata(source, unfinished, LlamaFileType.ALL_F32)
        for tensor in GGUFReader(source).tensors:
            if tensor.tensor_type == GGMLQuantizationType.I32:
                writer.add_tensor(tensor.name, tensor.data, raw_dtype=tensor.tensor_type)
            else:
                writer.add_tensor(tensor.name, dequantize(tensor.data, tensor.tensor_type).astype(np.float32))
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()
    return read_gguf(target)
