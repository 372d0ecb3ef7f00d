"""How often intervals held the truth: with prompts settled beforehand, and with stopping when it pleases."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from analysis.measure.calibration.synthetic import SyntheticCell
from analysis.records.model import Count, record
from analysis.stats import Interval, Rule, acceptance, exact_share, mean_t
from analysis.stats.synthetic import Truth, mean_share, truth

SIZES = (3, 5, 8, 10, 20, 40)
STOP_WIDTHS = (0.3, 0.2)
STOPPING_REQUESTS = 40
"""Requests that a cell may spend before it stops: several measured cells of one rate make one of so many."""
LEAST = 3


@record
class Coverage:
    """Of `cells` intervals `shown` had limits, and of those `covered` held the truth.

    `prompts` stand behind each. `width` is the median width of the shown.
    """

    quantity: str
    prompts: Count
    cells: Count
    shown: Count
    covered: Count
    width: float

    @property
    def share(self) -> Interval:
        """Return the coverage of the shown with its own exact interval."""
        return exact_share(self.covered, self.shown, unit="cells")


@record
class Stopping:
    """Cells that were looked at after every prompt and stopped once an interval was narrow enough, or prompts ran out.

    `width` is what was asked for. `covered` of `cells` valid intervals held the truth where they stopped, and `held`
    at every look before too; `fixed_covered` is the plain interval's count where *it* first became so narrow. `price`
    is the median of the valid interval's width over the plain one's at the last prompt.
    """

    width: float
    cells: Count
    covered: Count
    held: Count
    fixed_covered: Count
    prompts: float
    fixed_prompts: float
    price: float


def coverage_of(cells: Sequence[SyntheticCell], sizes: Iterable[int] = SIZES) -> list[Coverage]:
    """Return coverage by quantity and number of prompts, all rates together.

    Of a cell, the first requests stand for a cell of fewer.
    """
    truths = {(cell.rates, cell.emitted): truth(cell.rates, cell.emitted) for cell in cells}
    rows = []
    for size in sizes:
        found: dict[str, list[tuple[Interval, float]]] = {}
        for cell in cells:
            if len(cell.drafted) < size:
                continue
            for quantity, interval, expected in _estimates(cell, size, truths[cell.rates, cell.emitted]):
                found.setdefault(quantity, []).append((interval, expected))
        rows += [count(quantity, size, pairs) for quantity, pairs in found.items()]
    return rows


def merged(cells: Sequence[SyntheticCell], requests: int) -> list[SyntheticCell]:
    """Return cells of at least so many requests, each made of the next cells of one rate; the rest is left out.

    Every request has coins of its own, so that requests of several cells of one rate are as good as those of one.
    """
    found: list[SyntheticCell] = []
    open_cells: dict[tuple[float, ...], SyntheticCell] = {}
    for cell in sorted(cells, key=lambda cell: cell.number):
        before = open_cells.pop(cell.rates, None)
        longer = (
            cell
            if before is None
            else replace(before, drafted=before.drafted + cell.drafted, accepted=before.accepted + cell.accepted)
        )
        if len(longer.drafted) >= requests:
            found.append(longer)
        else:
            open_cells[cell.rates] = longer
    return found


def count(quantity: str, prompts: int, pairs: Sequence[tuple[Interval, float]]) -> Coverage:
    """Return the coverage of intervals, each beside what it should hold."""
    shown = [(interval, expected) for interval, expected in pairs if interval.shown]
    widths = [limits[1] - limits[0] for interval, _ in shown if (limits := interval.limits)]
    return Coverage(
        quantity=quantity,
        prompts=prompts,
        cells=len(pairs),
        shown=len(shown),
        covered=sum(interval.contains(expected) for interval, expected in shown),
        width=float(np.median(widths)) if widths else 0.0,
    )


def stopping_of(cells: Sequence[SyntheticCell], widths: Iterable[float] = STOP_WIDTHS) -> list[Stopping]:
    """Return what stopping does to coverage: of the mean over prompts of each prompt's own acceptance."""
    means = {(cell.rates, cell.emitted): mean_share(cell.rates, cell.emitted) for cell in cells}
    shares = [(_shares(cell), means[cell.rates, cell.emitted]) for cell in cells]
    return [_stopping(shares, width) for width in widths]


def _stopping(shares: Sequence[tuple[np.ndarray, float]], width: float) -> Stopping:
    covered = held = fixed_covered = 0
    stops: list[int] = []
    fixed_stops: list[int] = []
    prices: list[float] = []
    for values, expected in shares:
        rule = Rule(width=width, budget=len(values))
        looks = [rule.decide(values[:n]) for n in range(1, len(values) + 1)]
        stop = next(n for n, look in enumerate(looks, 1) if look.stop)
        covered += _holds(looks[stop - 1].valid, expected)
        held += all(_holds(look.valid, expected) for look in looks[:stop])
        stops.append(stop)
        plain = _first_narrow(values, width)
        fixed_covered += mean_t(values[:plain]).contains(expected)
        fixed_stops.append(plain)
        price = looks[-1].price
        if price is not None:
            prices.append(price)
    return Stopping(
        width=width,
        cells=len(shares),
        covered=covered,
        held=held,
        fixed_covered=fixed_covered,
        prompts=float(np.mean(stops)),
        fixed_prompts=float(np.mean(fixed_stops)),
        price=float(np.median(prices)) if prices else 0.0,
    )


def _holds(interval: Interval, expected: float) -> bool:
    """Return whether an interval does not exclude a value: one without limits excludes none."""
    return not interval.shown or interval.contains(expected)


def _first_narrow(values: np.ndarray, width: float) -> int:
    for n in range(LEAST, len(values) + 1):
        limits = mean_t(values[:n]).limits
        if limits and limits[1] - limits[0] <= width:
            return n
    return len(values)


def _shares(cell: SyntheticCell) -> np.ndarray:
    return np.array([sum(a) / sum(d) for a, d in zip(cell.accepted, cell.drafted, strict=True)])


def _estimates(cell: SyntheticCell, size: int, expected: Truth) -> Iterator[tuple[str, Interval, float]]:
    counts = [len(steps) for steps in cell.drafted[:size]]
    found = acceptance(
        [d for steps in cell.drafted[:size] for d in steps],
        [a for steps in cell.accepted[:size] for a in steps],
        np.repeat(np.arange(size), counts),
        n_max=len(cell.rates),
    )
    for meaning in ("survival", "proposal", "conditional"):
        for k, (rate, value) in enumerate(zip(getattr(found, meaning), getattr(expected, meaning), strict=True), 1):
            yield f"{meaning} {k}", rate.interval, value
    yield "mean accepted length", found.mean_length, expected.mean_length
    yield "aggregate acceptance", found.aggregate, expected.aggregate
