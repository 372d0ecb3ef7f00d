"""Do target and drafter fit each other?"""

from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from analysis.convert.fit import Finding as Misfit
from analysis.convert.fit import check_fit
from analysis.convert.gguf import read_gguf
from analysis.convert.memory import Serving
from analysis.gates.base import Evidence, Finding, Level, Subject, finding
from analysis.records import Cell, FileHash, Problem
from analysis.records.places import located


class PairFits:
    """The headers of target and drafter fit each other, and the way they are used.

    The same checks refuse a measurement before a server starts (`measure.legs`).
    """

    name = "pair-fits"
    why = "A drafter of another vocabulary, layout or type loads, drafts almost nothing, and nobody says a word."
    symptom = "A DSpark file run as DFlash accepts 0.27 % instead of 51 %; a rotary layout taken from the target."
    expected = "headers that fit and heads in the order the engine turns, read from the files with the recorded hashes"
    looks_at: Subject = "cell"

    def check(self, evidence: Evidence) -> Iterator[Finding]:
        """Refuse cells whose files do not fit, warn where they hardly do; report those whose files are out of reach."""
        files = {file.sha256: file for file in evidence.run.files}
        for cell in evidence.by_cell:
            if evidence.run.engine.source == "url" and _has_drafter(cell):
                yield finding(self, "unchecked", "cell", cell.id, "the server does not tell its files; none was read")
                continue
            if not cell.drafter_sha256:
                continue
            paths = [_here(files.get(digest)) for digest in (cell.target_sha256, cell.drafter_sha256)]
            if not all(paths):
                yield finding(self, "unchecked", "cell", cell.id, "its model files are not here")
                continue
            for level, saw in misfits(cell, *(path for path in paths if path)):
                yield finding(self, level, "cell", cell.id, saw)


def misfits(cell: Cell, target: Path, drafter: Path) -> tuple[tuple[Level, str], ...]:
    """Return why a cell's files do not fit, and how sure that is; nothing where they do."""
    stamps = target.stat().st_mtime_ns, drafter.stat().st_mtime_ns
    return _misfits(cell, target, drafter, stamps)


@lru_cache(maxsize=256)
def _misfits(cell: Cell, target: Path, drafter: Path, _changed: tuple[int, int]) -> tuple[tuple[Level, str], ...]:
    serving = Serving(context=cell.context, parallel=cell.parallel, kv_k=cell.kv_k, kv_v=cell.kv_v, rollback=cell.n_max)
    try:
        fit = check_fit(
            read_gguf(target), read_gguf(drafter), spec_type=cell.spec_type, serving=serving, p_min=cell.p_min
        )
    except Problem as problem:
        return (("refuse", str(problem)),)
    refused: list[tuple[Level, str]] = [("refuse", _words(found)) for found in fit.refused]
    warned: list[tuple[Level, str]] = [("warn", _words(found)) for found in fit.warned]
    return (*refused, *warned)


def _has_drafter(cell: Cell) -> bool:
    return cell.spec_type.startswith("draft-")


def _words(found: Misfit) -> str:
    return f"{found.check}: {found.saw}; expected {found.expected}"


def _here(file: FileHash | None) -> Path | None:
    """Return the file on this machine if it is there with its recorded size; reading all of it would take long."""
    if file is None:
        return None
    path = located(file.path)
    return path if path.is_file() and path.stat().st_size == file.size else None
