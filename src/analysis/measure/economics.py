"""Break-even by depth, as frames: raw rate and step cost of a depth hold for all its regimes together."""

from typing import Any

import numpy as np
import pandas as pd

from analysis.measure.estimate import acceptance_of, by_cell, cells_of, interval_columns, steps_of, timings_refused
from analysis.measure.plan import DRAFTED, RAW
from analysis.measure.study import Study
from analysis.records import Sample
from analysis.stats import BreakEven, RawLeg, Steps, break_even, decode_at, decode_rate

# Mean accepted lengths at which the implied decode rate, a straight line, is drawn.
CURVE_POINTS = 9


def break_even_of(study: Study, depth: int) -> BreakEven | None:
    """Return the break-even at one depth, regimes together; None where no prompt with drafts was kept on both legs."""
    both = [_samples(study, leg, depth) for leg in (RAW, DRAFTED)]
    # A source file gives each regime a prompt of its own, under one id: kept on both legs are regime and id together.
    raw, drafted = ([own[key] for key in own if key in other] for own, other in (both, both[::-1]))
    if not any(sum(sample.drafted) for sample in drafted):
        return None
    d, a, ms, prompt = steps_of(drafted)
    return break_even(
        RawLeg([s.emitted for s in raw], [sum(s.step_ms) for s in raw], [s.prompt_id for s in raw]),
        Steps(d, a, ms, prompt),
        n_max=int(d.max()),
    )


def break_even_frame(study: Study) -> pd.DataFrame:
    """Return, by depth, the mean accepted length at which drafting breaks even, with what it is made of.

    `estimate`, `low` and `high` are the break-even; `raw` (tokens/s), `step` (ms), `length` and `margin` are
    `Interval` objects. `margin` is the measured length less the break-even: above 0 a drafted step pays.
    """
    rows: list[dict[str, Any]] = []
    for depth in _depths(study):
        found = break_even_of(study, depth)
        if found is None or timings_refused(study):
            continue
        parts = {"raw": found.raw, "step": found.step_ms, "length": found.mean_length, "margin": found.margin}
        rows.append({"depth": depth} | parts | interval_columns(found.length_needed, ""))
    return pd.DataFrame(rows)


def drafted_rate_frame(study: Study) -> pd.DataFrame:
    """Return, by regime and depth, the decode rate of the verification steps beside their mean accepted length.

    Evaluations without a draft are left out of both, so that a point lies where its own steps put it.
    """
    rows: list[dict[str, Any]] = []
    for cell, samples, refused in by_cell(study, DRAFTED, timed=True):
        drafted, accepted, ms, prompt = steps_of(samples)
        verified = drafted > 0
        length = acceptance_of(samples, cell).mean_length
        rate = decode_rate(accepted[verified] + 2, ms[verified], prompt[verified])
        rows.append(
            {"regime": cell.regime, "depth": cell.depth}
            | interval_columns(rate, refused or ("" if verified.any() else "no step had a draft to verify"))
            | {"length": length.estimate, "length_low": _or_nan(length.low), "length_high": _or_nan(length.high)}
        )
    return pd.DataFrame(rows)


def rate_curve(study: Study, depth: int) -> pd.DataFrame:
    """Return the decode rate (tokens/s) that the step cost at a depth implies at each mean accepted length."""
    found = break_even_of(study, depth)
    if found is None:
        return pd.DataFrame(columns=["length", "estimate", "low", "high"])
    step = found.step_ms
    longest = 1 + max(cell.n_max for cell in cells_of(study, DRAFTED))
    lengths = np.linspace(1.0, longest, CURVE_POINTS)
    slow, fast = (step.high, step.low) if step.shown else (None, None)
    return pd.DataFrame(
        {
            "length": length,
            "estimate": decode_at(length, step.estimate),
            "low": np.nan if slow is None else decode_at(length, slow),
            "high": np.nan if fast is None else decode_at(length, fast),
        }
        for length in lengths
    )


def _samples(study: Study, leg: str, depth: int) -> dict[tuple[str, str], Sample]:
    """Return a leg's publishable samples at a depth by regime and prompt."""
    cells = [(cell, samples) for cell, samples, _ in by_cell(study, leg) if cell.depth == depth]
    return {(cell.regime, sample.prompt_id): sample for cell, samples in cells for sample in samples}


def _depths(study: Study) -> list[int]:
    return sorted({cell.depth for cell in cells_of(study, DRAFTED)})


def _or_nan(value: float | None) -> float:
    return np.nan if value is None else value
