import os
import shutil
from pathlib import Path

import pytest

from analysis.evidence.tables import published_dir
from analysis.records.places import repo_dir


@pytest.fixture(scope="session")
def card_texts() -> Path:
    """The folder of the cards' texts, which are not part of the repository."""
    folder = Path(os.environ.get("SPECBOOK_CARDS", repo_dir().parent / "shared" / "cards"))
    if not (folder / "card-a.txt").exists():
        pytest.skip("the cards' texts are not here (../shared/cards); quotes and completeness were not checked")
    return folder


@pytest.fixture
def copied(tmp_path) -> Path:
    """A copy of the published tables that a test may spoil."""
    return Path(shutil.copytree(published_dir(), tmp_path / "published"))
