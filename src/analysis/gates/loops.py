"""Repetition loops: where generated text begins to repeat itself to its end.

Small models that decode greedily fall into loops, and loops are drafted almost perfectly. A sample in which one
begins is no sample of its regime.

A loop is a tail that equals itself shifted by a period: at least three periods and at least 30 tokens of it, with a
period of at most 48 tokens. Two repetitions, or a short refrain, occur in honest code and prose. In text, lines that
differ only in their numbers ("1. ...", "2. ...") count as equal, since such counting goes on for ever in the same
way; numbers within one line do not, since a series of numbers can be what was asked for.
"""

import re
from collections.abc import Sequence
from itertools import accumulate

import numpy as np

MIN_PERIODS = 3
MIN_TOKENS = 30
MAX_PERIOD = 48

# About what a tokenizer does: a short word, a number or a sign, with the white space in front of it.
_UNIT = re.compile(r"\s*(?:_?[^\W\d_]{1,8}|\d+|[^\w\s]|_)")
_NUMBER = re.compile(r"\d+")


def loop_start(emitted: Sequence[int] | str) -> int | None:
    """Return where a loop begins that lasts to the end, or None if there is none.

    Args:
        emitted: token ids, then the result is an index of them; or text, then it is an index of its characters and
            a word (or eight letters of it), a number or a sign counts as a token.
    """
    if not isinstance(emitted, str):
        return _periodic_from(np.asarray(emitted, dtype=np.int64))
    units = _UNIT.findall(emitted)[:-1]  # a generation limit may have torn the last one
    starts = [0, *accumulate(len(unit) for unit in units)]
    found = [
        _periodic_from(_numbered(units)),
        _periodic_from(_numbered([_NUMBER.sub("0", unit) for unit in units]), must_hold=_line_ends(units)),
    ]
    return min((starts[index] for index in found if index is not None), default=None)


def _periodic_from(items: np.ndarray, must_hold: np.ndarray | None = None) -> int | None:
    """Return the first index of the longest periodic tail; every period must hold one of `must_hold`, if given."""
    first = None
    for period in range(1, min(MAX_PERIOD, len(items) // MIN_PERIODS) + 1):
        differs = np.flatnonzero(items[:-period] != items[period:])
        start = int(differs[-1]) + 1 if len(differs) else 0
        long_enough = len(items) - start >= max(MIN_PERIODS * period, MIN_TOKENS)
        if long_enough and (must_hold is None or must_hold[start : start + period].any()):
            first = start if first is None else min(first, start)
    return first


def _numbered(units: Sequence[str]) -> np.ndarray:
    numbers: dict[str, int] = {}
    return np.array([numbers.setdefault(unit, len(numbers)) for unit in units], dtype=np.int64)


def _line_ends(units: Sequence[str]) -> np.ndarray:
    return np.array(["\n" in unit for unit in units], dtype=bool)
