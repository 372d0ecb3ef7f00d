"""What a consistency check finds."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, get_args

from analysis.evidence.interval import Interval
from analysis.evidence.published import Row

Outcome = Literal["holds", "fails", "underdetermined"]
OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)


@dataclass(frozen=True, slots=True)
class Finding:
    """One verdict of one check on one card.

    `low` and `high` bound the number the verdict rests on, in `unit`. `ask` says what the card's author would need
    to publish to settle it; it is empty where the check holds.
    """

    check: str
    card: str
    outcome: Outcome
    subject: str
    computed: Interval | None
    unit: str
    rows: tuple[str, ...]
    note: str
    ask: str = ""

    @property
    def low(self) -> float | None:
        """Return the lower bound."""
        return None if self.computed is None else float(self.computed.low)

    @property
    def high(self) -> float | None:
        """Return the upper bound."""
        return None if self.computed is None else float(self.computed.high)


Check = Callable[[Mapping[str, Row]], list[Finding]]


def shown(value: Interval, unit: str = "") -> str:
    """Return an interval for a sentence: the centre, and the bounds where they print differently."""
    low, centre, high = (f"{float(bound):.4g}" for bound in (value.low, value.centre, value.high))
    text = centre if low == centre == high else f"{centre} ({low} to {high})"
    return f"{text} {unit}".rstrip()
