import struct
from pathlib import Path

import numpy as np
import pytest
from gguf import GGUFReader, GGUFValueType, GGUFWriter


@pytest.fixture
def small_gguf(tmp_path) -> Path:
    """A whole GGUF file of two tensors, with a vocabulary of 2000 tokens."""
    path = tmp_path / "small.gguf"
    writer = GGUFWriter(path, "llama")
    writer.add_block_count(1)
    writer.add_context_length(512)
    writer.add_token_list([f"<{index}>" for index in range(2000)])
    writer.add_array("general.languages", ["en", "de"])
    writer.add_tensor("token_embd.weight", np.zeros((2000, 32), np.float32))
    writer.add_tensor("blk.0.attn_norm.weight", np.ones(32, np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


@pytest.fixture
def header():
    """Make the bytes of a GGUF header from its fixed fields and what follows them."""

    def make(rest: bytes = b"", *, version: int = 3, tensors: int = 1, pairs: int = 0) -> bytes:
        return b"GGUF" + struct.pack("<IQQ", version, tensors, pairs) + rest

    return make


@pytest.fixture
def changed_gguf(tmp_path):
    """Write a copy of a small GGUF file with other metadata or tensors.

    `metadata` replaces values (None drops the key), `drop` names tensors to leave out, `tensors` replaces or adds some.
    """

    def change(source: Path, *, architecture="", metadata=None, drop=(), tensors=None) -> Path:
        reader = GGUFReader(source)
        metadata, tensors = dict(metadata or {}), dict(tensors or {})
        found = reader.fields["general.architecture"].contents()
        path = tmp_path / f"changed-{source.name}"
        writer = GGUFWriter(path, architecture or found)
        for name, field in reader.fields.items():
            if name.startswith("GGUF.") or name == "general.architecture":
                continue
            value = metadata.pop(name, field.contents())
            if value is not None:
                kind = field.types[-1] if field.types[0] == GGUFValueType.ARRAY else None
                writer.add_key_value(name, value, field.types[0], sub_type=kind)
        for name, value in metadata.items():
            writer.add_key_value(name, value, GGUFValueType.get_type(value))
        for tensor in reader.tensors:
            if tensor.name not in drop and tensor.name not in tensors:
                writer.add_tensor(tensor.name, tensor.data, raw_dtype=tensor.tensor_type)
        for name, values in tensors.items():
            writer.add_tensor(name, values)
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()
        return path

    return change
