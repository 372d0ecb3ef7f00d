from pathlib import Path

import pytest

from analysis.convert.fetch import fetch
from analysis.convert.pairs import load_pair


@pytest.fixture(scope="session")
def local_target() -> Path:
    """The real local target model, from the user's cache; the first test that asks fetches it."""
    return fetch(load_pair("smollm2-raw").target)
