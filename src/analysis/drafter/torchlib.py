"""torch, which is no dependency of the book: a reader who trains nothing never needs it."""

import importlib
from typing import Any, TypeAlias

from analysis.records import Problem

# torch is absent where the checks run, so its types are not known there.
Tensor: TypeAlias = Any

try:
    torch: Any = importlib.import_module("torch")
    functional: Any = importlib.import_module("torch.nn.functional")
except ImportError:
    raise Problem(
        "torch is not installed", expected="torch to train a drafter", remedy="pip install torch==2.13.0"
    ) from None


def best_device() -> str:
    """Return `cuda` where there is one, else `cpu`."""
    return "cuda" if torch.cuda.is_available() else "cpu"


def working_dtype(device: str) -> Any:
    """Return the type of activations and frozen weights: bfloat16 on a GPU, float32 on a CPU."""
    return torch.bfloat16 if device == "cuda" else torch.float32


def mixed_precision(device: str) -> Any:
    """Return the context in which float32 weights meet activations of the working type."""
    return torch.autocast(device, working_dtype(device), enabled=device == "cuda")


def product32(left: Tensor, right: Tensor) -> Tensor:
    """Return `left @ right` in float32; logits rounded to bfloat16 tie, and ties change the most likely token."""
    if left.is_cuda and left.dtype != torch.float32:
        return torch.mm(left, right, out_dtype=torch.float32)
    return left.float() @ right.float()


def rms_norm(x: Tensor, gain: Tensor, eps: float) -> Tensor:
    """Return `x` over its root mean square along the last dimension, times `gain`."""
    return functional.rms_norm(x, (x.shape[-1],), gain.to(x.dtype), eps)


def rotary_table(length: int, head_dim: int, theta: float, device: str) -> tuple[Tensor, Tensor]:
    """Return cosines and sines [length, head_dim] of rotary position embedding (Su et al. 2021), in float32."""
    inverse = theta ** -(torch.arange(0, head_dim, 2, device=device).float() / head_dim)
    angles = torch.outer(torch.arange(length, device=device).float(), inverse)
    angles = torch.cat([angles, angles], -1)
    return angles.cos(), angles.sin()


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotate pairs (i, i + head_dim / 2) of the last dimension by their position's angle."""
    low, high = x.chunk(2, -1)
    return x * cos + torch.cat([-high, low], -1) * sin
