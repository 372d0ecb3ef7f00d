"""Acceptance, intervals, ratios, step cost, break-even. Arrays in, intervals out; no input or output."""

from analysis.stats.acceptance import Acceptance, Rate, acceptance
from analysis.stats.intervals import Interval, exact_share, interval_of, mean_t
from analysis.stats.speed import (
    StepCost,
    StepLaw,
    Verdict,
    decode_rate,
    speed_ratio,
    step_cost_by_accepted,
    step_law,
    step_ms,
    verdict,
)

__all__ = [
    "Acceptance",
    "Interval",
    "Rate",
    "StepCost",
    "StepLaw",
    "Verdict",
    "acceptance",
    "decode_rate",
    "exact_share",
    "interval_of",
    "mean_t",
    "speed_ratio",
    "step_cost_by_accepted",
    "step_law",
    "step_ms",
    "verdict",
]
