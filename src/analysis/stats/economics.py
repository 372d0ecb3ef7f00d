"""When drafting pays: break-even against what was measured, resampled together over prompts.

A verification step emits 1 + A tokens and takes `step` milliseconds; without speculation `raw` tokens a second come
out. Decoding with drafts is as fast as without when the mean accepted length equals `raw * step`, or, if every step
drafts n tokens, when the aggregate acceptance equals `(raw * step - 1) / n`.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from analysis.stats.intervals import LEVEL, POSITIVE, REAL, Interval, Scale, interval_of, no_interval
from analysis.stats.resampling import Floats, Statistic, cluster_sums

FULL_DRAFTS = 0.95
"""Mean draft length over n_max from which on an acceptance has a break-even of its own.

Below it p_min, a confidence threshold or a lookup cuts drafts where acceptance is doubtful, so that acceptance over
drafted tokens moves with the cut and only the mean accepted length says whether drafting pays. A little below 1,
because the last draft of every reply is cut by its end.
"""


def break_even_length(raw: float, step_ms: float) -> float:
    """Return the mean accepted length at which drafting breaks even.

    Args:
        raw: decode rate without speculation, tokens a second.
        step_ms: duration of a verification step, milliseconds.
    """
    return raw * step_ms / 1000


def break_even_acceptance(raw: float, step_ms: float, n: float) -> float:
    """Return the aggregate acceptance (accepted over drafted tokens) at which drafts of n tokens break even."""
    return (break_even_length(raw, step_ms) - 1) / n


def decode_at(length: float, step_ms: float) -> float:
    """Return the decode rate in tokens a second at a mean accepted length and a step duration."""
    return 1000 * length / step_ms


@dataclass(frozen=True, slots=True)
class RawLeg:
    """What was decoded without speculation, one entry a sample: tokens emitted, sum of step durations, prompt."""

    emitted: ArrayLike
    decode_ms: ArrayLike
    prompt: ArrayLike


@dataclass(frozen=True, slots=True)
class Steps:
    """What was decoded with speculation, one entry a target evaluation, in milliseconds."""

    drafted: ArrayLike
    accepted: ArrayLike
    ms: ArrayLike
    prompt: ArrayLike


@dataclass(frozen=True, slots=True, kw_only=True)
class BreakEven:
    """Where drafting breaks even, what was measured, and the distance between them.

    All but `decode` are over verification steps; evaluations without a draft cost and yield about what a raw step
    does and only dilute the result. `decode` is over all evaluations: what a user sees. `margin` is the mean length
    less its break-even: above 0 drafting pays. `acceptance` and `acceptance_needed` have no value where drafts are
    cut short (see `FULL_DRAFTS`).
    """

    raw: Interval
    step_ms: Interval
    mean_length: Interval
    length_needed: Interval
    margin: Interval
    acceptance: Interval
    acceptance_needed: Interval
    decode: Interval
    prompts: int
    unpaired: int


def break_even(raw: RawLeg, steps: Steps, *, n_max: int, level: float = LEVEL) -> BreakEven:
    """Return break-even and measurement from the prompts that both legs share.

    Raw rate, step duration and length are resampled together: a prompt that is left out is left out of all of them,
    so that what they share does not widen the margin.

    Args:
        raw: the leg without speculation.
        steps: the evaluations of the leg with speculation.
        n_max: the most tokens a draft may have.
        level: the confidence level.

    Raises:
        ValueError: the columns of a leg differ in length.
    """
    sums, unpaired = _paired_sums(raw, steps)

    def interval(statistic: Statistic, scale: Scale = POSITIVE) -> Interval:
        return interval_of(sums, statistic, scale=scale, level=level)

    acceptance, needed = interval(_acceptance, Scale(0, 1)), interval(_acceptance_needed, REAL)
    full = float(sums[:, _DRAFTED].sum()) / max(float(sums[:, _STEPS].sum()) * n_max, 1.0)
    if full < FULL_DRAFTS:
        note = f"drafts are cut short ({full:.0%} of n_max), so that only the mean length has a break-even"
        acceptance = needed = no_interval(float("nan"), n=len(sums), note=note, level=level)
    return BreakEven(
        raw=interval(_raw),
        step_ms=interval(_step_ms),
        mean_length=interval(_length, Scale(1, 1 + n_max)),
        length_needed=interval(_length_needed),
        margin=interval(lambda s: _length(s) - _length_needed(s), REAL),
        acceptance=acceptance,
        acceptance_needed=needed,
        decode=interval(_decode),
        prompts=len(sums),
        unpaired=unpaired,
    )


def crossing(raw: RawLeg, steps: Steps, *, level: float = LEVEL) -> Interval:
    """Return the accepted tokens a step at which decoding with drafts is as fast as without.

    Unlike `break_even`, which holds the step duration fixed, this lets it rise with what a step accepts: a line
    `fixed + slope A` is fitted to the verification steps, and 1 + A = raw (fixed + slope A) is solved for A. Give it
    steps at several acceptances (synthetic ones, for example), or the line has nothing to stand on.

    Args:
        raw: the leg without speculation.
        steps: the evaluations of the legs with speculation, of one draft length.
        level: the confidence level.
    """
    sums, _ = _paired_sums(raw, steps)
    with np.errstate(invalid="ignore", divide="ignore"):
        found = interval_of(sums, _crossing, level=level)
    if np.isnan(found.estimate):
        return replace(
            found, low=None, high=None, method="none", note="no crossing: a further token costs what it saves"
        )
    return found


# Columns of the sums over prompts.
_RAW_TOKENS, _RAW_MS, _TOKENS, _MS = 0, 1, 2, 3
_STEPS, _ACCEPTED, _DRAFTED, _STEP_MS, _SQUARES, _PRODUCTS = 4, 5, 6, 7, 8, 9


def _paired_sums(raw: RawLeg, steps: Steps) -> tuple[Floats, int]:
    """Return sums over the prompts of both legs, and how many prompts only one leg has."""
    drafted, accepted = np.asarray(steps.drafted, dtype=np.float64), np.asarray(steps.accepted, dtype=np.float64)
    ms, verified = np.asarray(steps.ms, dtype=np.float64), np.asarray(steps.drafted) > 0
    tokens, raw_ms = np.asarray(raw.emitted, dtype=np.float64) - 1, np.asarray(raw.decode_ms, dtype=np.float64)
    who = np.concatenate([np.asarray(raw.prompt, dtype=object), np.asarray(steps.prompt, dtype=object)])
    first = (tokens, raw_ms)
    second = (
        accepted + 1,
        ms,
        verified,
        verified * accepted,
        drafted,
        verified * ms,
        verified * accepted**2,
        verified * accepted * ms,
    )
    here, there = np.zeros(len(tokens)), np.zeros(len(ms))
    columns = [np.concatenate([column, there]) for column in first]
    columns += [np.concatenate([here, column]) for column in second]
    sums = cluster_sums(who, *columns)
    paired = (sums[:, _RAW_MS] > 0) & (sums[:, _STEPS] > 0)
    return sums[paired], int((~paired).sum())


def _raw(sums: Floats) -> Floats:
    return np.asarray(1000 * sums[..., _RAW_TOKENS] / sums[..., _RAW_MS])


def _step_ms(sums: Floats) -> Floats:
    return np.asarray(sums[..., _STEP_MS] / sums[..., _STEPS])


def _length(sums: Floats) -> Floats:
    return np.asarray(1 + sums[..., _ACCEPTED] / sums[..., _STEPS])


def _length_needed(sums: Floats) -> Floats:
    return np.asarray(_raw(sums) * _step_ms(sums) / 1000)


def _acceptance(sums: Floats) -> Floats:
    return np.asarray(sums[..., _ACCEPTED] / sums[..., _DRAFTED])


def _acceptance_needed(sums: Floats) -> Floats:
    return np.asarray((_length_needed(sums) - 1) * sums[..., _STEPS] / sums[..., _DRAFTED])


def _decode(sums: Floats) -> Floats:
    return np.asarray(1000 * sums[..., _TOKENS] / sums[..., _MS])


def _crossing(sums: Floats) -> Floats:
    steps, accepted, ms = sums[..., _STEPS], sums[..., _ACCEPTED], sums[..., _STEP_MS]
    spread = steps * sums[..., _SQUARES] - accepted**2
    slope = (steps * sums[..., _PRODUCTS] - accepted * ms) / np.where(spread > 0, spread, np.nan)
    fixed = (ms - slope * accepted) / steps
    raw = _raw(sums) / 1000
    gain = 1 - raw * slope
    return np.asarray((raw * fixed - 1) / np.where(gain > 0, gain, np.nan))
