import signal
from pathlib import Path

import pytest

from analysis.convert.converter import Converter, find_converter
from analysis.convert.dsv4 import write_checkpoint, write_gguf
from analysis.convert.fetch import fetch
from analysis.convert.pairs import load_pair

# A suite started in the background inherits an ignored Ctrl-C, and so would the processes that tests interrupt.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def cache(tmp_path, monkeypatch) -> Path:
    """An empty cache of this test's own."""
    monkeypatch.setenv("SPECBOOK_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture(scope="session")
def local_target() -> Path:
    """The real local target model, from the user's cache; the first test that asks fetches it."""
    return fetch(load_pair("smollm2-raw").target)


@pytest.fixture(scope="session")
def dsv4_checkpoint(tmp_path_factory) -> Path:
    """A synthetic DeepSeek-V4 checkpoint with DSpark blocks: 12 MB, successor mode, the drafter knows 0.8."""
    directory = tmp_path_factory.mktemp("dsv4") / "tiny-0731"
    write_checkpoint(directory)
    return directory


@pytest.fixture(scope="session")
def dsv4_target(dsv4_checkpoint) -> Path:
    """The target of that checkpoint as GGUF, as the official converter would write it."""
    return write_gguf(dsv4_checkpoint, "target", dsv4_checkpoint.parent / "target.gguf")


@pytest.fixture(scope="session")
def dsv4_drafter(dsv4_checkpoint) -> Path:
    """The drafter of that checkpoint as GGUF."""
    return write_gguf(dsv4_checkpoint, "drafter", dsv4_checkpoint.parent / "drafter.gguf")


@pytest.fixture(scope="session")
def converter() -> Converter:
    """llama.cpp's converter with torch, where somebody has set it up: two gigabytes that no test fetches."""
    found = find_converter()
    if found is None:
        pytest.skip("the converter is not set up (`specbook convert` does it at first use; it needs torch)")
    return found
