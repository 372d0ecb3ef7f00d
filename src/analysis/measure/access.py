"""What a measurement is given from outside: the text to prompt with, and a server that may be somebody else's."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from analysis.convert.fetch import fetch
from analysis.launch import AnyServer, FoundEngine, Server, attach, read_key, resolve_engine
from analysis.measure.corpus import Corpus
from analysis.measure.serving import Serving


@dataclass(frozen=True)
class ServerAccess:
    """A server that somebody else runs: its address, and the file that holds its key."""

    url: str = ""
    api_key_file: str = ""

    def key(self) -> str:
        """Return the key, or an empty string where none is needed.

        Raises:
            Problem: the file cannot be read.
        """
        return read_key(Path(self.api_key_file)) if self.api_key_file else ""


def corpus_of(place: str) -> Corpus:
    """Return the text of a directory or of a saved corpus, or of Python's own standard library where none is named.

    Raises:
        Problem: see `Corpus`.
    """
    if not place:
        return Corpus.standard_library()
    return Corpus.load(place) if Path(place).is_file() else Corpus.from_directory(place)


@contextmanager
def open_server(served: Serving, access: ServerAccess) -> Iterator[tuple[AnyServer, FoundEngine]]:
    """Start a pair's drafted leg, or attach to the server that was named; yield it with the engine that it is.

    Raises:
        Problem: a file, the engine or the server is not as it must be.
    """
    found = resolve_engine(access.url or None, api_key=access.key())
    if found.url:
        server: AnyServer = attach(found.url, api_key=access.key())
    else:
        drafter = fetch(served.pair.drafter) if served.pair.drafter else None
        server = Server(found, served.config(fetch(served.pair.target), drafter))
    with server:
        yield server, found
