"""Which rows of a card belong together: a decode rate with its acceptance, its raw rate, its accepted length."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from analysis.evidence.interval import Interval
from analysis.evidence.published import Row

# Factors that a drafted row has and its raw row has not, and those that say how often and on what text.
_OF_DRAFTING = frozenset({"drafter_file", "n_max", "p_min"})
_OF_SAMPLES = frozenset({"repeats", "regime", "prompt", "tokens"})


@dataclass(frozen=True, slots=True)
class Drafted:
    """A drafted decode rate and what the card prints about the same cell.

    `n` is the number of tokens drafted in a step, as far as stated; `n_from` says where it was taken from.
    `length` is the mean accepted length: printed, or 1 + n x acceptance. `step` is the duration of a step in ms
    that follows from it. `raw` is the rate without the drafter, `gain` the difference in percent.
    """

    row: Row
    acceptance: Row | None
    raw: Row | None
    n: int | None
    n_from: str
    length: Interval | None
    length_from: str

    @property
    def step(self) -> Interval | None:
        """Return the implied duration of a step, ms."""
        return None if self.length is None else 1000 * self.length / self.row.printed.interval

    @property
    def gain(self) -> Interval | None:
        """Return by how many percent drafting is faster than raw decoding."""
        return None if self.raw is None else (self.row.printed.interval / self.raw.printed.interval - 1) * 100

    @property
    def raw_steps(self) -> Interval | None:
        """Return the implied step in raw steps: how many tokens it must accept to pay."""
        if self.length is None or self.raw is None:
            return None
        return self.length / (self.row.printed.interval / self.raw.printed.interval)


def is_raw(row: Row) -> bool:
    """Return whether a row was measured without a drafter."""
    return row.factors.get("drafter_file") == "none"


def is_drafted(row: Row) -> bool:
    """Return whether a row is stated to be measured with a drafter."""
    return not is_raw(row) and ("drafter_file" in row.factors or "n_max" in row.factors)


def drafted(rows: Mapping[str, Row]) -> list[Drafted]:
    """Return every decode rate that is stated to be drafted, with what belongs to it, in the order of the cards."""
    return [_drafted(row, rows) for row in rows.values() if row.quantity == "decode" and is_drafted(row)]


def _drafted(row: Row, rows: Mapping[str, Row]) -> Drafted:
    acceptance = _belonging(row, (r for r in rows.values() if r.quantity == "acceptance"))
    n, n_from = _tokens_drafted(row, rows)
    length, length_from = _length(row, rows, acceptance, n)
    return Drafted(row, acceptance, _raw(row, rows), n, n_from, length, length_from)


def _length(row: Row, rows: Mapping[str, Row], acceptance: Row | None, n: int | None) -> tuple[Interval | None, str]:
    printed = _belonging(row, (r for r in rows.values() if r.quantity == "mean_accepted_length"))
    if printed is not None:
        return printed.printed.interval, "printed"
    if acceptance is None or n is None:
        return None, ""
    return 1 + n * acceptance.printed.interval, "1 + n x acceptance"


def _tokens_drafted(row: Row, rows: Mapping[str, Row]) -> tuple[int | None, str]:
    if "n_max" in row.factors:
        return int(row.factors["n_max"]), "n_max"
    for other in rows.values():
        if other.quantity == "block_size" and other.factors.get("drafter_file") == row.factors.get("drafter_file"):
            return int(other.printed.interval.centre), "block size; n_max is not stated"
    return None, ""


def _belonging(row: Row, candidates: Iterable[Row]) -> Row | None:
    """Return the most specific row whose every factor the given row shares, from the same section or regime."""
    fitting = []
    for other in candidates:
        stated = {name: value for name, value in other.factors.items() if name != "repeats"}
        near = other.section == row.section or ("regime" in stated and "regime" in row.factors)
        if other.card == row.card and near and stated.items() <= row.factors.items():
            fitting.append((len(stated), other))
    return max(fitting, key=lambda pair: pair[0])[1] if fitting else None


def _raw(row: Row, rows: Mapping[str, Row]) -> Row | None:
    """Return the raw rate of the same cell; None where there is none, or where two fit equally well."""
    skipped = _OF_DRAFTING | _OF_SAMPLES
    fitting: list[tuple[int, Row]] = []
    for other in rows.values():
        if not (is_raw(other) and other.quantity == "decode" and other.card == row.card):
            continue
        shared = (other.factors.keys() & row.factors.keys()) - skipped
        same = all(other.factors[name] == row.factors[name] for name in shared)
        if same and "depth" in shared:
            fitting.append((len(shared), other))
    fitting.sort(key=lambda pair: -pair[0])
    if not fitting or (len(fitting) > 1 and fitting[0][0] == fitting[1][0]):
        return None
    return fitting[0][1]
