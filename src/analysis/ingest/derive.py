"""What follows from printed numbers and their rounding, and what contradicts itself."""

from collections.abc import Sequence
from itertools import pairwise
from math import ceil, floor, isfinite

from analysis.ingest.model import MAX_POSITIONS, UNKNOWN, Known, exactly

ABSURD = 10**12
"""Tokens or milliseconds that no report of one server holds."""

_MOST_CANDIDATES = 20_000

_MOST_DIGITS = 40
_HALVES = tuple(0.5 * 10.0**-digits for digits in range(_MOST_DIGITS + 1))


def number(text: bytes) -> float | None:
    """Return a printed number, also `nan` and `inf`; None for what is none."""
    try:
        return float(text)
    except ValueError:
        return None


def half_unit(text: bytes) -> float:
    """Return half a unit of a printed number's last place."""
    point = text.find(b".")
    if point < 0:
        return _HALVES[0]
    digits = len(text) - point - 1
    return _HALVES[digits if digits < _MOST_DIGITS else _MOST_DIGITS]


def curve(text: bytes | None) -> tuple[tuple[float, ...], float, tuple[str, ...]]:
    """Return a printed curve, half a unit of its last place, and what is wrong with it."""
    if text is None or not text.strip():
        return (), 0.0005, ()
    parts = [part.strip() for part in text.split(b",")]
    values = [number(part) for part in parts[:MAX_POSITIONS]]
    if any(value is None for value in values):
        return (), 0.0005, ("a position that is no number",)
    problems = [f"more than {MAX_POSITIONS} positions"] if len(parts) > MAX_POSITIONS else []
    return tuple(value for value in values if value is not None), max(map(half_unit, parts)), tuple(problems)


def steps_of(
    accepted: int | None,
    drafted: int | None,
    *,
    mean_length: tuple[float, float] | None = None,
    survival: Sequence[float] = (),
    half: float = 0.0005,
    n_max: int | None = None,
) -> Known:
    """Return the verification steps behind a report that does not print them.

    A mean accepted length is 1 + accepted / steps, so its rounding leaves a range of steps. At every position the
    share of steps that survive is a whole number over the steps, and these numbers add up to the accepted tokens:
    that leaves few of the range, often one. Without a mean length a draft has 1 to n_max tokens.

    Args:
        accepted: accepted tokens.
        drafted: drafted tokens, an upper limit of the steps.
        mean_length: the printed mean and half a unit of its last place.
        survival: the printed shares at all positions.
        half: half a unit of their last place.
        n_max: the longest draft, where it is known.
    """
    if accepted is None or not 0 <= accepted <= ABSURD:
        return UNKNOWN
    low, high = _range(accepted, drafted, mean_length, n_max)
    if low is None or high is None or high < low:
        return UNKNOWN
    if not survival or high - low > _MOST_CANDIDATES:
        return Known(low, high, "derived" if low == high else "bounded")
    fitting = [steps for steps in range(max(1, low), high + 1) if _fits(steps, accepted, survival, half)]
    if not fitting:
        return UNKNOWN
    return exactly(fitting[0], "derived") if len(fitting) == 1 else Known(fitting[0], fitting[-1], "bounded")


def steps_from_mean(accepted: int, drafted: int, mean: float, half: float, n_max: int | None) -> Known:
    """Return what `steps_of` does without a curve, for counts and a mean of 1 and more that were looked at before."""
    fewest, most = ceil(accepted / (mean - 1 + half + 1e-9)), drafted
    if n_max and fewest * n_max < drafted:
        fewest = -(-drafted // n_max)
    below = mean - 1 - half - 1e-9
    if below > 0 and (most := floor(accepted / below)) > drafted:
        most = drafted
    if most <= fewest:
        return Known(fewest, most, "derived") if most == fewest else UNKNOWN
    return Known(fewest, most, "bounded")


def _range(
    accepted: int, drafted: int | None, mean_length: tuple[float, float] | None, n_max: int | None
) -> tuple[int | None, int | None]:
    low, high = None, drafted
    if n_max and drafted is not None:
        low = -(-drafted // n_max)
    if mean_length is not None and accepted:
        mean, half = mean_length
        above = mean - 1 + half + 1e-9
        below = mean - 1 - half - 1e-9
        if not isfinite(mean) or above <= 0:
            return None, None
        fewest = ceil(accepted / above)
        low = fewest if low is None or fewest > low else low
        if below > 0:
            most = floor(accepted / below)
            high = most if high is None or most < high else high
    return low, high


def _fits(steps: int, accepted: int, survival: Sequence[float], half: float) -> bool:
    fewest = most = 0
    for share in survival:
        low = ceil((share - half - 1e-9) * steps)
        high = floor((share + half + 1e-9) * steps)
        if high < low or high < 0:
            return False
        fewest, most = fewest + max(0, low), most + high
    return fewest <= accepted <= most


def counts_of(survival: Sequence[float], steps: int, half: float) -> tuple[int, ...]:
    """Return the steps that survived each position, or nothing where the rounding leaves more than one number."""
    counts = []
    for share in survival:
        low, high = ceil((share - half - 1e-9) * steps), floor((share + half + 1e-9) * steps)
        if low != high:
            return ()
        counts.append(low)
    return tuple(counts)


def problems_of(
    *,
    drafted: int | None,
    accepted: int | None,
    rate: float | None = None,
    rate_half: float = 0.0,
    mean_length: float | None = None,
    survival: Sequence[float] = (),
    half: float = 0.0005,
    other: Sequence[float | None] = (),
) -> tuple[str, ...]:
    """Return why a report cannot be true; empty if nothing speaks against it."""
    found = []
    if drafted is not None and accepted is not None:
        if accepted > drafted:
            found.append(f"{accepted} accepted of {drafted} drafted")
        elif rate is not None and drafted > 0 and not abs(rate - accepted / drafted) <= rate_half + 1e-6:
            found.append(f"a rate of {rate:g} where {accepted} of {drafted} is {accepted / drafted:.5f}")
    if rate is not None and not 0 <= rate <= 1:
        found.append(f"an acceptance of {rate:g}")
    if mean_length is not None and not 1 <= mean_length <= MAX_POSITIONS + 1:
        found.append(f"a mean accepted length of {mean_length:g}")
    if survival and any(not 0 <= share <= 1 for share in survival):
        found.append("a position's acceptance outside 0 to 1")
    elif survival and any(later > earlier + 2 * half + 1e-9 for earlier, later in pairwise(survival)):
        found.append("survival that rises along the positions")
    for value in (drafted, accepted, *other):
        if value is not None and not 0 <= value <= ABSURD:
            found.append(f"a count or time of {value:g}")
            break
    return tuple(found)
