"""What loops do to acceptance: emissions that repeat themselves, by themselves and left in among the others.

They are left out of every other number. Here they are shown for what they are, so that a reader sees how much a table
that left them in would say too much.
"""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from analysis.gates import publishable
from analysis.gates.prompts import EnoughPrompts
from analysis.gates.regime import TextOfItsRegime
from analysis.measure.estimate import acceptance_of, cells_of, steps_of
from analysis.measure.plan import DRAFTED
from analysis.measure.study import Study
from analysis.records import Sample
from analysis.stats import Acceptance, interval_of
from analysis.stats.resampling import Floats, cluster_sums

# A loop is no text of its regime, and a cell of loops has no prompt left; neither makes its steps unreal.
_ABOUT_THE_TEXT = (TextOfItsRegime.name, EnoughPrompts.name)


def looped(study: Study, depth: int) -> list[Sample]:
    """Return the drafted samples of a depth that loop and that no gate refuses for anything but their text."""
    findings = [found for found in study.findings if found.gate not in _ABOUT_THE_TEXT]
    cells = {cell.id for cell in cells_of(study, DRAFTED) if cell.depth == depth}
    loops = (sample for sample in study.samples if sample.label.kind == "loop" and sample.cell in cells)
    return [sample for sample in publishable(loops, findings) if any(sample.drafted)]


def loop_acceptance(study: Study, depth: int) -> Acceptance | None:
    """Return the acceptance of all loops of a depth, whatever their prompts asked for; None where there are none."""
    samples = looped(study, depth)
    if not samples:
        return None
    n_max = max(study.cells[sample.cell].n_max for sample in samples)
    return acceptance_of(samples, next(cell for cell in cells_of(study, DRAFTED) if cell.n_max == n_max))


def loop_frame(study: Study, depth: int) -> pd.DataFrame:
    """Return, by regime, the mean accepted length without and with the samples that loop.

    Columns: `regime`; `samples` and `loops`, their numbers; and as `Interval` objects over prompts `without` (what
    every other table shows), `left_in` and `difference`, the second less the first. A prompt counts in both, so their
    difference has an interval of its own.
    """
    loops = looped(study, depth)
    kept = [sample for sample in study.publishable if any(sample.drafted)]
    rows = []
    for cell in cells_of(study, DRAFTED):
        mine = [sample for sample in kept if sample.cell == cell.id]
        more = [sample for sample in loops if sample.cell == cell.id]
        if cell.depth != depth or not (mine or more):
            continue
        rows.append(
            {
                "regime": cell.regime,
                "samples": len(mine),
                "loops": len(more),
                "without": acceptance_of(mine, cell).mean_length,
                "left_in": acceptance_of(mine + more, cell).mean_length,
                "difference": interval_of(_sums(mine, more), _difference),
            }
        )
    return pd.DataFrame(rows)


def _sums(kept: Sequence[Sample], loops: Sequence[Sample]) -> Floats:
    """Return, by prompt, verification steps and accepted tokens of the kept samples, then of all."""
    drafted, accepted, _, prompt = steps_of([*kept, *loops])
    verified = drafted > 0
    is_kept = np.arange(len(drafted)) < sum(len(sample.drafted) for sample in kept)
    return cluster_sums(prompt, verified & is_kept, accepted * is_kept, verified, accepted)


def _difference(sums: Floats) -> Floats:
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(sums[..., 3] / sums[..., 2] - sums[..., 1] / sums[..., 0])
