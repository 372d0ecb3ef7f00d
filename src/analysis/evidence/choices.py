"""The acceptance rows of the cards as a calculator offers them: each with the length it means and its own economics."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from analysis.evidence.cells import Drafted, drafted
from analysis.evidence.corrections import superseded
from analysis.evidence.interval import Interval, hull
from analysis.evidence.published import Row


@dataclass(frozen=True, slots=True)
class Choice:
    """A published acceptance. `length` is the mean accepted length that it means with drafts of `n` tokens.

    `raw` (tokens/s) and `step` (ms) are those of the same cell, None where the card does not print or imply them.
    """

    row: Row
    n: int
    n_from: str
    length: Interval
    length_from: str
    raw: Interval | None
    step: Interval | None


def choices(rows: Mapping[str, Row]) -> list[Choice]:
    """Return every acceptance row of the cards whose number still stands, in their order.

    Where several drafted rates share an acceptance, raw rate and step are those of the last build, all its repeats
    together. An acceptance for several depths has none, because it is not that of one of them.
    """
    cells: dict[str, list[Drafted]] = {}
    for cell in drafted(rows):
        if cell.acceptance is not None and "depth" in cell.acceptance.factors:
            cells.setdefault(cell.acceptance.id, []).append(cell)
    block = next(row for row in rows.values() if row.quantity == "block_size")
    return [
        _choice(row, cells.get(row.id, []), rows, int(block.printed.interval.centre))
        for row in rows.values()
        if row.quantity == "acceptance" and row.printed.text not in superseded()
    ]


def _choice(row: Row, cells: Sequence[Drafted], rows: Mapping[str, Row], block: int) -> Choice:
    n, n_from = (int(row.factors["n_max"]), "n_max") if "n_max" in row.factors else (block, "block size")
    beside = rows.get(row.id.removesuffix("_acceptance"))
    if beside is not None and beside.quantity == "step":  # a step that the card prints beside this acceptance
        raw = rows["a_raw176"].printed.interval
        length = 1 + n * row.printed.interval
        return Choice(row, n, n_from, length, "1 + n x acceptance", raw, beside.printed.interval)
    last = [cell for cell in cells if cell.row.factors.get("build") == cells[-1].row.factors.get("build")]
    steps = [cell.step for cell in last if cell.step is not None]
    lengths = [(cell.length, cell.length_from) for cell in last if cell.length is not None]
    length, length_from = lengths[0] if lengths else (1 + n * row.printed.interval, "1 + n x acceptance")
    raws = [cell.raw.printed.interval for cell in last if cell.raw is not None]
    return Choice(row, n, n_from, length, length_from, raws[0] if raws else None, hull(steps) if steps else None)
