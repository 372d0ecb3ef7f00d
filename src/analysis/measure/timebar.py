"""A bar for a phase that a budget ends: it fills with time, because nobody knows how many samples there will be."""

import time
from collections.abc import Callable
from types import TracebackType
from typing import Self

from tqdm import tqdm

MINUTE = 60


class TimeBar:
    """Shows what is going on, how many samples were measured, and how much of the budget is left.

    Args:
        what: the phase.
        seconds: how long it may take. Past that, a sample that began is finished and those that must be there follow.
        clock: tells the time in seconds.
    """

    def __init__(self, what: str, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._what = what
        self._seconds = seconds
        self._clock = clock
        self._began = clock()
        self._samples = 0
        self._bar = tqdm(total=max(seconds, 1e-9), desc=self._said(), bar_format="{desc} |{bar}|")

    def __enter__(self) -> Self:
        """Return the bar."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Leave the bar as it is."""
        self.update(0)
        self._bar.close()

    def update(self, samples: int) -> None:
        """Count samples and show the time."""
        self._samples += samples
        spent = min(self._clock() - self._began, self._bar.total)
        self._bar.set_description_str(self._said(), refresh=False)
        self._bar.update(spent - self._bar.n)

    def _said(self) -> str:
        left = max(0, round(self._seconds - (self._clock() - self._began)))
        rest = f"{left // MINUTE}:{left % MINUTE:02} of the budget left" if left else "the budget is spent"
        return f"{self._what}: {self._samples} samples, {rest}"
