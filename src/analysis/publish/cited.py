"""Numbers that lead to their row, and carry their corrections wherever they stand.

A `Cite` is a piece of text with the ids of the published rows or claims behind it. Where it is shown, it links to its
entry on the page of sources, and each correction that applies to it stands in the margin beside it. A page has no other
way to show a published number, so that none can lose its note.
"""

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path

import pandas as pd

from analysis.evidence import claims, published
from analysis.evidence.corrections import Correction, notes_for
from analysis.publish.formats import visible
from analysis.publish.tables import Html
from analysis.records import Problem

SOURCES, CORRECTIONS = "17_sources.html", "13_corrections.html"


@dataclass(frozen=True)
class Cite:
    """Text that leads to the row or claim it comes from; `ids` are all that stand behind it, the first is linked."""

    text: str
    ids: tuple[str, ...]
    page: str = SOURCES


@dataclass(frozen=True)
class Anchor:
    """Text of a row that links lead to by this id."""

    text: str
    id: str


@dataclass(frozen=True)
class Noted:
    """Text that carries the corrections of a row or claim without leading to it, because its entry is right here."""

    text: str
    id: str


@dataclass(frozen=True)
class Several:
    """Several pieces in one cell, separated by commas."""

    parts: tuple[Cite | str, ...]


Cell = Cite | Anchor | Noted | Several | str | float | int | None


def use_data(folder: str) -> None:
    """Take the tables from another data folder for the rest of this process; an empty name leaves them as they are."""
    if folder:
        os.environ["SPECBOOK_DATA"] = str(Path(folder).resolve())


def cite(name: str, text: str = "") -> Cite:
    """Return a published number as printed, or other text about it.

    Raises:
        Problem: no row and no claim has this id.
    """
    row, claim = published.rows().get(name), claims.claims().get(name)
    if row is None and claim is None:
        raise Problem(f"no published row or claim is called {name}")
    return Cite(text or (row.printed.text if row else claim.printed if claim else ""), (name,))


def cites(names: Iterable[str], page: str = SOURCES) -> Several:
    """Return ids as links to their entries; constants, which no card printed, are text.

    Args:
        names: the ids.
        page: where the entries stand; empty for the page that shows the links.
    """
    known = published.rows().keys() | claims.claims().keys()
    return Several(tuple(Cite(name, (name,), page) if name in known else name for name in names))


def source_link(name: str) -> str:
    """Return the address of a row or claim, relative to a chapter."""
    return f"{SOURCES}#{name}"


@dataclass
class _Notes:
    """The corrections that the pieces of one table or paragraph have asked for, numbered as they come."""

    prefix: str
    shown: bool = True
    numbers: dict[str, int] = field(default_factory=dict)
    found: list[Correction] = field(default_factory=list)

    def marks(self, ids: Sequence[str]) -> str:
        if not self.shown:
            return ""
        asked = {c.id: c for notes in notes_for(ids).values() for c in notes}
        return "".join(self._mark(correction) for correction in asked.values())

    def _mark(self, correction: Correction) -> str:
        if correction.id not in self.numbers:
            self.numbers[correction.id] = len(self.numbers) + 1
            self.found.append(correction)
        number = self.numbers[correction.id]
        return (
            f'<sup class="correction-mark" data-correction="{escape(correction.id)}">'
            f'<a href="#{self.prefix}-note-{number}" aria-label="correction {number}">{number}</a></sup>'
        )

    def html(self) -> str:
        if not self.found:
            return ""
        items = "".join(
            f'<li id="{self.prefix}-note-{number}" data-correction="{escape(c.id)}">{_text(c.note)} '
            f'<a href="{CORRECTIONS}#correction-{escape(c.id)}">{_KINDS[c.kind]}</a></li>'
            for number, c in enumerate(self.found, 1)
        )
        return f'<aside class="margin correction-notes" aria-label="Corrections"><ol>{items}</ol></aside>'


_KINDS = {
    "declared": "Declared by the card",
    "audit": "Found by recomputing",
    "later fact": "Public since",
    "book": "This book's own",
}


def cited_table(
    rows: Sequence[Sequence[Cell]],
    headings: Sequence[str],
    caption: str,
    name: str,
    *,
    wide: Sequence[str] = (),
    digits: int = 2,
    notes: bool = True,
) -> Html:
    """Return a table whose numbers lead to their rows, with their corrections in the margin beside it.

    Args:
        rows: the cells of each row; the first names the row.
        headings: one for each column.
        caption: what the table shows.
        name: its anchor.
        wide: headings of columns that hold sentences.
        digits: decimals of floats.
        notes: show the corrections; not where they are the table's own subject.

    Raises:
        Problem: a row has another number of cells than there are headings.
    """
    beside = _Notes(name, shown=notes)
    lines = []
    for row in rows:
        if len(row) != len(headings):
            raise Problem(f"a row of table {name} has {len(row)} cells", expected=f"{len(headings)}")
        first, *others = (_cell(cell, beside, digits) for cell in row)
        inner = "".join(f"<td{_class(cell)}>{text}</td>" for cell, text in zip(row[1:], others, strict=True))
        lines.append(f'<tr{_row_id(row)}><th scope="row">{first}</th>{inner}</tr>')
    wider = ' class="wide"'
    head = "".join(f'<th scope="col"{wider * (heading in wide)}>{_text(heading)}</th>' for heading in headings)
    label = escape(caption, quote=True)
    body = "\n".join(lines)
    return Html(
        f'<div class="cited" id="{name}">{beside.html()}'
        f'<div class="cited-scroll" tabindex="0" role="region" aria-label="{label}"><table class="table">\n'
        f"<caption>{_text(caption)}</caption>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody></table></div></div>",
        f"{caption} ({len(rows)} rows)",
    )


def cited_text(*pieces: Cite | str, name: str) -> Html:
    """Return a paragraph whose published numbers lead to their rows and carry their corrections."""
    notes = _Notes(name)
    text = "".join(_cell(piece, notes, 2) for piece in pieces)
    plain = "".join(piece if isinstance(piece, str) else piece.text for piece in pieces)
    return Html(f'<div class="cited" id="{name}">{notes.html()}<p>{text}</p></div>', plain)


def chart_columns(frame: pd.DataFrame, ids: str = "id") -> pd.DataFrame:
    """Return a frame for a chart whose marks lead to their rows: with `href`, and `correction`: is there one?"""
    notes: Mapping[str, tuple[Correction, ...]] = notes_for(frame[ids])
    return frame.assign(
        href=[source_link(name) for name in frame[ids]],
        correction=["see the table" if name in notes else "none" for name in frame[ids]],
    )


def corrected(names: Iterable[str]) -> str:
    """Return what a chart's note says of corrections: how many of its points carry one."""
    wanted = list(dict.fromkeys(names))
    count = len(notes_for(wanted))
    return f"Corrections apply to {count} of {len(wanted)} values; the table shows them." if count else ""


def _cell(cell: Cell, notes: _Notes, digits: int) -> str:
    match cell:
        case Cite():
            others = f' data-ids="{escape(" ".join(cell.ids))}"' * (len(cell.ids) > 1)
            return (
                f'<a class="cite"{others} href="{cell.page}#{cell.ids[0]}">'
                f"{_text(cell.text)}</a>{notes.marks(cell.ids)}"
            )
        case Noted() | Anchor():
            return f"{_text(cell.text)}{notes.marks((cell.id,) if isinstance(cell, Noted) else ())}"
        case Several():
            return ", ".join(_cell(part, notes, digits) for part in cell.parts) or "–"
        case float() if not pd.isna(cell):
            return f"{cell:.{digits}f}"
        case None | float():
            return "–"
        case _:
            return _text(str(cell))


def _class(cell: Cell) -> str:
    return ' class="number"' if isinstance(cell, float | int) else ""


def _row_id(row: Sequence[Cell]) -> str:
    anchors = [cell.id for cell in row if isinstance(cell, Anchor)]
    return f' id="{escape(anchors[0])}"' if anchors else ""


def _text(text: str) -> str:
    return escape(visible(text), quote=False)
