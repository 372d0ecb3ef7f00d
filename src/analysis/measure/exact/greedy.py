"""Greedy output with and without a drafter: the share of prompts that differ, where, and by how narrow a margin.

A target evaluates a draft as one batch, and other kernels round differently. By itself that is one part in millions;
but quantized weights are multiplied with inputs that are rounded to 8 bits first, and now and then the difference
tips one of these over. Where two tokens nearly tie, that is enough. F32 weights and an F32 cache are the control:
nothing is rounded to 8 bits there.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from analysis.launch.drafting import Drafter, Generation, generate, generate_raw, leads
from analysis.launch.inside import Context, Floats, Model
from analysis.stats import Interval, exact_share

Prompt = Sequence[int]


@dataclass(frozen=True)
class Outcome:
    """One prompt both ways. `first` is the index of the first token that differs, None if all are equal.

    `margin` is the lead in logits of the token that was emitted without a drafter at that place; `narrowest` the
    smallest lead among all of them.
    """

    prompt: int
    first: int | None
    margin: float | None
    narrowest: float
    drafted: Generation


@dataclass(frozen=True)
class Comparison:
    """All prompts of one pair of files.

    `spread` is the largest difference of any logit between the same tokens evaluated in batches and one by one.
    """

    title: str
    tokens: int
    spread: float
    outcomes: tuple[Outcome, ...]

    @property
    def differing(self) -> tuple[Outcome, ...]:
        """Return the prompts whose outputs differ."""
        return tuple(outcome for outcome in self.outcomes if outcome.first is not None)

    @property
    def share(self) -> Interval:
        """Return the share of prompts whose outputs differ, with its exact interval."""
        return exact_share(len(self.differing), len(self.outcomes))

    @property
    def accepted(self) -> float:
        """Return the accepted share of the drafted tokens."""
        drafted = sum(sum(outcome.drafted.drafted) for outcome in self.outcomes)
        return sum(sum(outcome.drafted.accepted) for outcome in self.outcomes) / drafted


def compare_greedy(
    title: str,
    target: Path,
    drafter: Path,
    prompts: Sequence[Prompt],
    *,
    count: int,
    n_max: int,
    cache_type: str = "f16",
    threads: int = 1,
) -> Comparison:
    """Emit `count` tokens after each prompt without and with the drafter, in one target context.

    Raises:
        Problem: a file cannot be loaded, or the cache cannot take back rejected drafts.
    """
    size = max(map(len, prompts)) + count + n_max + 8
    with (
        Model(target) as target_model,
        Model(drafter) as drafter_model,
        Context(target_model, size=size, rollback=n_max, cache_type=cache_type, threads=threads) as context,
        Context(drafter_model, size=size, target=context, threads=threads) as beside,
    ):
        drafting = Drafter(context, beside)
        outcomes, spread = [], 0.0
        for number, prompt in enumerate(prompts):
            raw, logits = generate_raw(context, prompt, count)
            spread = max(spread, batch_spread(context, prompt, raw, logits, n_max + 1))
            found = generate(context, drafting, prompt, count, n_max=n_max)
            first = next((place for place in range(count) if raw[place] != found.tokens[place]), None)
            margins = leads(logits)
            margin = None if first is None else float(margins[first])
            outcomes.append(Outcome(number, first, margin, float(margins.min()), found))
    return Comparison(title, count, spread, tuple(outcomes))


def batch_spread(context: Context, prompt: Prompt, tokens: Prompt, logits: Floats, rows: int) -> float:
    """Return the largest difference of any logit when tokens that were generated singly are evaluated in batches.

    Args:
        context: where they were generated.
        prompt: what they follow.
        tokens: the tokens.
        logits: those each token was chosen from.
        rows: of a batch.
    """
    context.clear()
    context.fill(prompt)
    parts = [context.decode(tokens[at : at + rows]) for at in range(0, len(tokens) - 1, rows)]
    again = np.concatenate(parts)[: len(tokens) - 1]
    return float(np.abs(again - logits[1:]).max())
