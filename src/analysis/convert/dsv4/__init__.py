"""DeepSeek-V4-Flash with DSpark: the shape of its checkpoint, what a converter makes of it, and a synthetic one."""

from analysis.convert.dsv4.layout import StoredSpec, checkpoint_tensors, gguf_tensors, shards
from analysis.convert.dsv4.pack import write_gguf
from analysis.convert.dsv4.shape import FLASH, LARGE, TINY, Shape, config
from analysis.convert.dsv4.write import Recipe, write_checkpoint

__all__ = [
    "FLASH",
    "LARGE",
    "TINY",
    "Recipe",
    "Shape",
    "StoredSpec",
    "checkpoint_tensors",
    "config",
    "gguf_tensors",
    "shards",
    "write_checkpoint",
    "write_gguf",
]
