from collections.abc import Callable
from io import BytesIO
from pathlib import Path

import pytest

from analysis.ingest.gather import Ingested, gather, ingest
from analysis.ingest.read import read_stream

LOGS = Path(__file__).parent / "logs"


@pytest.fixture
def excerpt() -> Callable[..., Ingested]:
    """One of the log excerpts, or several, as they are read together."""
    return lambda *names: ingest(LOGS / name for name in names)


@pytest.fixture
def text() -> Callable[..., Ingested]:
    """A log that a test types."""
    return lambda content, name="typed.log": gather(
        read_stream(BytesIO(content if isinstance(content, bytes) else content.encode()), name)
    )
