"""What a GGUF file says of itself, and every way in which it can lie."""

import struct
import tracemalloc
from pathlib import Path

import pytest
from gguf import GGUFReader
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis.convert.gguf import LongArray, parse_gguf, read_gguf
from analysis.records import Problem


def test_a_small_file(small_gguf):
    file = read_gguf(small_gguf)
    assert (file.version, file.architecture, file.context_length, file.block_count) == (3, "llama", 512, 1)
    assert file.vocabulary_size == 2000
    assert file.metadata["general.languages"] == ("en", "de")
    assert [(t.name, t.shape, t.type, t.nbytes) for t in file.tensors] == [
        ("token_embd.weight", (32, 2000), "F32", 256000),
        ("blk.0.attn_norm.weight", (32,), "F32", 128),
    ]
    assert file.parameters == 64032
    assert file.bytes_by_type == {"F32": 256128}
    assert not file.has_chat_template
    assert file.size == small_gguf.stat().st_size


def test_long_arrays_are_summarised(small_gguf):
    tokens = read_gguf(small_gguf).metadata["tokenizer.ggml.tokens"]
    assert isinstance(tokens, LongArray)
    assert tokens.first == tuple(f"<{index}>" for index in range(8))
    assert (tokens.type, tokens.length, len(tokens.sha256)) == ("str", 2000, 64)


@pytest.mark.engine
def test_the_real_model_reads_as_the_gguf_package_reads_it(local_target):
    ours, theirs = read_gguf(local_target), GGUFReader(local_target)
    assert ours.data_offset == theirs.data_offset
    assert [(t.name, list(t.shape), t.type, t.offset, t.nbytes) for t in ours.tensors] == [
        (t.name, t.shape.tolist(), t.tensor_type.name, t.data_offset, t.n_bytes) for t in theirs.tensors
    ]
    for key, value in ours.metadata.items():
        field = theirs.fields[key]
        if isinstance(value, LongArray):
            assert value.length == len(field.data)
            assert list(value.first) == field.contents(slice(8))
        else:
            assert (list(value) if isinstance(value, tuple) else value) == field.contents()
    assert len(ours.metadata) == len(theirs.fields) - 3  # theirs counts the three numbers of the header
    assert ours.vocabulary_size == 49152
    assert ours.has_chat_template


def test_an_empty_file(tmp_path):
    empty = tmp_path / "empty.gguf"
    empty.touch()
    with pytest.raises(Problem, match="is empty"):
        read_gguf(empty)


def test_no_file(tmp_path):
    with pytest.raises(Problem, match="cannot be read: No such file"):
        read_gguf(tmp_path / "absent.gguf")


@pytest.mark.parametrize(
    ("content", "saw"),
    [
        (b"Hello, this is a model.\n", "is a text file"),
        ("größer\n".encode() * 100, "is a text file"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n", "is a Git LFS pointer"),
        (b"PK\x03\x04\xff\xfe\x00\x01", r"not a GGUF file \(it begins with 504b0304\)"),
        (b"GGU", "is a text file"),
    ],
)
def test_something_else_named_gguf(tmp_path, content, saw):
    file = tmp_path / "model.gguf"
    file.write_bytes(content)
    with pytest.raises(Problem, match=saw):
        read_gguf(file)


@pytest.mark.parametrize("version", [0, 1, 4, 77])
def test_an_unknown_version(header, version):
    saw = "big-endian" if version == 0 else f"GGUF version {version}; expected 2 or 3"
    with pytest.raises(Problem, match=saw):
        parse_gguf(header(version=version), Path("m.gguf"))


def test_big_endian(header):
    with pytest.raises(Problem, match="is big-endian; expected little-endian"):
        parse_gguf(b"GGUF" + struct.pack(">IQQ", 3, 1, 1), Path("m.gguf"))


def test_no_tensors(header):
    with pytest.raises(Problem, match="holds no tensors"):
        parse_gguf(header(tensors=0), Path("m.gguf"))


def text(value: str) -> bytes:
    return struct.pack("<Q", len(value.encode())) + value.encode()


def entry(name: str, shape: tuple[int, ...], kind: int = 0, offset: int = 0) -> bytes:
    return text(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape, kind, offset)


HUGE = 1 << 60
KEY = text("general.x")


@pytest.mark.parametrize(
    ("fixed", "rest", "saw"),
    [
        ({"tensors": HUGE}, b"", f"{HUGE} tensors cannot stand in the 0 bytes"),
        ({"pairs": HUGE}, b"", f"{HUGE} metadata entries cannot stand"),
        ({"pairs": 1}, struct.pack("<Q", HUGE) + bytes(64), "bytes of a metadata key cannot stand"),
        ({"pairs": 1}, KEY + struct.pack("<IQ", 8, HUGE) + bytes(64), "bytes of the value of general.x"),
        ({"pairs": 1}, KEY + struct.pack("<IIQ", 9, 4, HUGE) + bytes(64), "elements of general.x cannot"),
        ({"pairs": 1}, KEY + struct.pack("<IIQ", 9, 8, HUGE) + bytes(64), "elements of general.x cannot"),
        ({"pairs": 1}, KEY + struct.pack("<IIQ", 9, 9, 1) + bytes(64), "array of the unsupported type 9"),
        ({"pairs": 1}, KEY + struct.pack("<I", 99) + bytes(64), "unknown type 99"),
        ({"pairs": 2}, (KEY + struct.pack("<II", 4, 1)) * 2 + bytes(64), "stands there twice"),
        ({"pairs": 1}, text("") + struct.pack("<II", 4, 1) + bytes(64), "is empty"),
        (
            {"pairs": 1},
            text("general.alignment") + struct.pack("<II", 4, 24) + bytes(64),
            "not a power of two",
        ),
        ({}, entry("t", (32, 32, 32, 32, 32)), "5 dimensions, more than 4"),
        ({}, entry("t", (HUGE, HUGE)), "is truncated"),
        ({}, entry("t", (33,), kind=2) + bytes(256), r"type Q4_0 cannot have the shape \[33\]"),
        ({}, entry("t", (), kind=2) + bytes(256), r"cannot have the shape \[\]"),
        ({}, entry("t", (0,)) + bytes(64), r"cannot have the shape \[0\]"),
        ({}, entry("t", (8,), kind=4) + bytes(64), "unknown type 4"),
        ({}, entry("t" * 64, (8,)) + bytes(64), "too long"),
        ({}, entry("t", (8,), offset=32) + bytes(128), "begins at 32, not at 0"),
        (
            {"tensors": 2},
            entry("t", (8,)) + entry("t", (8,), offset=32) + bytes(128),
            "'t' stands there twice",
        ),
    ],
)
def test_a_header_that_lies(header, fixed, rest, saw):
    tracemalloc.start()
    with pytest.raises(Problem, match=saw):
        parse_gguf(header(rest, **fixed), Path("m.gguf"))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 1_000_000


def test_every_truncation_is_refused(small_gguf):
    """Cut anywhere, in the header or in the data, a file is never taken for whole."""
    content = small_gguf.read_bytes()
    end = read_gguf(small_gguf).tensors[-1]
    whole = end.offset + end.nbytes  # behind it stands padding only
    for length in [*range(1, 400), *range(400, whole, 997), whole - 1]:
        with pytest.raises(Problem):
            parse_gguf(content[:length], Path("m.gguf"))
    assert parse_gguf(content[:whole], Path("m.gguf")).tensors


def test_truncated_data_says_so(small_gguf):
    content = small_gguf.read_bytes()
    small_gguf.write_bytes(content[: len(content) // 2])
    with pytest.raises(Problem, match=r"is truncated; expected at least \d+ bytes for tensor 'token_embd.weight'"):
        read_gguf(small_gguf)


def assert_read_or_refused(content: bytes) -> None:
    """Anything but a Problem is a crash; what is read lies within the file."""
    try:
        file = parse_gguf(content, Path("m.gguf"))
    except Problem:
        return
    assert all(tensor.offset + tensor.nbytes <= len(content) for tensor in file.tensors)


@settings(max_examples=300)
@given(st.binary(max_size=400), st.integers(0, 5), st.integers(0, 5))
def test_random_headers_are_read_or_refused(rest, tensors, pairs):
    content = b"GGUF" + struct.pack("<IQQ", 3, tensors, pairs) + rest
    assert_read_or_refused(content)


@settings(max_examples=300)
@given(data=st.data())
def test_changed_bytes_are_read_or_refused(data, small_header):
    content = bytearray(small_header)
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(4, 300))] = data.draw(st.integers(0, 255))
    assert_read_or_refused(bytes(content))


@pytest.fixture(scope="module")
def small_header() -> bytes:
    rest = KEY + struct.pack("<IIQ3I", 9, 4, 3, 1, 2, 3)
    rest += text("general.architecture") + struct.pack("<I", 8) + text("llama")
    rest += entry("token_embd.weight", (32, 4)) + entry("output_norm.weight", (32,), offset=512)
    content = b"GGUF" + struct.pack("<IQQ", 3, 2, 2) + rest
    return content + bytes(-len(content) % 32) + bytes(640)
