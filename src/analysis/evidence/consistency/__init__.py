"""Do the numbers of a card fit together? Each check is a function that says why it must hold."""

from analysis.evidence.consistency import factors, files, labels, lengths, steps
from analysis.evidence.consistency.finding import OUTCOMES, Check, Finding, Outcome
from analysis.evidence.published import rows

CHECKS: tuple[Check, ...] = (
    lengths.mean_length_within_bound,
    steps.implied_step_matches,
    steps.drafted_step_outlasts_raw,
    steps.step_rises_with_n,
    steps.step_linear_in_length,
    steps.raw_slows_with_depth,
    lengths.accepted_per_position,
    lengths.constant_conditional,
    labels.gains_not_printed,
    files.one_drafter_in_both_cards,
    files.routed_experts_from_sizes,
    files.recipe_explains_size,
    files.bits_per_weight,
    files.memory_adds_up,
    labels.same_label,
    factors.one_factor_contrasts,
)


def check_all() -> list[Finding]:
    """Return what every check finds, check by check."""
    measured = rows()
    return [finding for check in CHECKS for finding in check(measured)]


__all__ = ["CHECKS", "OUTCOMES", "Check", "Finding", "Outcome", "check_all"]
