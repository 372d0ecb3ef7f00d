import struct
from pathlib import Path

import numpy as np
import pytest
from gguf import GGUFWriter


@pytest.fixture
def cache(tmp_path, monkeypatch) -> Path:
    """An empty cache of this test's own."""
    monkeypatch.setenv("SPECBOOK_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


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
