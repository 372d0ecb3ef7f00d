"""Exact interval arithmetic on rational numbers.

A bound is a `Fraction`, so sums, products and quotients of printed decimals are exact and no outward rounding is
needed. Each interval carries its `centre` along: what a reader with a calculator gets from the printed digits.

An expression in which every variable occurs once gets the exact range. Where one occurs twice, interval arithmetic
treats the two occurrences as independent and the range is too wide, never too narrow (Moore, Kearfott and Cloud,
Introduction to Interval Analysis, SIAM 2009, chapter 5).
"""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Union

Number = Union["Interval", Fraction, int]


@dataclass(frozen=True, slots=True)
class Interval:
    """All values from `low` to `high`, both included, and the `centre` that calculation without intervals gives.

    Raises:
        ValueError: the bounds are upside down or the centre lies outside them.
    """

    low: Fraction
    centre: Fraction
    high: Fraction

    def __post_init__(self) -> None:
        """Refuse an interval that is upside down."""
        if not self.low <= self.centre <= self.high:
            raise ValueError(
                f"interval is upside down: {float(self.low):g}, {float(self.centre):g}, {float(self.high):g}"
            )

    @classmethod
    def exactly(cls, value: Fraction | int) -> "Interval":
        """Return the interval that holds one number."""
        exact = Fraction(value)
        return cls(exact, exact, exact)

    @property
    def width(self) -> Fraction:
        """Return the distance between the bounds."""
        return self.high - self.low

    def __add__(self, other: Number) -> "Interval":
        """Return the range of sums."""
        b = interval(other)
        return Interval(self.low + b.low, self.centre + b.centre, self.high + b.high)

    def __neg__(self) -> "Interval":
        """Return the mirrored interval."""
        return Interval(-self.high, -self.centre, -self.low)

    def __sub__(self, other: Number) -> "Interval":
        """Return the range of differences."""
        return self + (-interval(other))

    def __mul__(self, other: Number) -> "Interval":
        """Return the range of products."""
        b = interval(other)
        corners = (self.low * b.low, self.low * b.high, self.high * b.low, self.high * b.high)
        return Interval(min(corners), self.centre * b.centre, max(corners))

    def __truediv__(self, other: Number) -> "Interval":
        """Return the range of quotients.

        Raises:
            ValueError: the divisor's interval holds zero.
        """
        b = interval(other)
        if b.low <= 0 <= b.high:
            raise ValueError("division by an interval that holds zero")
        return self * Interval(1 / b.high, 1 / b.centre, 1 / b.low)

    def __radd__(self, other: Number) -> "Interval":
        """Return the range of sums."""
        return interval(other) + self

    def __rsub__(self, other: Number) -> "Interval":
        """Return the range of differences."""
        return interval(other) - self

    def __rmul__(self, other: Number) -> "Interval":
        """Return the range of products."""
        return interval(other) * self

    def __rtruediv__(self, other: Number) -> "Interval":
        """Return the range of quotients."""
        return interval(other) / self

    def __abs__(self) -> "Interval":
        """Return the range of absolute values."""
        outer = max(abs(self.low), abs(self.high))
        inner = Fraction(0) if self.low <= 0 <= self.high else min(abs(self.low), abs(self.high))
        return Interval(inner, abs(self.centre), outer)

    def overlaps(self, other: "Interval") -> bool:
        """Return whether the two have a value in common."""
        return self.low <= other.high and other.low <= self.high

    def holds(self, value: Fraction) -> bool:
        """Return whether the value lies in the interval."""
        return self.low <= value <= self.high

    def gap(self, other: "Interval") -> Fraction:
        """Return how far apart the two lie; 0 where they overlap."""
        return max(self.low - other.high, other.low - self.high, Fraction(0))


def interval(value: Number) -> Interval:
    """Return a number as an interval."""
    return value if isinstance(value, Interval) else Interval.exactly(value)


def smallest(values: list[Interval]) -> Interval:
    """Return the range of the smallest of several values."""
    return _bound_by_bound(min, values)


def largest(values: list[Interval]) -> Interval:
    """Return the range of the largest of several values."""
    return _bound_by_bound(max, values)


def hull(values: list[Interval]) -> Interval:
    """Return the interval that holds several; its centre is the mean of theirs."""
    centre = Fraction(sum(v.centre for v in values), len(values))
    return Interval(min(v.low for v in values), centre, max(v.high for v in values))


def corners(function: Callable[..., Fraction], *arguments: Interval) -> Interval:
    """Return the exact range of a function that rises or falls throughout in each of its arguments.

    It is evaluated at every corner of the box of arguments, so a variable may occur in it as often as it likes.
    """
    values = [function(*(a.centre for a in arguments))]
    for mask in range(2 ** len(arguments)):
        values.append(function(*(a.high if mask >> i & 1 else a.low for i, a in enumerate(arguments))))
    return Interval(min(values), values[0], max(values))


def _bound_by_bound(choose: Callable[..., Fraction], values: list[Interval]) -> Interval:
    return Interval(choose(v.low for v in values), choose(v.centre for v in values), choose(v.high for v in values))
