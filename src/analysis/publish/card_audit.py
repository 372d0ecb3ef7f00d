"""Does every number of a model card follow from the run that it names?

The run's own card is made again with 12 decimals and each line of the given card is held against the line of it that
fits best. A printed number agrees if the recomputed one lies within half a unit of its last digit, so that a card may
round more than this library does. A line that the run's card does not have is the author's own: its numbers are looked
up among all numbers of the run, which is a weaker test and is said to be.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

from huggingface_hub import ModelCard

from analysis.evidence.printed import parse
from analysis.measure.study import Study, open_study
from analysis.publish.card import CardOptions, card_text, check_card
from analysis.records import Problem

Outcome = Literal["follows", "elsewhere", "differs", "unknown"]

MOST_BYTES = 1_000_000
_MASK = "\N{OBJECT REPLACEMENT CHARACTER}"
# A word without the brackets and stops around it. Those with a digit are numbers: 0.54, 17,825,632, 0c1e570.
_WORD = re.compile(r"(?:[^\s\[\](){}|,;`*_'\"\\]|,(?=\d{3}(?!\d))|_(?=\w))+")
_DIGIT = re.compile(r"\d")
_PLAIN = re.compile(r"[+\-−]?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?")
_COUNTED = re.compile(r"^\s*(?:\d+[.)]|[-*+])\s+")
_FIELD = re.compile(r"^ *(?:- )?(config|type): (.*)$")
_VALUE = re.compile(r"^ *(?:- )?value: ")
_RULE = re.compile(r"^\|(?:\s*:?-+:?\s*\|)+\s*$")


@dataclass(frozen=True, slots=True)
class Checked:
    """One number of a card: the line it stands in, the number as printed, and what the run gives instead.

    `follows`: the same statement of the run gives it. `elsewhere`: the run has such a number, in another place.
    `differs`: the same statement gives `expected`. `unknown`: the run has no such number.
    """

    line: int
    printed: str
    outcome: Outcome
    expected: str = ""

    def plain(self) -> dict[str, Any]:
        """Return it as data that JSON can hold."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Line:
    """A line with the table it belongs to (the cells of its heading), its words, and its numbers."""

    number: int
    text: str
    table: str

    @property
    def tokens(self) -> tuple[str, ...]:
        """Return the words with digits in them."""
        return _tokens(_COUNTED.sub("", self.text))

    @property
    def words(self) -> tuple[int, str]:
        """Return how many numbers the line has, and the line with these blanked."""
        return len(self.tokens), _blank(_COUNTED.sub("", self.text))

    @property
    def cells(self) -> list[str]:
        """Return the cells of a line of a table."""
        return [cell.strip() for cell in re.split(r"(?<!\\)\|", self.text.strip())[1:-1]]


def audit_card(path: Path, run: str = "") -> list[Checked]:
    """Return what can be said of every number of a card.

    Args:
        path: the card.
        run: the run that it is about; by default the one that its header names.

    Raises:
        Problem: the card cannot be read, its header is not valid, or there is no such run.
    """
    text = read_card(path)
    card = check_card(text)
    name = run or _named(card, path)
    options = CardOptions(
        str(card.data.get("model_name") or ""), _first(card.data.get("base_model")), str(card.data.get("license") or "")
    )
    return check_numbers(text, exact_card(open_study(name), options))


def written_of(path: Path, run: str = "") -> tuple[int, int] | None:
    """Return the samples that a card says its run had, and those that the run has now; None if it does not say.

    Args:
        path: the card.
        run: the run that it is about; by default the one that its header names.

    Raises:
        Problem: as for `audit_card`.
    """
    text = read_card(path)
    study = open_study(run or _named(check_card(text), path))
    said = re.search(rf"run `{re.escape(study.run.id)}`, ([\d,]+) samples\b", text)
    return None if said is None else (int(said[1].replace(",", "")), len(study.samples))


def _named(card: ModelCard, path: Path) -> str:
    named = card.data.get("specbook")
    name = str(named.get("run", "")) if isinstance(named, dict) else ""
    if not name:
        raise Problem(
            f"{path.name} names no run", expected="`specbook: {run: ...}` in its header", remedy="give it with --run"
        )
    return name


def exact_card(study: Study, options: CardOptions) -> str:
    """Return the run's own card with 12 decimals."""
    return card_text(study, options, exact=True)


def read_card(path: Path) -> str:
    """Return the text of a card.

    Raises:
        Problem: it is missing, no UTF-8, or larger than any card is.
    """
    try:
        with path.open("rb") as file:
            data = file.read(MOST_BYTES + 1)
        text = data.decode("utf-8-sig")
    except OSError as error:
        raise Problem(f"{path} cannot be read: {error.strerror}", expected="a model card, a Markdown file") from None
    except UnicodeDecodeError:
        raise Problem(f"{path} is no UTF-8 text", expected="a model card, a Markdown file") from None
    if len(data) > MOST_BYTES:
        raise Problem(f"{path} has more than {MOST_BYTES:,} bytes", expected="a model card")
    return text.replace("\r\n", "\n").replace("\r", "\n")


def check_numbers(card: str, exact: str) -> list[Checked]:
    """Return what can be said of every number of a card, given the run's own card with all decimals."""
    known = list(_lines(exact))
    by_table: dict[str, list[Line]] = {}
    by_words: dict[tuple[int, str], list[Line]] = {}
    for line in known:
        by_table.setdefault(line.table, []).append(line)
        by_words.setdefault(line.words, []).append(line)
    numbers = [value for line in known for token in line.tokens if (value := _value(token)) is not None]
    found: list[Checked] = []
    for line in _lines(card):
        if line.table and line.table in by_table:
            found += _row(line, by_table[line.table])
        elif line.words in by_words:
            found += _statement(line, by_words[line.words])
        else:
            found += _own(line, numbers, exact)
    return found


def _lines(text: str) -> Iterator[Line]:
    """Yield the lines that can hold numbers: a header's with the name of what they belong to, a table's rows."""
    heading, fenced = "", False
    head = text.partition("\n---\n")[0].count("\n") + 1 if text.startswith("---\n") else 0
    yield from _header_lines(text.splitlines()[:head])
    for number, line in enumerate(text.splitlines()[head:], head + 1):
        fenced ^= line.lstrip().startswith("```")
        if line.startswith("|") and not fenced:
            heading = heading or line
            if not _RULE.match(line):
                yield Line(number, line, " ".join(heading.split()) if line != heading else "")
            continue
        heading = ""
        yield Line(number, line, "")


def _header_lines(lines: list[str]) -> Iterator[Line]:
    """Yield the lines of a header; a metric's value with the data set and the type that stand above it."""
    above: dict[str, str] = {}
    for number, line in enumerate(lines, 1):
        if match := _FIELD.match(line):
            above[match[1]] = match[2]
        place = f" {above.get('config', '')} {above.get('type', '')}" if _VALUE.match(line) else ""
        yield Line(number, f"{line}{place}", "")


def _row(line: Line, rows: list[Line]) -> Iterator[Checked]:
    """Hold a row of a table against the row that agrees in most cells."""
    best = max(rows, key=lambda row: sum(_cell_agrees(a, b) for a, b in zip(line.cells, row.cells, strict=False)))
    for mine, theirs in zip(line.cells, best.cells, strict=False):
        if _alike(mine, theirs):
            yield from _pairs(line.number, _tokens(mine), _tokens(theirs))
        else:
            yield Checked(line.number, mine, "differs", theirs)


def _statement(line: Line, others: list[Line]) -> Iterator[Checked]:
    """Hold a line against those of the same words: the one that agrees in most numbers."""
    best = max(others, key=lambda other: sum(map(_agrees, line.tokens, other.tokens)))
    yield from _pairs(line.number, line.tokens, best.tokens)


def _own(line: Line, numbers: list[Fraction], exact: str) -> Iterator[Checked]:
    """Look up the numbers of a line that the run's card does not have."""
    for token in line.tokens:
        if _PLAIN.fullmatch(token):
            printed = parse(token).interval
            there = any(printed.holds(number) for number in numbers)
        else:
            there = re.search(rf"(?<!\w){re.escape(token)}(?!\w)", exact) is not None
        yield Checked(line.number, token, "elsewhere" if there else "unknown")


def _pairs(number: int, mine: Sequence[str], theirs: Sequence[str]) -> Iterator[Checked]:
    for token, other in zip(mine, theirs, strict=True):
        outcome: Outcome = "follows" if _agrees(token, other) else "differs"
        yield Checked(number, token, outcome, "" if outcome == "follows" else _rounded(other))


def _agrees(token: str, exact: str) -> bool:
    if token == exact:
        return True
    value = _value(exact)
    if value is None or not _PLAIN.fullmatch(token):
        return False
    # What is exact in the run, a count or a size, is a whole number there and must be the same one here.
    return "." in exact and parse(token).interval.holds(value)


def _value(token: str) -> Fraction | None:
    return Fraction(token.replace(",", "").replace("−", "-")) if _PLAIN.fullmatch(token) else None


def _rounded(token: str) -> str:
    value = _value(token)
    return f"{float(value):.5g}" if value is not None and "." in token else token


# Every row of a card is held against every row of the same table, so cells are read many times.
@lru_cache(maxsize=200_000)
def _cell_agrees(mine: str, theirs: str) -> bool:
    return _alike(mine, theirs) and all(map(_agrees, _tokens(mine), _tokens(theirs)))


def _alike(mine: str, theirs: str) -> bool:
    """Return whether two cells say the same but for their numbers."""
    return _blank(mine) == _blank(theirs) and len(_tokens(mine)) == len(_tokens(theirs))


@lru_cache(maxsize=50_000)
def _tokens(text: str) -> tuple[str, ...]:
    return tuple(found.rstrip(".:!?,") for found in _WORD.findall(text) if _DIGIT.search(found))


@lru_cache(maxsize=50_000)
def _blank(text: str) -> str:
    return " ".join(_WORD.sub(lambda found: _MASK if _DIGIT.search(found[0]) else found[0], text).split())


def _first(value: object) -> str:
    return str(value[0]) if isinstance(value, list) and value else str(value or "")


def failures(found: Iterable[Checked]) -> list[Checked]:
    """Return the numbers that do not follow from the run."""
    return [one for one in found if one.outcome in ("differs", "unknown")]
