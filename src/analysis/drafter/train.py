"""Training: reproducible per seed, checkpointed, resumed where it stopped."""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from analysis.drafter.generate import Texts
from analysis.drafter.loss import HeadInput, head_gradient
from analysis.drafter.model import MARKOV_IN, MARKOV_OUT, Weights, confidence, draft_states, initial_weights
from analysis.drafter.shapes import Recipe, Schedule
from analysis.drafter.target import Target, forward
from analysis.drafter.torchlib import Tensor, functional, mixed_precision, torch

SORTED = 16
ROUND = 32


@dataclass(frozen=True)
class Batch:
    """What one step reads: texts, places to draft from [texts, anchors], ends of answers, part of the vocabulary."""

    ids: Tensor
    anchors: Tensor
    end: Tensor
    vocabulary: Tensor


class Feed:
    """Deals batches. Which texts, anchors and rare tokens a step sees depends on seed and step alone."""

    def __init__(self, short: Texts, long: Texts, recipe: Recipe, device: str) -> None:
        self.texts = {"short": short, "long": long}
        self.recipe, self.device = recipe, device
        places = np.arange(short.ids.shape[1])
        answers = (places >= short.start[:, None]) & (places < short.end[:, None])
        counts = np.bincount(short.ids[answers], minlength=recipe.shape.vocabulary)
        order = np.argsort(-counts, kind="stable")
        self.frequent = torch.from_numpy(np.sort(order[: recipe.schedule.frequent])).to(device)
        self.orders: dict[tuple[int, int], Any] = {}
        self.others = order[recipe.schedule.frequent :]
        self.coverage = float(counts[order[: recipe.schedule.frequent]].sum() / counts.sum())

    def batch(self, step: int) -> Batch:
        """Return the batch of a step: texts of similar length, cut where the last of their answers ends."""
        schedule = self.recipe.schedule
        deep = len(self.texts["long"]) > 0 and step % schedule.long_every == schedule.long_every - 1
        texts = self.texts["long" if deep else "short"]
        count, anchors = schedule.batch, schedule.anchors
        if deep:
            count = max(1, count * self.texts["short"].ids.shape[1] // texts.ids.shape[1])
            anchors = schedule.batch * schedule.anchors // count
        rng = np.random.default_rng((self.recipe.seed, step))
        chosen = self._dealt(texts, step // schedule.long_every if deep else step, count)
        start, end = texts.start[chosen], texts.end[chosen]
        length = min(texts.ids.shape[1], -(-int(end.max()) // ROUND) * ROUND)
        places = start[:, None] + (rng.random((count, anchors)) * (end - start - 1)[:, None]).astype(np.int64)
        rare = rng.choice(self.others, min(schedule.rare, len(self.others)), replace=False)
        return Batch(
            ids=self._tensor(texts.ids[chosen, :length].astype(np.int64)),
            anchors=self._tensor(np.sort(places, 1)),
            end=self._tensor(end),
            vocabulary=torch.cat([self.frequent, self._tensor(rare)]),
        )

    def _dealt(self, texts: Texts, turn: int, count: int) -> Any:
        """Return the texts of a turn: every text once an epoch, in an order that changes from epoch to epoch.

        Among `SORTED` batches in a row the texts are sorted by their end, so that a batch has little padding.
        """
        per_epoch = max(1, len(texts) // count)
        epoch, place = divmod(turn, per_epoch)
        if (epoch, len(texts)) not in self.orders:
            rng = np.random.default_rng((self.recipe.seed, epoch, len(texts)))
            order = np.resize(rng.permutation(len(texts)), per_epoch * count)
            groups = [order[i : i + SORTED * count] for i in range(0, len(order), SORTED * count)]
            batches = [group[np.argsort(texts.end[group], kind="stable")].reshape(-1, count) for group in groups]
            self.orders = {known: deal for known, deal in self.orders.items() if known[1] != len(texts)}
            self.orders[epoch, len(texts)] = rng.permutation(np.concatenate(batches))
        return self.orders[epoch, len(texts)][place]

    def _tensor(self, values: Any) -> Tensor:
        return torch.from_numpy(np.ascontiguousarray(values)).to(self.device)


def learning_rate(schedule: Schedule, step: int) -> float:
    """Return the rate of a step: a linear warm-up, then a cosine down to `final_rate` of the peak."""
    rise = min(1.0, (step + 1) / schedule.warmup)
    fall = 0.5 * (1 + math.cos(math.pi * step / schedule.steps))
    return schedule.rate * rise * (schedule.final_rate + (1 - schedule.final_rate) * fall)


def train(
    target: Target,
    feed: Feed,
    recipe: Recipe,
    directory: Path,
    say: Callable[[str], None],
    *,
    start: Weights | None = None,
) -> tuple[Weights, list[dict[str, Any]]]:
    """Train a drafter, or go on from the checkpoint in `directory`.

    Args:
        target: whom to draft for.
        feed: what to read.
        recipe: how.
        directory: keeps `checkpoint.pt`.
        say: is told of progress.
        start: weights to begin with where there is no checkpoint; by default those of `initial_weights`.

    Returns:
        The weights and a record every fifty steps: loss, agreement with the target's choice by place.
    """
    schedule, checkpoint = recipe.schedule, directory / "checkpoint.pt"
    begin = initial_weights(recipe.shape, target, recipe.seed) if start is None else start
    weights = {name: weight.clone().requires_grad_() for name, weight in begin.items()}
    optimiser = torch.optim.AdamW(
        weights.values(), lr=schedule.rate, betas=(0.9, 0.95), weight_decay=0.0, fused=target.device == "cuda"
    )
    first, history = 0, []
    if checkpoint.exists():
        saved = torch.load(checkpoint, map_location=target.device, weights_only=True)
        first, history = saved["step"], saved["history"]
        optimiser.load_state_dict(saved["optimiser"])
        with torch.no_grad():
            for name, weight in weights.items():
                weight.copy_(saved["weights"][name])
        say(f"going on from step {first}")
    began = time.monotonic()
    for step in range(first, schedule.steps):
        optimiser.param_groups[0]["lr"] = learning_rate(schedule, step)
        outcome = train_step(weights, target, feed.batch(step), recipe)
        torch.nn.utils.clip_grad_norm_(weights.values(), 1.0)
        optimiser.step()
        optimiser.zero_grad(set_to_none=True)
        if step % 50 == 49:
            history.append({"step": step + 1, "seconds": round(time.monotonic() - began, 1), **_read(outcome)})
            say(str(history[-1]))
        if (step + 1) % schedule.checkpoint_every == 0 or step + 1 == schedule.steps:
            state = {"step": step + 1, "history": history, "optimiser": optimiser.state_dict()}
            state["weights"] = {name: weight.detach() for name, weight in weights.items()}
            torch.save(state, checkpoint.with_suffix(".partial"))
            checkpoint.with_suffix(".partial").replace(checkpoint)
    return {name: weight.detach() for name, weight in weights.items()}, history


def train_step(weights: Weights, target: Target, batch: Batch, recipe: Recipe) -> dict[str, Tensor]:
    """Leave the gradient of one step in the weights and return what was seen: losses, agreement by place."""
    shape, schedule = recipe.shape, recipe.schedule
    size, ids = shape.block, batch.ids
    with mixed_precision(target.device):
        features, last = forward(target, ids, shape.taps)
        states = draft_states(weights, shape, target, ids, features, batch.anchors, size)
    labels = batch.anchors[:, :, None] + 1 + torch.arange(size, device=ids.device)
    inside = labels < batch.end[:, None, None]
    before = labels.clamp_max(ids.shape[1] - 1).flatten(1) - 1
    previous = torch.gather(ids, 1, before)
    teacher = torch.gather(last, 1, before[:, :, None].expand(-1, -1, shape.hidden)).flatten(0, 1)
    states = states.flatten(0, 2).float()
    markov = weights[MARKOV_IN][previous.flatten()]
    valid = inside.flatten().float()
    vocabulary = batch.vocabulary
    with torch.no_grad():
        head = head_gradient(
            HeadInput(
                states=states,
                markov=markov,
                teacher=teacher,
                valid=valid,
                embed=target.embed[vocabulary],
                markov_out=weights[MARKOV_OUT][vocabulary],
                size=size,
            ),
            schedule,
        )
        weights[MARKOV_OUT].grad = torch.zeros_like(weights[MARKOV_OUT]).index_copy_(0, vocabulary, head.markov_out)
    doubt = functional.binary_cross_entropy_with_logits(
        confidence(weights, states, markov), head.agrees.float(), reduction="none"
    )
    doubt = (doubt * head.weights).sum()
    torch.autograd.backward(
        [states, markov, schedule.confidence * doubt], [head.states, head.markov, torch.ones_like(doubt)]
    )
    by_place = (head.agrees.reshape(-1, size) * valid.reshape(-1, size)).sum(0)
    agreement = by_place / valid.reshape(-1, size).sum(0).clamp_min(1)
    return {"loss": head.loss, "confidence": doubt.detach(), "agreement": agreement}


def _read(outcome: dict[str, Tensor]) -> dict[str, Any]:
    return {
        name: round(value.item(), 4) if value.ndim == 0 else [round(x, 4) for x in value.tolist()]
        for name, value in outcome.items()
    }
