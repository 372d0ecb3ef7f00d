"""Two runs of one pair on two machines: does acceptance travel, and what about step cost and verdict?

Everything is paired by prompt. Acceptance travels if the interval of the paired difference lies within a margin that
was stated before the second run was looked at; a difference whose interval merely holds 0 shows nothing of the kind.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Literal

import numpy as np
import pandas as pd

from analysis.measure.estimate import by_cell, cells_of, interval_columns, rate_of, ratio_frame
from analysis.measure.knee import Factor, parts_frame
from analysis.measure.plan import DRAFTED, RAW
from analysis.measure.study import Study
from analysis.records import Cell, Problem, Sample
from analysis.stats import Interval, mean_t, speed_ratio
from analysis.stats.intervals import MIN_CLUSTERS

# In accepted over drafted tokens. Between two depths or two kinds of text the difference is often five times this.
MARGIN = 0.05
# What may differ between two machines that are compared.
OF_THE_MACHINE = frozenset({"machine", "backend", "threads"})

Travels = Literal["equal in every prompt", "within the margin", "beyond the margin", "undecided"]


def acceptance_differences(first: Study, second: Study, *, margin: float = MARGIN) -> pd.DataFrame:
    """Return, by regime and depth, the paired difference of accepted over drafted tokens, the second less the first.

    Beside the columns of every frame of estimates: `equal_text`, the number of pairs that emitted the same tokens,
    `pairs`, and `travels`, which compares the interval with the margin.

    Raises:
        Problem: the runs differ in more than the machine, or have no cell in common.
    """
    rows: list[dict[str, Any]] = []
    for cell, pairs, refused in _in_common(first, second):
        differences = [_acceptance(after) - _acceptance(before) for before, after in pairs]
        difference = mean_t(differences)
        equal = sum(before.tokens == after.tokens for before, after in pairs)
        judged: Travels = "undecided" if refused else travels(differences, margin)
        key = {"regime": cell.regime, "depth": cell.depth, "equal_text": equal, "pairs": len(pairs), "travels": judged}
        rows.append(key | interval_columns(difference, refused))
    return pd.DataFrame(rows)


def pooled_difference(first: Study, second: Study) -> Interval:
    """Return the paired difference of accepted over drafted tokens over all cells in common, the second less the first.

    A prompt's differences in several cells count as one, their mean: they share its text.

    Raises:
        Problem: see `acceptance_differences`.
    """
    by_prompt: dict[str, list[float]] = {}
    for _, pairs, refused in _in_common(first, second):
        for before, after in () if refused else pairs:
            by_prompt.setdefault(before.prompt_id, []).append(_acceptance(after) - _acceptance(before))
    return mean_t([float(np.mean(found)) for found in by_prompt.values()])


def step_cost_ratios(first: Study, second: Study) -> pd.DataFrame:
    """Return, by regime and depth, the mean duration of a verification step on the second machine over the first.

    Raises:
        Problem: see `acceptance_differences`.
    """
    rows: list[dict[str, Any]] = []
    for cell, pairs, refused in _in_common(first, second):
        ratio = speed_ratio(
            [_step_ms(before) for before, _ in pairs],
            [_step_ms(after) for _, after in pairs],
            [after.prompt_id for _, after in pairs],
        )
        rows.append({"regime": cell.regime, "depth": cell.depth} | interval_columns(ratio, refused))
    return pd.DataFrame(rows)


def verdicts_beside(first: Study, second: Study) -> pd.DataFrame:
    """Return, by regime and depth, the speed ratios of both runs and their verdicts; empty where one has no raw leg.

    Columns: `regime`, `depth`, and for each run `_first` and `_second`: `verdict`, `estimate`, `low`, `high`, `n`,
    `refused`.
    """
    kept = ["regime", "depth", "verdict", "estimate", "low", "high", "n", "refused"]
    frames = [ratio_frame(study) for study in (first, second)]
    if any(frame.empty or frame["estimate"].isna().all() for frame in frames):
        return pd.DataFrame(columns=["regime", "depth"])
    return frames[0][kept].merge(frames[1][kept], on=["regime", "depth"], suffixes=("_first", "_second"))


def raw_again(study: Study, later: Study) -> Interval:
    """Return the raw decode rate of another run over a run's, in the cells of both, paired by cell and prompt.

    Such cells differ in no factor, so that nothing acts between the two but noise: a negative control, of the lives of
    two servers. Without a cell in common it has no prompts.
    """
    raw = {(cell.id, sample.prompt_id): sample for cell, samples, _ in by_cell(study, RAW) for sample in samples}
    again = [(cell.id, sample) for cell, samples, _ in by_cell(later, RAW) for sample in samples]
    pairs = [(raw[key], sample) for cell, sample in again if (key := (cell, sample.prompt_id)) in raw]
    _require_same_prompts(pairs)
    return speed_ratio(
        [rate_of(before) for before, _ in pairs],
        [rate_of(after) for _, after in pairs],
        [after.prompt_id for _, after in pairs],
    )


def ratios_beside(first: Factor, second: Factor) -> pd.DataFrame:
    """Return the speed ratios of one factor swept on two machines, by regime and value.

    Columns: `regime`, `value`, `machine` (`first` or `second`), those of every frame of estimates, and `verdict`.

    Raises:
        Problem: the sweeps have no value in common, or their cells differ in more than the machine.
    """
    values = [point.value for point in first.points if point.value in {other.value for other in second.points}]
    if not values:
        raise Problem(f"two sweeps of {first.name} have no value in common", expected="the same values on two machines")
    for value in values:
        cell, other = (
            next(cell for cell in point.drafted.run.cells if cell.spec_type != "none")
            for factor in (first, second)
            for point in factor.points
            if point.value == value
        )
        _require_one_factor(cell, other)
    frames = []
    for factor, machine in ((first, "first"), (second, "second")):
        frame = parts_frame(factor)
        chosen = frame[(frame["part"] == "ratio") & frame["value"].isin(values)]
        frames.append(chosen.drop(columns="part").assign(machine=machine))
    return pd.concat(frames, ignore_index=True)


def travels(differences: Sequence[float], margin: float) -> Travels:
    """Return whether the mean of paired differences lies within a margin, beyond it, or cannot be told.

    Where no pair differs there is no interval, and nothing to be unsure of in these prompts.
    """
    if len(differences) >= MIN_CLUSTERS and not any(differences):
        return "equal in every prompt"
    return against(mean_t(differences), margin)


def against(difference: Interval, margin: float) -> Travels:
    """Return whether an interval lies within a margin about 0, beyond it, or across one of its ends."""
    if difference.low is None or difference.high is None:
        return "undecided"
    if -margin <= difference.low and difference.high <= margin:
        return "within the margin"
    return "beyond the margin" if difference.low > margin or difference.high < -margin else "undecided"


def _in_common(first: Study, second: Study) -> Iterator[tuple[Cell, list[tuple[Sample, Sample]], str]]:
    """Yield each cell that both runs measured, the samples paired by prompt, and why it is refused, if it is."""
    theirs = {(cell.regime, cell.depth): (cell, samples, why) for cell, samples, why in by_cell(second, DRAFTED)}
    if not any((cell.regime, cell.depth) in theirs for cell in cells_of(first, DRAFTED)):
        raise Problem(f"{first.run.id} and {second.run.id} have no cell in common", expected="two runs of one grid")
    for cell, samples, refused in by_cell(first, DRAFTED):
        if (cell.regime, cell.depth) not in theirs:
            continue
        other, others, also_refused = theirs[cell.regime, cell.depth]
        _require_one_factor(cell, other)
        mates = {sample.prompt_id: sample for sample in others if any(sample.drafted)}
        pairs = [(s, mates[s.prompt_id]) for s in samples if any(s.drafted) and s.prompt_id in mates]
        _require_same_prompts(pairs)
        yield cell, pairs, refused or also_refused or ("" if pairs else "no prompt drafted in both runs")


def _require_one_factor(cell: Cell, other: Cell) -> None:
    differing = [name for name in cell.factors_that_differ(other) if name not in OF_THE_MACHINE]
    if differing:
        raise Problem(
            f"the runs differ in {', '.join(differing)} at {cell.regime}, depth {cell.depth}",
            expected="the same pair, files, prompts and settings on two machines",
        )


def _require_same_prompts(pairs: Sequence[tuple[Sample, Sample]]) -> None:
    for before, after in pairs:
        if before.prompt_sha256 != after.prompt_sha256:
            raise Problem(f"prompt {before.prompt_id} is another text in the second run", expected="the same prompts")


def _acceptance(sample: Sample) -> float:
    return sum(sample.accepted) / sum(sample.drafted)


def _step_ms(sample: Sample) -> float:
    return float(np.mean([ms for drafted, ms in zip(sample.drafted, sample.step_ms, strict=True) if drafted]))
