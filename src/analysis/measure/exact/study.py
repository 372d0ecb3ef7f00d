"""Everything the chapter on exactness shows, measured in one go on a synthetic pair made for it."""

import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

from analysis.convert.dsv4 import TINY, Recipe
from analysis.launch import FoundEngine, read_machine, resolve_engine
from analysis.launch.inside import Model
from analysis.measure.exact.checkpoints import (
    CheckpointCost,
    Limits,
    SavedSlot,
    TwoWays,
    checkpoint_cost,
    rollback_limits,
    saved_slot,
    two_ways,
)
from analysis.measure.exact.greedy import Comparison, compare_greedy
from analysis.measure.exact.perplexity import Quality, compare_perplexity
from analysis.measure.exact.rollback import ROWS, Rollback, rollback_gate
from analysis.measure.exact.tiny import (
    Served,
    TinyPair,
    make_tiny,
    right_text,
    sample_text,
    serve_tiny,
    starting_tokens,
    write_target,
)
from analysis.records import Machine

DEPTHS = (256, 1024, 2048)
GREEDY_TOKENS = 40


@dataclass(frozen=True)
class Undoing:
    """What the target's cache allows, and what undoing costs."""

    limits: Limits
    costs: tuple[CheckpointCost, ...]
    ways: tuple[TwoWays, ...]
    slots: tuple[SavedSlot, ...]


@dataclass(frozen=True)
class ExactStudy:
    """A synthetic pair and everything that was measured on it; its files are gone."""

    machine: Machine
    pair: TinyPair
    served: tuple[Served, ...]
    rollbacks: tuple[Rollback, ...]
    undoing: Undoing
    greedy: tuple[Comparison, ...]
    qualities: dict[str, Quality]


def study_exactness(
    *, seed: int = 1, agree: float = 0.8, margin: float = 1.0, low_margin: float = 0.1, prompts: int = 8
) -> ExactStudy:
    """Make a synthetic pair, serve it, and measure what is exact about it.

    Args:
        seed: of the checkpoint's values.
        agree: share of tokens whose successor the drafter knows.
        margin: how far the successor stands out in the target's logits.
        low_margin: the same for a second target, whose greedy output rounding can change.
        prompts: prompts for the comparison of greedy outputs where the margin is low; half of them where not.

    Raises:
        Problem: the engine is missing, or something of the pair is not as it must be.
    """
    found = resolve_engine()
    recipe = Recipe(seed=seed, agree=agree, margin=margin)
    with tempfile.TemporaryDirectory(prefix="specbook-") as scratch:
        folder = Path(scratch)
        pair = make_tiny(folder / "wide", recipe)
        served = serve_tiny(found, pair, starting_tokens(8), 64)
        with Model(pair.target.path) as model:
            rollbacks = rollback_gate(model, right_text(recipe, 480))
            undoing = _undoing(model, right_text(recipe, DEPTHS[-1] + 400))
        near = make_tiny(folder / "near", replace(recipe, margin=low_margin))
        return ExactStudy(
            machine=read_machine(),
            pair=pair,
            served=served,
            rollbacks=rollbacks,
            undoing=undoing,
            greedy=_greedy(pair, near, prompts),
            qualities=_qualities(found, near),
        )


def _undoing(model: Model, tokens: list[int]) -> Undoing:
    block = TINY.block_size
    return Undoing(
        limits=rollback_limits(model, tokens[:150], ROWS),
        costs=tuple(checkpoint_cost(model, tokens[:depth], block) for depth in DEPTHS),
        ways=tuple(two_ways(model, tokens, depth=DEPTHS[0], drafted=block, kept=kept) for kept in (0, 2, 4, block)),
        slots=tuple(saved_slot(model, tokens[: depth + 8], depth) for depth in DEPTHS),
    )


def _greedy(pair: TinyPair, near: TinyPair, prompts: int) -> tuple[Comparison, ...]:
    cases = (
        ("wide margin, as converted", pair.target, pair.drafter, "f16", (prompts + 1) // 2),
        ("narrow margin, as converted", near.target, near.drafter, "f16", prompts),
        ("narrow margin, F32 throughout", near.f32, near.drafter, "f32", prompts),
    )
    return tuple(
        compare_greedy(
            title,
            target.path,
            drafter.path,
            [[token] for token in starting_tokens(count)],
            count=GREEDY_TOKENS,
            n_max=TINY.block_size,
            cache_type=kind,
        )
        for title, target, drafter, kind, count in cases
    )


def _qualities(found: FoundEngine, pair: TinyPair) -> dict[str, Quality]:
    """Compare the quantized target with the converted one; another seed's target is the control that must not pass.

    The margin must be low: what a wide one makes all but impossible, the tool's file of logits cannot hold.
    """
    recipe = pair.recipe
    text = sample_text(recipe, 3000)
    other = write_target(pair.target.path.with_name("other"), replace(recipe, seed=recipe.seed + 1))
    return {
        "quantized by q2k-q4k": compare_perplexity(found, pair.target.path, pair.quantized.path, text),
        "control: another target": compare_perplexity(found, pair.target.path, other, text),
    }
