"""What a printed number means: an interval.

The conventions, which every computation in this room rests on:

- A plain number is known to half a unit of its last digit: 9.05 means 9.045 to 9.055, +43% means 42.5 to 43.5.
- A plain whole number of things that are counted (tokens, tensors) is exact.
- `~`, `around`, `about`, `something like` give up that claim: a whole unit of the last digit either way, zeros at
  the end of a whole number not counted as digits (~380 is 380 +- 10), and never more than a quarter of the value
  (around 2 is 2 +- 0.5).
- `0.537 - 0.543` runs from the lower end's lower bound to the upper end's upper bound; both ends keep their own
  interval, so that a claim about an end can be held against that end.
- `k` multiplies by 1000. `a third`, `a quarter` and `half` are numbers that say `about`.
"""

import re
from dataclasses import dataclass
from fractions import Fraction

from analysis.evidence.interval import Interval
from analysis.records.errors import Problem

_APPROXIMATE = r"(?:~|≈|about|around|roughly|something like)"
_NUMBER = r"[+\-−]?\d{1,3}(?:,\d{3})+(?:\.\d+)?|[+\-−]?\d+(?:\.\d+)?"
_UNIT = r"[^\d+\-−–,.]{0,16}"
_PATTERN = re.compile(
    rf"^(?P<approx>{_APPROXIMATE})?\s*(?P<first>{_NUMBER})(?P<k1>k\b|K\b)?(?P<u1>{_UNIT}?)"
    rf"(?:\s*(?:–|-|to)\s*(?P<second>{_NUMBER})(?P<k2>k\b|K\b)?(?P<u2>{_UNIT}))?$",
    re.IGNORECASE,
)
_WORDS = {"a third": Fraction(1, 3), "a quarter": Fraction(1, 4), "half": Fraction(1, 2)}


@dataclass(frozen=True, slots=True)
class Printed:
    """A printed number or range: its text, and the interval of each end (the same twice for a single number)."""

    text: str
    first: Interval
    last: Interval

    @property
    def is_range(self) -> bool:
        """Return whether two ends were printed."""
        return self.first is not self.last

    @property
    def interval(self) -> Interval:
        """Return all that the text may mean; the centre lies halfway between printed ends."""
        return Interval(self.first.low, (self.first.centre + self.last.centre) / 2, self.last.high)


def parse(text: str, *, whole: bool = False) -> Printed:
    """Return what a printed number means.

    Args:
        text: the number as printed, with its unit or without.
        whole: the unit counts things, so that a plain whole number is exact.

    Raises:
        Problem: the text is no number, or a range that is upside down.
    """
    plain = " ".join(text.split())
    in_words = plain.casefold().removeprefix("about ")
    if in_words in _WORDS:
        end = _approximate(_WORDS[in_words], unit=_WORDS[in_words])
        return Printed(text, end, end)
    match = _PATTERN.match(plain)
    if match is None:
        raise Problem(f"{text!r} is not a printed number", expected="such as 9.05, ~8%, +41-47% or 0.537 – 0.543")
    thousand = match["k1"] or (match["k2"] if match["second"] else None)
    first = _end(match["first"], thousand, approximate=bool(match["approx"]), whole=whole)
    if match["second"] is None:
        return Printed(text, first, first)
    last = _end(match["second"], match["k2"], approximate=bool(match["approx"]), whole=whole)
    if first.centre > last.centre:
        raise Problem(f"the range {text!r} is upside down", expected="the lower end first")
    return Printed(text, first, last)


def _end(digits: str, thousand: str | None, *, approximate: bool, whole: bool) -> Interval:
    plain = digits.replace(",", "").replace("−", "-")
    scale = 1000 if thousand else 1
    value = Fraction(plain) * scale
    decimals = len(plain.partition(".")[2])
    if approximate:
        zeros = 0 if decimals else len(plain) - len(plain.rstrip("0"))
        return _approximate(value, unit=Fraction(10) ** (zeros - decimals) * scale)
    if whole and not decimals and not thousand:
        return Interval.exactly(value)
    half = Fraction(1, 2) * Fraction(10) ** -decimals * scale
    return Interval(value - half, value, value + half)


def _approximate(value: Fraction, unit: Fraction) -> Interval:
    reach = min(unit, abs(value) / 4) if value else unit
    return Interval(value - reach, value, value + reach)
