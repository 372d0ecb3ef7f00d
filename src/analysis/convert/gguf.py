"""What a GGUF file says of itself: a small reader that believes nothing before it has checked it.

Layout: <https://github.com/ggml-org/ggml/blob/master/docs/gguf.md>. Every count is compared with the bytes that
are left before anything is allocated for it, so a damaged header costs no more memory than its own size.
"""

import hashlib
import math
import mmap
import struct
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType

from gguf import GGML_QUANT_SIZES, GGMLQuantizationType

from analysis.records import Problem

LENGTH = struct.Struct("<Q")
LONG = 1024  # arrays with more elements are kept as a summary
VERSIONS = (2, 3)
MAX_DIMENSIONS = 4  # ggml's limits
MAX_NAME = 64
STRING, ARRAY, BOOL = 8, 9, 7
# GGUF's number types: their name here and their layout for `struct`.
NUMBERS = {
    0: ("u8", "B"),
    1: ("i8", "b"),
    2: ("u16", "H"),
    3: ("i16", "h"),
    4: ("u32", "I"),
    5: ("i32", "i"),
    6: ("f32", "f"),
    7: ("bool", "B"),
    10: ("u64", "Q"),
    11: ("i64", "q"),
    12: ("f64", "d"),
}


@dataclass(frozen=True)
class LongArray:
    """A metadata array that is too long to keep: what it held, hashed over its bytes in the file."""

    type: str
    length: int
    sha256: str
    first: tuple["Scalar", ...]


Scalar = int | float | bool | str
Value = Scalar | tuple[Scalar, ...] | LongArray


@dataclass(frozen=True)
class Tensor:
    """One tensor as the header describes it.

    `shape` is in ggml's order, the contiguous dimension first; `offset` counts bytes from the start of the file.
    """

    name: str
    shape: tuple[int, ...]
    type: str
    offset: int
    nbytes: int

    @property
    def parameters(self) -> int:
        """Return the number of values."""
        return math.prod(self.shape)

    @property
    def bits_per_weight(self) -> float:
        """Return the stored bits a value, scales included."""
        return 8 * self.nbytes / self.parameters


@dataclass(frozen=True)
class GGUFFile:
    """The header of a GGUF file: metadata and tensors, without the tensors' values."""

    path: Path
    size: int
    version: int
    alignment: int
    data_offset: int
    metadata: Mapping[str, Value] = field(repr=False)
    tensors: tuple[Tensor, ...] = field(repr=False)

    @property
    def architecture(self) -> str:
        """Return `general.architecture`, or an empty string."""
        return self.text("general.architecture")

    def text(self, key: str) -> str:
        """Return a text of the metadata, or an empty string where there is none."""
        value = self.metadata.get(key, "")
        return value if isinstance(value, str) else ""

    def number(self, key: str) -> int | None:
        """Return a whole number of the metadata; `{arch}` in the key stands for the architecture."""
        value = self.metadata.get(key.replace("{arch}", self.architecture))
        return value if isinstance(value, int) and not isinstance(value, bool) else None

    @property
    def context_length(self) -> int | None:
        """Return the context length the model was trained for, in tokens."""
        return self.number("{arch}.context_length")

    @property
    def block_count(self) -> int | None:
        """Return the number of blocks."""
        return self.number("{arch}.block_count")

    @property
    def vocabulary_size(self) -> int | None:
        """Return the number of tokens in the vocabulary."""
        tokens = self.metadata.get("tokenizer.ggml.tokens")
        return tokens.length if isinstance(tokens, LongArray) else len(tokens) if isinstance(tokens, tuple) else None

    @property
    def tokens_sha256(self) -> str:
        """Return the SHA-256 over the token list, or an empty string; equal lists have equal hashes."""
        return _hash_of(self.metadata.get("tokenizer.ggml.tokens"))

    @property
    def has_chat_template(self) -> bool:
        """Return whether a chat template is embedded."""
        return bool(self.text("tokenizer.chat_template"))

    @property
    def parameters(self) -> int:
        """Return the number of values over all tensors."""
        return sum(tensor.parameters for tensor in self.tensors)

    @property
    def bytes_by_type(self) -> dict[str, int]:
        """Return the bytes of the tensors of each type, largest first."""
        counted: Counter[str] = Counter()
        for tensor in self.tensors:
            counted[tensor.type] += tensor.nbytes
        return dict(counted.most_common())


def read_gguf(path: str | Path) -> GGUFFile:
    """Read the header of a GGUF file.

    Raises:
        Problem: the file is missing, empty, no GGUF, of another byte order or version, holds no tensors, states
            counts it cannot hold, or is shorter than its tensors.
    """
    path = Path(path)
    try:
        stamp = path.stat()
        if not path.is_file() and not path.is_dir():
            raise Problem(f"{path} is no regular file", expected="a GGUF file")  # opening a pipe would wait for ever
        return _read_gguf(path, (stamp.st_ino, stamp.st_size, stamp.st_mtime_ns, stamp.st_ctime_ns))
    except OSError as error:
        raise Problem(f"{path} cannot be read: {error.strerror}", expected="a GGUF file") from None


@lru_cache(maxsize=64)
def _read_gguf(path: Path, _stamp: tuple[int, ...]) -> GGUFFile:
    """Read a header once as long as the file stays as it is: every cell of a run asks for those of the same files."""
    with path.open("rb") as source:
        size = source.seek(0, 2)
        if size == 0:
            raise Problem(f"{path} is empty", expected="a GGUF file", remedy="fetch it again")
        with mmap.mmap(source.fileno(), 0, access=mmap.ACCESS_READ) as content:
            return parse_gguf(content, path)


def parse_gguf(content: bytes | mmap.mmap, path: Path) -> GGUFFile:
    """Read a GGUF header from bytes; `path` is for messages.

    Raises:
        Problem: as `read_gguf`.
    """
    reader = _Reader(content, path)
    version = _read_version(reader)
    tensor_count, pair_count = reader.unpack("QQ")
    # The shortest pair is an empty key with a byte; the shortest tensor has no name and no dimension.
    reader.require(pair_count, 8 + 4 + 1, "metadata entries")
    reader.require(tensor_count, 8 + 4 + 4 + 8, "tensors")
    if tensor_count == 0:
        raise Problem(f"{path} holds no tensors", expected="at least one", remedy="convert or fetch it again")
    metadata: dict[str, Value] = {}
    for _ in range(pair_count):
        key = reader.text("a metadata key")
        if not key or key in metadata:
            raise reader.damaged(f"metadata key {key!r} is empty or stands there twice")
        metadata[key] = _read_value(reader, key)
    alignment = metadata.get("general.alignment", 32)
    if not isinstance(alignment, int) or alignment < 1 or alignment & (alignment - 1):
        raise reader.damaged(f"general.alignment is {alignment!r}, not a power of two")
    found = [_read_tensor(reader) for _ in range(tensor_count)]
    data_offset = _aligned(reader.position, alignment)
    tensors = _placed(found, data_offset, alignment, reader)
    return GGUFFile(
        path=path,
        size=len(content),
        version=version,
        alignment=alignment,
        data_offset=data_offset,
        metadata=MappingProxyType(metadata),
        tensors=tensors,
    )


class _Reader:
    """A position in a header that never moves past its end."""

    def __init__(self, content: bytes | mmap.mmap, path: Path) -> None:
        self.content = content
        self.path = path
        self.position = 0

    @property
    def left(self) -> int:
        return len(self.content) - self.position

    def damaged(self, saw: str) -> Problem:
        return Problem(f"{self.path}: {saw}", expected="a whole GGUF header", remedy="fetch or convert it again")

    def require(self, count: int, width: int, what: str) -> None:
        if count * width > self.left:
            raise self.damaged(f"{count} {what} cannot stand in the {self.left} bytes that are left")

    def unpack(self, layout: str) -> tuple[int, ...]:
        layout = "<" + layout
        width = struct.calcsize(layout)
        if width > self.left:
            raise self.damaged(f"the header ends at byte {len(self.content)}, inside a number")
        values = struct.unpack_from(layout, self.content, self.position)
        self.position += width
        return values

    def raw(self, count: int, what: str) -> bytes:
        self.require(count, 1, f"bytes of {what}")
        value = self.content[self.position : self.position + count]
        self.position += count
        return bytes(value)

    def skip_texts(self, count: int, what: str) -> None:
        """Move past texts. A vocabulary has tens of thousands, so this is written for speed."""
        content, position, end = self.content, self.position, len(self.content)
        for _ in range(count):
            after = position + LENGTH.size
            length = LENGTH.unpack_from(content, position)[0] if after <= end else end
            if length > end - after:
                self.position = position
                self.raw(self.unpack("Q")[0], what)  # says what is wrong
            position = after + length
        self.position = position

    def text(self, what: str) -> str:
        (length,) = self.unpack("Q")
        return self.raw(length, what).decode("utf-8", errors="replace")


def _read_version(reader: _Reader) -> int:
    magic = reader.raw(min(4, reader.left), "the magic number")
    if magic != b"GGUF":
        raise Problem(f"{reader.path} is {_kind_of(reader.content)}", expected="a GGUF file", remedy="fetch it again")
    (version,) = reader.unpack("I")
    if version & 0xFFFF == 0:
        raise Problem(
            f"{reader.path} is big-endian",
            expected="little-endian",
            remedy="convert it with gguf-convert-endian",
        )
    if version not in VERSIONS:
        raise Problem(
            f"{reader.path} has GGUF version {version}",
            expected=" or ".join(map(str, VERSIONS)),
            remedy="convert it with a current converter",
        )
    return version


def _kind_of(content: bytes | mmap.mmap) -> str:
    start = content[:512]
    if start.startswith(b"version https://git-lfs"):
        return "a Git LFS pointer, not the file it points to"
    try:
        text = start.decode("utf-8")
    except UnicodeDecodeError as error:
        if error.start < len(start) - 3:
            return f"not a GGUF file (it begins with {start[:4].hex()})"
        text = start[: error.start].decode("utf-8")
    printable = all(char.isprintable() or char.isspace() for char in text)
    return "a text file" if printable else f"not a GGUF file (it begins with {start[:4].hex()})"


def _read_value(reader: _Reader, key: str) -> Value:
    (kind,) = reader.unpack("I")
    if kind == STRING:
        return reader.text(f"the value of {key}")
    if kind == ARRAY:
        return _read_array(reader, key)
    if kind not in NUMBERS:
        raise reader.damaged(f"{key} has the unknown type {kind}")
    (value,) = reader.unpack(NUMBERS[kind][1])
    return bool(value) if kind == BOOL else value


def _read_array(reader: _Reader, key: str) -> tuple[Scalar, ...] | LongArray:
    kind, length = reader.unpack("IQ")
    if kind == STRING:
        return _read_texts(reader, key, length)
    if kind not in NUMBERS:
        raise reader.damaged(f"{key} is an array of the unsupported type {kind}")
    name, layout = NUMBERS[kind]
    width = struct.calcsize("<" + layout)
    reader.require(length, width, f"elements of {key}")
    start = reader.position
    kept = reader.unpack(f"{min(length, LONG)}{layout}")
    values = tuple(map(bool, kept)) if kind == BOOL else kept
    if length <= LONG:
        return values
    reader.position = start
    digest = hashlib.sha256(reader.raw(length * width, key)).hexdigest()
    return LongArray(type=name, length=length, sha256=digest, first=values[:8])


def _read_texts(reader: _Reader, key: str, length: int) -> tuple[Scalar, ...] | LongArray:
    reader.require(length, 8, f"elements of {key}")
    kept: list[str] = []
    start = reader.position
    for _ in range(min(length, LONG)):
        kept.append(reader.text(key))
    reader.skip_texts(length - len(kept), key)
    if length <= LONG:
        return tuple(kept)
    end, reader.position = reader.position, start
    digest = hashlib.sha256(reader.raw(end - start, key)).hexdigest()
    return LongArray(type="str", length=length, sha256=digest, first=tuple(kept[:8]))


def _hash_of(value: Value | None) -> str:
    if isinstance(value, LongArray):
        return value.sha256
    if not isinstance(value, tuple):
        return ""
    texts = [str(item).encode() for item in value]
    return hashlib.sha256(b"".join(struct.pack("<Q", len(text)) + text for text in texts)).hexdigest()


def _read_tensor(reader: _Reader) -> Tensor:
    """Read one entry; its `offset` still counts from the start of the data."""
    name = reader.text("a tensor's name")
    if len(name.encode()) >= MAX_NAME:
        raise reader.damaged(f"the tensor name {name[:MAX_NAME]!r} is too long")
    (dimensions,) = reader.unpack("I")
    if dimensions > MAX_DIMENSIONS:
        raise reader.damaged(f"tensor {name!r} has {dimensions} dimensions, more than {MAX_DIMENSIONS}")
    shape = reader.unpack(f"{dimensions}Q")
    kind, offset = reader.unpack("IQ")
    try:
        quantization = GGMLQuantizationType(kind)
        block, width = GGML_QUANT_SIZES[quantization]
    except (ValueError, KeyError):
        raise reader.damaged(f"tensor {name!r} has the unknown type {kind}") from None
    values = math.prod(shape)
    if values == 0 or (shape[0] if shape else 1) % block:
        raise reader.damaged(f"tensor {name!r} of type {quantization.name} cannot have the shape {list(shape)}")
    return Tensor(name=name, shape=shape, type=quantization.name, offset=offset, nbytes=values // block * width)


def _placed(found: list[Tensor], data_offset: int, alignment: int, reader: _Reader) -> tuple[Tensor, ...]:
    """Return tensors whose offsets count from the start of the file, checked against each other and its end."""
    placed: dict[str, Tensor] = {}
    expected = 0
    for tensor in found:
        if tensor.name in placed:
            raise reader.damaged(f"tensor {tensor.name!r} stands there twice")
        if tensor.offset != expected:
            raise reader.damaged(f"tensor {tensor.name!r} begins at {tensor.offset}, not at {expected}")
        end = data_offset + tensor.offset + tensor.nbytes
        if end > len(reader.content):
            raise Problem(
                f"{reader.path} has {len(reader.content)} bytes and is truncated",
                expected=f"at least {end} bytes for tensor {tensor.name!r}",
                remedy="fetch or convert it again",
            )
        expected = _aligned(tensor.offset + tensor.nbytes, alignment)
        placed[tensor.name] = Tensor(tensor.name, tensor.shape, tensor.type, data_offset + tensor.offset, tensor.nbytes)
    return tuple(placed.values())


def _aligned(offset: int, alignment: int) -> int:
    return -(-offset // alignment) * alignment
