"""The number formats of a DeepSeek-V4 checkpoint: BF16, and 8- and 4-bit values with power-of-two scales."""

import numpy as np
from numpy.typing import NDArray

from analysis.convert.dsv4.layout import FP4_BLOCK, FP8_BLOCK

Floats = NDArray[np.float32]
Bytes = NDArray[np.uint8]


def _fp8_values() -> Floats:
    """Return the value of each E4M3 code: 1 sign, 4 exponent (bias 7) and 3 mantissa bits; 0x7F and 0xFF are NaN."""
    code = np.arange(256)
    exponent, mantissa = code >> 3 & 15, code & 7
    size = np.where(exponent == 0, mantissa * 2.0**-9, (8 + mantissa) * 2.0 ** (exponent - 10.0))
    size[code & 0x7F == 0x7F] = np.nan
    return np.where(code & 0x80, -size, size).astype(np.float32)


FP8_VALUES = _fp8_values()
FP4_VALUES = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6], np.float32)


def to_bf16(values: NDArray[np.floating]) -> bytes:
    """Return values rounded to the nearest BF16, ties to even."""
    bits = np.ascontiguousarray(values, "<f4").view("<u4")
    rounded = (bits + np.uint32(0x7FFF) + (bits >> 16 & 1)) >> 16
    return bytes(rounded.astype("<u2").tobytes())


def decode_bf16(raw: bytes, shape: tuple[int, ...]) -> Floats:
    """Return BF16 values as float32, exactly."""
    return (np.frombuffer(raw, "<u2").astype("<u4") << 16).view("<f4").reshape(shape)


def decode_fp8(codes: Bytes, scales: Bytes) -> Floats:
    """Return the values of E4M3 codes [out, in] with scales [out / 128, in / 128], exactly."""
    blocks = _powers(scales).repeat(FP8_BLOCK, 0)[: codes.shape[0]].repeat(FP8_BLOCK, 1)[:, : codes.shape[1]]
    return FP8_VALUES[codes] * blocks


def decode_fp4(packed: Bytes, scales: Bytes) -> Floats:
    """Return the values of E2M1 codes, two a byte [out, in / 2] (even one low), with scales [out, in / 32], exactly."""
    codes = np.stack([packed & 15, packed >> 4], axis=-1).reshape(packed.shape[0], -1)
    return FP4_VALUES[codes] * _powers(scales).repeat(FP4_BLOCK, 1)


def _powers(scales: Bytes) -> Floats:
    return np.exp2(scales.astype(np.float32) - 127)
