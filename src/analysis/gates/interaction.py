"""Is a depth effect one kind of text alone?"""

from collections.abc import Iterator, Sequence
from itertools import combinations

import numpy as np

from analysis.gates.base import Evidence, Finding, Subject, finding
from analysis.records import Cell, Sample
from analysis.stats import Interval, mean_t

TOLERANCE = 0.10


class InteractionInOneRow:
    """Where depth changes acceptance in one regime alone, that regime's label is the first suspect.

    In a table of two depths and several regimes the interaction then sits in one row. Either depth works on that kind
    of text only, or what stands in the row is another kind of text at one of the depths.
    """

    name = "interaction-in-one-row"
    why = "A row that is mislabelled at one depth looks exactly like an effect of depth on one kind of text."
    symptom = "A depth effect that only one prompt set shows; an off-by-one in the seed token that looks like depth."
    expected = f"a change with depth of over {TOLERANCE:.0%} in no regime or in several"
    looks_at: Subject = "cell"

    def check(self, evidence: Evidence) -> Iterator[Finding]:
        """Warn of the cell that changed alone: its texts and labels are to be read before anything is concluded."""
        drafted = [cell for cell in evidence.by_cell if cell.spec_type != "none"]
        for shallow, deep in combinations(sorted({cell.depth for cell in drafted}), 2):
            rows = list(_rows(evidence, drafted, shallow, deep))
            changed = [(cell, change) for cell, change in rows if _changed(change)]
            if len(changed) == 1 and len(rows) > 1:
                cell, change = changed[0]
                others = ", ".join(other.regime for other, _ in rows if other is not cell)
                saw = (
                    f"from depth {shallow} to {deep} the mean accepted length changes by "
                    f"{np.expm1(change.estimate):+.0%} in {cell.regime} and not in {others}: check that row's label"
                )
                yield finding(self, "warn", "cell", cell.id, saw)


def _rows(evidence: Evidence, cells: Sequence[Cell], shallow: int, deep: int) -> Iterator[tuple[Cell, Interval]]:
    """Yield each deep cell that has a shallow one alike in all the rest, with its change (logarithm) over prompts."""
    for cell in cells:
        if cell.depth != deep:
            continue
        before = [other for other in cells if cell.factors_that_differ(other) == ("depth",) and other.depth == shallow]
        if not before:
            continue
        first, second = (_lengths(evidence.by_cell[one]) for one in (before[0], cell))
        change = mean_t([np.log(second[prompt] / first[prompt]) for prompt in first if prompt in second])
        if change.shown:
            yield cell, change


def _changed(change: Interval) -> bool:
    return not change.contains(0.0) and abs(np.expm1(change.estimate)) > TOLERANCE


def _lengths(samples: Sequence[Sample]) -> dict[str, float]:
    """Return each prompt's mean accepted length."""
    found = {}
    for sample in samples:
        steps = sum(drafted > 0 for drafted in sample.drafted)
        if steps:
            found[sample.prompt_id] = 1 + sum(sample.accepted) / steps
    return found
