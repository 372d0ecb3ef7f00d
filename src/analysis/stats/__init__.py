"""Acceptance, intervals, ratios, step cost, break-even. Arrays in, intervals out; no input or output."""

from analysis.stats.acceptance import Acceptance, Rate, acceptance
from analysis.stats.duel import block_orders, drift
from analysis.stats.economics import (
    BreakEven,
    RawLeg,
    Steps,
    break_even,
    break_even_acceptance,
    break_even_length,
    crossing,
    decode_at,
)
from analysis.stats.intervals import Interval, exact_share, interval_of, mean_t
from analysis.stats.speed import (
    StepCost,
    Verdict,
    decode_rate,
    speed_ratio,
    step_cost_by_accepted,
    step_ms,
    verdict,
)
from analysis.stats.steplaw import StepLaw, step_law
from analysis.stats.stopping import Decision, Rule

__all__ = [
    "Acceptance",
    "BreakEven",
    "Decision",
    "Interval",
    "Rate",
    "RawLeg",
    "Rule",
    "StepCost",
    "StepLaw",
    "Steps",
    "Verdict",
    "acceptance",
    "block_orders",
    "break_even",
    "break_even_acceptance",
    "break_even_length",
    "crossing",
    "decode_at",
    "decode_rate",
    "drift",
    "exact_share",
    "interval_of",
    "mean_t",
    "speed_ratio",
    "step_cost_by_accepted",
    "step_law",
    "step_ms",
    "verdict",
]
