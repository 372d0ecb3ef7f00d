"""Where prompts come from: installed Python sources under permissive licences, and sentences written for this.

Only beginnings are taken. What a drafter learns from is what the target says next.
"""

import ast
import importlib.metadata
import re
import sysconfig
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Any

PERMISSIVE = ("MIT", "BSD", "Apache", "PSF", "Python Software Foundation", "ISC", "HPND")
COPYLEFT = ("GPL", "GNU", "MPL", "Mozilla")
LARGEST_FILE = 300_000


@dataclass(frozen=True)
class Origin:
    """A body of text that was read: its name, version, licence and number of files."""

    name: str
    version: str
    licence: str
    files: int


@dataclass(frozen=True)
class Material:
    """Pieces of text to begin from. A piece of `files` is a whole source file."""

    code: tuple[str, ...]
    prose: tuple[str, ...]
    functions: tuple[str, ...]
    files: tuple[str, ...]
    origins: tuple[Origin, ...]


def installed_sources() -> Iterator[tuple[Origin, list[Path]]]:
    """Yield the standard library and the installed distributions with a permissive licence, with their files."""
    root = Path(sysconfig.get_paths()["stdlib"])
    files = sorted(p for p in root.rglob("*.py") if not {"site-packages", "test", "tests", "idlelib"} & set(p.parts))
    yield Origin("python-stdlib", sysconfig.get_python_version(), "PSF-2.0", len(files)), files
    for dist in sorted(importlib.metadata.distributions(), key=lambda d: str(d.metadata["Name"]).lower()):
        licence = licence_of(dist.metadata)
        if not any(word in licence for word in PERMISSIVE) or any(word in licence for word in COPYLEFT):
            continue
        names = [Path(str(f)) for f in dist.files or () if f.suffix in (".py", ".md", ".rst") or f.name == "METADATA"]
        paths = sorted(Path(str(dist.locate_file(f))) for f in names if not {"test", "tests"} & set(f.parts))
        if paths:
            yield Origin(str(dist.metadata["Name"]), dist.version, licence, len(paths)), paths


def licence_of(metadata: Any) -> str:
    """Return what a distribution's metadata say of its licence: expression, classifiers, or a short free text."""
    if expression := metadata.get("License-Expression"):
        return str(expression)
    classifiers = [c.split(" :: ")[-1] for c in metadata.get_all("Classifier") or () if c.startswith("License ::")]
    if classifiers:
        return " AND ".join(sorted(set(classifiers)))
    free = str(metadata.get("License") or "")
    return free if len(free) < 60 else ""


def gather(sources: Iterable[tuple[Origin, list[Path]]], rng: Random, *, most_files: int, held_out: bool) -> Material:
    """Read files of the sources in random order, `most_files` at most, and cut them to pieces.

    Every tenth file, by a hash of its name, is read only where `held_out` is asked for, the others only where not.
    """
    origins, everything = [], []
    for origin, paths in sources:
        chosen = [path for path in paths if (zlib.crc32(path.name.encode()) % 10 == 0) == held_out]
        origins.append(replace(origin, files=len(chosen)))
        everything += chosen
    rng.shuffle(everything)
    code: list[str] = []
    prose: list[str] = []
    functions: list[str] = []
    files: list[str] = []
    for path in everything[:most_files]:
        text = _read(path)
        if text is None:
            continue
        if path.suffix == ".py":
            files.append(text)
            code += code_pieces(text, rng)
            functions += function_pieces(text, rng)
            prose += docstrings(text, rng)
        else:
            prose += paragraphs(text, rng)
    for pieces in (code, prose, functions, files):
        rng.shuffle(pieces)
    return Material(tuple(code), tuple(prose), tuple(functions), tuple(files), tuple(origins))


def code_pieces(text: str, rng: Random, most: int = 4) -> list[str]:
    """Return the head of a source file and some of its definitions, each up to sixty lines."""
    lines = text.split("\n")
    begins = [i for i, line in enumerate(lines) if re.match(r"\s*(async def|def|class) ", line)]
    chosen = rng.sample(begins, min(most, len(begins)))
    return [text[:1800], *("\n".join(lines[i : i + 60])[:2400] for i in chosen)]


def function_pieces(text: str, rng: Random, most: int = 3) -> list[str]:
    """Return some whole top-level functions of 120 to 750 characters."""
    pieces = re.findall(r"^(?:async def|def) .*\n(?:[ \t)].*\n|\n)+", text, re.M)
    whole = [piece.rstrip() for piece in pieces]
    fitting = [piece for piece in whole if 120 < len(piece) < 750]
    return rng.sample(fitting, min(most, len(fitting)))


def docstrings(text: str, rng: Random, most: int = 2) -> list[str]:
    """Return some docstrings of 200 to 1500 characters that hold no session."""
    try:
        nodes = ast.walk(ast.parse(text))
    except (SyntaxError, ValueError, RecursionError):
        return []
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    texts = [ast.get_docstring(node) or "" for node in nodes if isinstance(node, documented)]
    found = [piece for piece in texts if 200 <= len(piece) <= 1500 and ">>>" not in piece]
    return rng.sample(found, min(most, len(found)))


def paragraphs(text: str, rng: Random, most: int = 6) -> list[str]:
    """Return some paragraphs of 150 to 1500 characters of running text."""
    found = [
        piece.strip()
        for piece in re.split(r"\n\s*\n", text)
        if 150 < len(piece) < 1500 and piece.count("http") < 2 and "|" not in piece and "::" not in piece
    ]
    return rng.sample(found, min(most, len(found)))


def _read(path: Path) -> str | None:
    try:
        if path.stat().st_size > LARGEST_FILE:
            return None
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return None
    plain = len(text) >= 400 and sum(ord(c) > 127 for c in text[:2000]) <= 20
    return text if plain else None
