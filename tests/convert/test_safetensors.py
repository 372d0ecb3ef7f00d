"""What a checkpoint says of itself, and every way in which it can lie."""

import contextlib
import json
import struct
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors import safe_open
from safetensors.numpy import save_file

from analysis.convert.safetensors import (
    parse_safetensors,
    read_safetensors,
    read_weight_map,
    shards_with,
)
from analysis.records import Problem


@pytest.fixture
def file(tmp_path) -> Path:
    path = tmp_path / "model.safetensors"
    save_file({"a.weight": np.ones((3, 4), np.float32), "b.bias": np.zeros(5, np.int64)}, path)
    return path


def test_the_header_reads_as_the_library_reads_it(file):
    ours = {tensor.name: tensor for tensor in read_safetensors(file).tensors}
    with safe_open(file, "numpy") as theirs:
        assert set(ours) == set(theirs.keys())
        for name, tensor in ours.items():
            stored = theirs.get_slice(name)
            assert (list(tensor.shape), tensor.dtype) == (stored.get_shape(), stored.get_dtype())
            raw = file.read_bytes()[tensor.start : tensor.end]
            assert raw == theirs.get_tensor(name).tobytes()


def test_every_truncation_is_refused(file):
    content = file.read_bytes()
    for length in range(len(content)):
        file.write_bytes(content[:length])
        with pytest.raises(Problem):
            read_safetensors(file)


def write(path: Path, header: object, data: bytes = b"") -> Path:
    raw = header if isinstance(header, bytes) else json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(raw)) + raw + data)
    return path


ENTRY = {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}


@pytest.mark.parametrize(
    ("header", "saw"),
    [
        ({}, "holds no tensors"),
        ([], "not a JSON object"),
        (b"{", "not JSON"),
        (b"\xff\xfe", "not JSON"),
        (b"[" * 100_000, "not JSON"),
        (b'{"t": NaN}', "not JSON"),
        ({"t": 3}, "entry of tensor 't'"),
        ({"t": ENTRY | {"dtype": "F3"}}, "entry of tensor 't'"),
        ({"t": ENTRY | {"shape": [-2]}}, "entry of tensor 't'"),
        ({"t": ENTRY | {"shape": [True, 2]}}, "entry of tensor 't'"),
        ({"t": ENTRY | {"data_offsets": [8]}}, "entry of tensor 't'"),
        ({"t": ENTRY | {"shape": [1 << 62, 1 << 62]}}, "cannot have 8 bytes"),
        ({"t": ENTRY | {"data_offsets": [8, 0]}}, "cannot have -8 bytes"),
        ({"t": ENTRY | {"data_offsets": [4, 12]}}, "begins at byte"),
        ({"t": ENTRY, "u": ENTRY}, "begins at byte"),
        ({"t": {"dtype": "F32", "shape": [9], "data_offsets": [0, 36]}}, "the end of its last tensor"),
    ],
)
def test_a_header_that_lies(tmp_path, header, saw):
    with pytest.raises(Problem, match=saw):
        read_safetensors(write(tmp_path / "m.safetensors", header, bytes(8)))


def test_something_else(tmp_path):
    path = tmp_path / "m.safetensors"
    path.write_text("This is not a checkpoint.\n")
    with pytest.raises(Problem, match="no safetensors file, or it is truncated"):
        read_safetensors(path)
    with pytest.raises(Problem, match="cannot be read"):
        read_safetensors(tmp_path / "absent")


@settings(max_examples=300)
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.floats(),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(st.sampled_from(["dtype", "shape", "data_offsets", "t"]), inner, max_size=3)
        ),
        max_leaves=12,
    )
    | st.binary(max_size=60)
)
def test_random_headers_are_read_or_refused(data):
    raw = data if isinstance(data, bytes) else json.dumps(data).encode()
    with contextlib.suppress(Problem):
        parse_safetensors(raw, len(raw) + 16, Path("m.safetensors"))


def test_the_weight_map(tmp_path, file):
    assert read_weight_map(tmp_path) == {"a.weight": file.name, "b.bias": file.name}
    index = {
        "weight_map": {"layers.0.x": "m-1.safetensors", "mtp.0.x": "m-3.safetensors", "mtp.2.x": "m-2.safetensors"}
    }
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index))
    weights = read_weight_map(tmp_path)
    assert shards_with(weights, ["mtp."]) == ["m-2.safetensors", "m-3.safetensors"]


@pytest.mark.parametrize(
    "index", ["{", "{}", '{"weight_map": {}}', '{"weight_map": {"a": "../b"}}', '{"weight_map": {"a": 1}}']
)
def test_a_damaged_index(tmp_path, index):
    (tmp_path / "model.safetensors.index.json").write_text(index)
    with pytest.raises(Problem, match="no readable weight_map"):
        read_weight_map(tmp_path)


def test_no_checkpoint(tmp_path):
    with pytest.raises(Problem, match="expected a checkpoint's directory"):
        read_weight_map(tmp_path)
