import json
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import settings

from analysis.convert.converter import Converter, find_converter
from analysis.convert.dsv4 import write_checkpoint, write_gguf
from analysis.convert.fetch import fetch
from analysis.convert.pairs import load_pair
from analysis.records.places import repo_dir

# A suite started in the background inherits an ignored Ctrl-C, and so would the processes that tests interrupt.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)  # nohup's would be inherited as well

# No test asserts a duration: a first call imports, and the machine may be busy.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")

SET_UP = (
    "llama.cpp's converter is not set up. Any conversion sets it up, 1.2 GB or more with torch: "
    "`specbook fixture dsv4 local/tiny-0731 && specbook convert local/tiny-0731 local/tiny.gguf`; then run this again"
)


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
    """llama.cpp's converter with torch, where somebody has set it up: more than a gigabyte that no test fetches."""
    found = find_converter()
    if found is None:
        pytest.skip(SET_UP)
    return found


@pytest.fixture
def record_soak() -> Callable[..., None]:
    """Keep what a soak test measured as its last result: one file a test, with date, machine and duration.

    To be called when everything has been asserted: a result that is there was passed.
    """
    from analysis.launch import read_host_state, read_machine
    from analysis.measure.life import now
    from analysis.measure.provenance import commit
    from analysis.records.model import plain

    started, load = time.monotonic(), read_host_state(None).load1

    def record(name: str, **figures: object) -> None:
        head, dirty = commit()
        result = {"soak": name, "at": now(), "machine": plain(read_machine()), "commit": head, "dirty": dirty}
        result |= {"load_before": load, "seconds": round(time.monotonic() - started, 1), "figures": figures}
        file = repo_dir() / "benchmarks" / "results" / "soak" / f"{name}.json"
        file.parent.mkdir(exist_ok=True)
        file.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")

    return record
