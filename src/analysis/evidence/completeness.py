"""Is every number of a card accounted for? Counted by position, so that no occurrence hides behind another.

The cards' text is not part of the repository. Where a reader has it (`card-a.txt` and `card-b.txt` in one folder),
every number in it must lie inside the printed text of a value or a claim, or be listed in `uncovered.csv` with a
reason from a short closed list.
"""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from analysis.evidence import claims as ledger
from analysis.evidence import published, tables
from analysis.evidence.corrections import corrections
from analysis.evidence.printed import Printed, parse
from analysis.evidence.tables import Line
from analysis.records.errors import Problem

# Digits with their thousands separators and decimal points, wherever they stand, also inside names.
_NUMBER = re.compile(r"\d+(?:,\d{3})*(?:\.\d+)*")
# A label such as "24K" for 24,530 tokens is rounded loosely.
LABEL_TOLERANCE = 0.03


@dataclass(frozen=True, slots=True)
class Coverage:
    """What became of the numbers of one card: how many by kind, and those that nothing accounts for."""

    card: str
    counts: Counter[str]
    open: tuple[str, ...]

    def raise_if_open(self) -> None:
        """Stop where a number is not accounted for.

        Raises:
            Problem: how many there are, and the first with its surroundings.
        """
        if self.open:
            raise Problem(
                f"{len(self.open)} numbers of card {self.card} are not accounted for, the first in {self.open[0]!r}",
                remedy="add a row to values.csv or claims.csv, or a reason to uncovered.csv",
            )


def card_text(folder: Path, card: str) -> str:
    """Return a card's text with runs of white space as single spaces.

    Raises:
        Problem: the file is not there.
    """
    path = folder / f"card-{card.lower()}.txt"
    try:
        return " ".join(path.read_text(encoding="utf-8").split())
    except OSError as error:
        raise Problem(f"{path} cannot be read: {error.strerror}", expected="the text of a card") from None


def coverage(folder: Path, card: str, data: Path | None = None) -> Coverage:
    """Return what accounts for each number of a card.

    Args:
        folder: where the cards' texts lie.
        card: `A` or `B`.
        data: where the tables lie; the checkout's `data/published` if not given.

    Raises:
        Problem: a quote is not in the card, or not as often as its line says (file, line, reason).
    """
    text = card_text(folder, card)
    kinds: dict[int, str] = {}
    for line, kind in _lines(card, data):
        for start, end in _spans(line, text):
            for number in _NUMBER.finditer(text, start, end):
                kinds.setdefault(number.start(), kind)
    numbers = list(_NUMBER.finditer(text))
    left = [n for n in numbers if n.start() not in kinds]
    counts = Counter(kinds[n.start()] for n in numbers if n.start() in kinds)
    return Coverage(card, counts, tuple(text[max(0, n.start() - 30) : n.end() + 20] for n in left))


def check_repeats(data: Path | None = None) -> None:
    """Hold each repeated value, and each factor's label, against the row that it repeats.

    Raises:
        Problem: a line of `uncovered.csv` names no row, or its number is not that row's (file, line, reason).
    """
    named = ledger.values(ledger.claims(data), data)
    for line in tables.read("uncovered", data):
        reason, of = line.cells["reason"], line.cells["repeats"]
        if reason in ("repeated value", "factor of a row"):
            if of not in named:
                raise line.problem(f"repeats {of!r}, which no row has")
            _check_repeat(line, named[of], of, data)
        elif of:
            raise line.problem(f"a {reason} repeats no row")


def _check_repeat(line: Line, original: Printed, of: str, data: Path | None) -> None:
    here = parse(line.cells["printed"])
    if line.cells["reason"] == "repeated value":
        if not here.interval.overlaps(original.interval):
            raise line.problem(f"{here.text!r} is not the value of {of}")
        return
    row = published.rows(data).get(of)
    stated = [float(v) for v in row.factors.values() if _NUMBER.fullmatch(v)] if row else []
    value = float(here.interval.centre)
    if not any(abs(value - s) <= LABEL_TOLERANCE * abs(s) for s in stated):
        raise line.problem(f"no factor of {of} is {here.text!r}")


def check_quotes(folder: Path, data: Path | None = None) -> int:
    """Hold every quote of a correction against the card's text and return how many there were.

    Raises:
        Problem: a quote is not in its card (file, line, reason).
    """
    quoted = [c for c in corrections(data).values() if c.quote]
    for correction in quoted:
        next(_spans(correction.line, card_text(folder, correction.card)), None)
    return len(quoted)


def _lines(card: str, data: Path | None) -> Iterator[tuple[Line, str]]:
    for row in published.rows(data).values():
        if row.card == card:
            yield row.line, "measured value"
    for claim in ledger.claims(data).values():
        if claim.card == card:
            yield claim.line, "derived statement"
    for line in tables.read("uncovered", data):
        if line.cells["card"] == card:
            yield line, line.cells["reason"]


def _spans(line: Line, text: str) -> Iterator[tuple[int, int]]:
    quote, printed = (" ".join(line.cells.get(name, "").split()) for name in ("quote", "printed"))
    places = [match.start() for match in re.finditer(re.escape(quote), text)]
    if not places:
        raise line.problem(f"the quote {quote!r} is not in card {line.cells['card']}")
    times = int(line.cells.get("times", "") or 1)
    if len(places) != times and any(c.isdigit() for c in printed):
        raise line.problem(f"the quote {quote!r} stands {len(places)} times in card {line.cells['card']}, not {times}")
    inner = [m.start() for m in re.finditer(rf"(?<![\d.,]){re.escape(printed)}(?!\d)", quote)]
    if len(inner) != 1 and any(c.isdigit() for c in printed):
        raise line.problem(f"{printed!r} stands {len(inner)} times in its quote, not once")
    for place in places:
        for offset in inner:
            yield place + offset, place + offset + len(printed)
