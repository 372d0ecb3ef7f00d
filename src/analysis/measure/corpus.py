"""The text that prompts are cut from: Python's own standard library, a directory the user names, or a saved corpus."""

import gzip
import hashlib
import json
import os
import pydoc_data.topics
import sys
import sysconfig
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Literal, Self

from analysis.convert.files import whole_file
from analysis.records import Problem

CODE_SUFFIXES = frozenset({".py"})
PROSE_SUFFIXES = frozenset({".txt", ".md", ".rst"})

# Folders of the standard library that hold no text a reader would write: tests and their data, code that others
# installed, wheels, character tables, and the topics, which are prose and are read as such.
_NOT_LIBRARY = frozenset(
    {
        "test", "tests", "idlelib", "idle_test", "site-packages", "dist-packages", "ensurepip", "lib2to3",
        "encodings", "turtledemo", "pydoc_data", "__pycache__", "__phello__",
    }
)  # fmt: skip
# Written when Python was built: they hold paths of the machine that built it.
_BUILD_PREFIX = "_sysconfigdata"
_SAVED = "a file that `specbook corpus` wrote"
_DAMAGED = (OSError, EOFError, zlib.error, ValueError, TypeError, KeyError, AttributeError, RecursionError)
_NOT_SOURCE = frozenset({"__pycache__", "node_modules", "site-packages"})

MAX_SAVED = 64 << 20
"""Bytes that a saved corpus may unpack to; Python's own library takes some ten million. A packed file of a few
kilobytes can unpack to gigabytes, and its objects then take up to 25 times as much."""


@dataclass(frozen=True)
class Text:
    """One file or topic. `name` is its path within the corpus, with forward slashes."""

    name: str
    kind: Literal["code", "prose"]
    content: str = field(repr=False)


@dataclass(frozen=True)
class Corpus:
    """Texts in the order of their names, and one hash over all names and contents.

    `title` says in a few words where the texts come from; it holds no path.
    """

    title: str
    texts: tuple[Text, ...] = field(repr=False)
    sha256: str

    @classmethod
    def of(cls, title: str, texts: Iterable[Text]) -> Self:
        """Return the corpus of some texts, whatever order they come in."""
        ordered = tuple(sorted(texts, key=lambda text: (text.kind, text.name)))
        return cls(title=title, texts=ordered, sha256=_digest(ordered))

    @classmethod
    def standard_library(cls) -> "Corpus":
        """Return the running Python's library source as code and its help topics as prose.

        Raises:
            Problem: this Python was installed without its source files.
        """
        return _standard_library()

    @classmethod
    def from_directory(cls, path: Path | str) -> Self:
        """Return a directory's text: `.py` files are code; `.txt`, `.md` and `.rst` files are prose.

        Hidden folders, `__pycache__`, `node_modules`, `site-packages` and empty files are passed over.

        Raises:
            Problem: the directory is missing, holds no code, or a file in it is not UTF-8.
        """
        root = Path(path)
        if not root.is_dir():
            raise Problem(f"no directory {root}", expected="a directory with the text to prompt with")
        files = _files(root, CODE_SUFFIXES | PROSE_SUFFIXES, passed_over=_NOT_SOURCE)
        texts = [Text(file.relative_to(root).as_posix(), _kind(file), _read(file)) for file in files]
        texts = [text for text in texts if text.content.strip()]
        if not any(text.kind == "code" for text in texts):
            raise Problem(
                f"{root} holds {len(texts)} files of text and no code",
                expected="at least one .py file that is not empty",
                remedy="name a directory with source code, or leave it out to use Python's standard library",
            )
        return cls.of(f"directory {root.resolve().name}", texts)

    @classmethod
    def load(cls, path: Path | str) -> Self:
        """Return the corpus that `save` wrote.

        Raises:
            Problem: the file is missing, is no saved corpus, unpacks to more than `MAX_SAVED` bytes, or its texts are
                not those that were saved.
        """
        file = Path(path)
        try:
            with gzip.open(file) as packed:
                content = packed.read(MAX_SAVED + 1)
            if len(content) > MAX_SAVED:
                raise Problem(f"{file} unpacks to more than {MAX_SAVED:,} bytes", expected=_SAVED)
            saved = json.loads(content)
            found = cls.of(saved["title"], [Text(*fields) for fields in saved["texts"]])
            expected = saved["sha256"]
        except FileNotFoundError:
            raise Problem(f"no file {file}", expected=_SAVED) from None
        except _DAMAGED as error:
            raise Problem(f"{file} is no saved corpus: {type(error).__name__}", expected=_SAVED) from None
        if found.sha256 != expected:
            raise Problem(f"the texts in {file} have SHA-256 {found.sha256}", expected=f"{expected}, as when saved")
        return found

    def save(self, path: Path | str) -> None:
        """Write the corpus to one file, so that another machine can be asked the same prompts.

        Two machines whose Pythons differ have different standard libraries, and so different prompts.

        Raises:
            Problem: it is larger than what `load` unpacks, or a file that is no saved corpus lies there: a text that
                was meant to be read, say.
        """
        if Path(path).is_file():
            Corpus.load(path)
        saved: dict[str, Any] = {"title": self.title, "sha256": self.sha256}
        saved["texts"] = [(text.name, text.kind, text.content) for text in self.texts]
        content = json.dumps(saved).encode()
        if len(content) > MAX_SAVED:
            raise Problem(
                f"{self.title} makes a corpus of {len(content):,} bytes",
                expected=f"at most {MAX_SAVED:,}",
                remedy="name a directory with less text",
            )
        with whole_file(Path(path)) as unfinished:
            # No time and no name in the header: the same texts make the same file.
            unfinished.write_bytes(gzip.compress(content, mtime=0))

    def of_kind(self, kind: Literal["code", "prose"]) -> tuple[Text, ...]:
        """Return the texts of one kind."""
        return tuple(text for text in self.texts if text.kind == kind)

    def holds(self, phrase: str) -> bool:
        """Return whether a phrase occurs anywhere in the corpus."""
        return any(phrase in text.content for text in self.texts)


@cache
def _standard_library() -> Corpus:
    root = Path(sysconfig.get_path("stdlib"))
    files = _files(root, CODE_SUFFIXES, passed_over=_NOT_LIBRARY)
    if not files:
        raise Problem(
            f"no source files in {root}",
            expected="a Python with its standard library as .py files",
            remedy="name a directory with text instead",
        )
    code = [Text(file.relative_to(root).as_posix(), "code", _read(file)) for file in files]
    version = ".".join(map(str, sys.version_info[:3]))
    return Corpus.of(f"Python {version} standard library and help topics", [*code, *_topics(pydoc_data.topics.topics)])


def _topics(topics: Mapping[str, str]) -> list[Text]:
    return [Text(f"topics/{name}", "prose", content) for name, content in topics.items() if content.strip()]


def _files(root: Path, suffixes: frozenset[str], *, passed_over: frozenset[str]) -> list[Path]:
    """Return the files below a folder, in no particular order; hidden folders and links to folders are not entered."""
    found = []
    for folder, inner, names in os.walk(root):
        inner[:] = [name for name in inner if name not in passed_over and not name.startswith(".")]
        files = (Path(folder, name) for name in names if not name.startswith(_BUILD_PREFIX))
        found += [file for file in files if file.suffix.lower() in suffixes and file.is_file()]
    return found


def _kind(file: Path) -> Literal["code", "prose"]:
    return "code" if file.suffix.lower() in CODE_SUFFIXES else "prose"


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8-sig")
    except (UnicodeDecodeError, OSError) as error:
        raise Problem(
            f"{file} cannot be read as text: {error}",
            expected="UTF-8",
            remedy="convert the file or move it elsewhere",
        ) from None


def _digest(texts: Iterable[Text]) -> str:
    """Return SHA-256 over names and contents; each is preceded by its length, so that none can pose as another."""
    digest = hashlib.sha256()
    for text in texts:
        for part in (text.kind.encode(), text.name.encode(), text.content.encode()):
            digest.update(len(part).to_bytes(8, "big"))
            digest.update(part)
    return digest.hexdigest()
