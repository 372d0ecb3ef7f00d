from pathlib import Path

import pytest

from analysis.convert.dsv4 import Recipe, write_checkpoint, write_gguf
from analysis.launch.inside import Model


@pytest.fixture(scope="session")
def dsv4_model(dsv4_target):
    """The synthetic target in this process: the caches of DeepSeek-V4, in 12 MB."""
    with Model(dsv4_target) as model:
        yield model


@pytest.fixture(scope="session")
def narrow_pair(tmp_path_factory) -> tuple[Path, Path]:
    """A target whose favourite hardly leads, and its drafter."""
    folder = tmp_path_factory.mktemp("narrow")
    write_checkpoint(folder / "tiny-0731", recipe=Recipe(margin=0.1), progress=False)
    return tuple(write_gguf(folder / "tiny-0731", part, folder / f"{part}.gguf") for part in ("target", "drafter"))
