"""The ledger of corrections: what was claimed, what replaced it, how it was found.

A correction is never an edit. It is a new entry that names the rows and claims it applies to, and it travels with
them as a margin note.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Literal

from analysis.evidence import claims as ledger
from analysis.evidence import published, tables
from analysis.evidence.tables import Line

Kind = Literal["declared", "audit", "later fact", "book"]


@dataclass(frozen=True, slots=True)
class Correction:
    """An entry of the ledger.

    `kind` says who found it: the card itself (`declared`), recomputing (`audit`), what became public since
    (`later fact`), or this book about itself (`book`). `superseded` is the number that no longer stands, as
    printed, empty where words were corrected. `applies_to` holds ids of rows and claims.
    """

    id: str
    card: str
    kind: str
    claimed: str
    replaced_by: str
    found: str
    quote: str
    superseded: str
    applies_to: tuple[str, ...]
    source: str
    line: Line

    @property
    def note(self) -> str:
        """Return the margin note."""
        source = f" ({self.source})" if self.source else ""
        return f"{self.replaced_by} {self.found}{source}"


@cache
def corrections(folder: Path | None = None) -> Mapping[str, Correction]:
    """Return all corrections by id, in the order of the ledger.

    Raises:
        Problem: a line of `corrections.csv` is wrong or names an id that no table has (file, line, reason).
    """
    known = published.rows(folder).keys() | ledger.claims(folder).keys()
    found = {}
    for line in tables.read("corrections", folder):
        correction = _correction(line)
        for name in correction.applies_to:
            if name not in known:
                raise line.problem(f"applies to {name!r}, which is neither a row nor a claim")
        found[correction.id] = correction
    return MappingProxyType(found)


def notes_for(ids: Iterable[str], folder: Path | None = None) -> dict[str, tuple[Correction, ...]]:
    """Return the corrections that each of several rows or claims must carry; ids without any are left out."""
    wanted = dict.fromkeys(ids)
    every = corrections(folder).values()
    notes = {name: tuple(c for c in every if name in c.applies_to) for name in wanted}
    return {name: found for name, found in notes.items() if found}


def superseded(folder: Path | None = None) -> dict[str, str]:
    """Return the numbers that no longer stand, as printed, with the id of the correction that says so."""
    return {c.superseded: c.id for c in corrections(folder).values() if c.superseded}


def _correction(line: Line) -> Correction:
    cells = line.cells
    if cells["kind"] == "later fact" and not cells["source"]:
        raise line.problem("a later fact needs a source")
    if cells["kind"] != "book" and not (cells["card"] and cells["quote"]):
        raise line.problem("a correction of a card needs the card and a quote")
    return Correction(
        cells["id"],
        cells["card"],
        cells["kind"],
        cells["claimed"],
        cells["replaced_by"],
        cells["found"],
        cells["quote"],
        cells["superseded"],
        tuple(cells["applies_to"].split()),
        cells["source"],
        line,
    )
