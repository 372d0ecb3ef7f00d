"""The stages that compute: writing the texts, training on them, drafting over held-out ones."""

import hashlib
import json
import platform
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from analysis.drafter import description, export, generate, replay, torchlib
from analysis.drafter import target as targets
from analysis.drafter import train as training
from analysis.drafter.export import WEIGHTS
from analysis.drafter.model import Weights
from analysis.drafter.prompts import Prompts
from analysis.drafter.shapes import KINDS, Recipe
from analysis.records import Problem

Say = Callable[[str], None]
JUDGED_AT = 5  # tokens drafted at a time in the evaluation


def write(target: Path, recipe: Recipe, directory: Path, say: Say) -> None:
    """Let the target write the texts to learn from and those to be judged by."""
    prompts = Prompts.load(_needed(directory / "prompts.npz", "prompts"))
    loaded = targets.load_target(target, torchlib.best_device())
    for name, texts in generate.write_texts(loaded, prompts, recipe.text, recipe.seed, say).items():
        texts.save(directory / f"{name}.npz")


def train(target: Path, recipe: Recipe, directory: Path, say: Say, start: Path | None = None) -> None:
    """Train on what was written, from the checkpoint where there is one, and export the drafter.

    `start` is a directory with an exported drafter of the same shape to begin with; its optimiser begins anew.
    """
    device = torchlib.best_device()
    short, long = (generate.Texts.load(_needed(directory / f"{name}.npz", "write")) for name in ("short", "long"))
    loaded = targets.load_target(target, device)
    feed = training.Feed(short, long, recipe, device)
    say(
        f"{len(short)} + {len(long)} texts, {short.answer_tokens + long.answer_tokens} tokens; "
        f"the frequent part of the vocabulary covers {feed.coverage:.4f}"
    )
    begin = _tensors(export.load_fitting(start, recipe.shape), device) if start else None
    weights, history = training.train(loaded, feed, recipe, directory, say, start=begin)
    arrays = {name: weight.cpu().numpy() for name, weight in weights.items()}
    export.save_checkpoint(directory / "hf", export.snapped(arrays), recipe.shape)
    description.save_target_description(target, directory / "target")
    _merge(
        directory / "result.json",
        {
            "recipe": recipe.plain(),
            "started_from": _sha256(start / WEIGHTS) if start else None,
            "device": torchlib.torch.cuda.get_device_name() if device == "cuda" else platform.machine(),
            "torch": torchlib.torch.__version__,
            "texts": {"short": len(short), "long": len(long)},
            "answer_tokens": {"short": short.answer_tokens, "long": long.answer_tokens},
            "coverage": feed.coverage,
            "history": history,
        },
    )


def evaluate(target: Path, _recipe: Recipe, directory: Path, say: Say) -> dict[str, Any]:
    """Draft over the held-out texts with the exported drafter; return mean accepted length and survival by kind."""
    device = torchlib.best_device()
    arrays, shape = export.load_checkpoint(_needed(directory / "hf", "train"))
    weights = _tensors(arrays, device)
    texts = generate.Texts.load(_needed(directory / "held_out.npz", "write"))
    depth = min(JUDGED_AT, shape.block)
    replays = replay.replay(weights, shape, targets.load_target(target, device), texts, depth)
    summary = {}
    for kind in (*KINDS, "all"):
        chosen = [one for one in replays if kind in (one.kind, "all")]
        if chosen:
            summary[kind] = {
                "texts": len(chosen),
                "mean_length": replay.mean_length(chosen),
                "survival": replay.survival(chosen, depth),
            }
            say(f"{kind}: {len(chosen)} texts, mean accepted length {summary[kind]['mean_length']:.3f}")
    _merge(
        directory / "result.json",
        {"replay": {"n_max": depth, "summary": summary, "texts": [asdict(one) for one in replays]}},
    )
    return summary


def _tensors(arrays: export.Arrays, device: str) -> Weights:
    return {name: torchlib.torch.from_numpy(array).float().to(device) for name, array in arrays.items()}


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _merge(path: Path, news: dict[str, Any]) -> None:
    known = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    path.write_text(json.dumps(known | news, indent=1) + "\n", encoding="utf-8")


def _needed(path: Path, stage: str) -> Path:
    if not path.exists():
        raise Problem(f"no {path}", expected=f"what the stage {stage} leaves", remedy=f"run it first: --stage {stage}")
    return path
