"""Where the notebooks of these tests lie, and a local folder of their own."""

from pathlib import Path

import pytest


@pytest.fixture
def notebooks() -> Path:
    """Small notebooks, most of them named for the way they fail."""
    return Path(__file__).parent / "notebooks"


@pytest.fixture(autouse=True)
def local(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What these tests leave behind goes to a folder of their own."""
    monkeypatch.setenv("SPECBOOK_LOCAL", str(tmp_path / "local"))
    return tmp_path / "local"
