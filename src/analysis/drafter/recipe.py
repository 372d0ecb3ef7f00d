"""The recipe end to end, stage by stage; each stage reads what the one before it left in the directory.

    prompts.npz    what the target is given to begin from (needs the engine's binding, no torch)
    short.npz, long.npz, held_out.npz    what it wrote
    checkpoint.pt  the training as far as it got
    hf/            the drafter, as llama.cpp's converter reads it
    result.json    recipe, machine, training history, evaluation of every held-out text
"""

import json
import platform
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from random import Random
from typing import Any

from analysis.drafter.prompts import Prompts, build
from analysis.drafter.shapes import KINDS, Recipe
from analysis.drafter.text import gather, installed_sources
from analysis.records import Problem

Say = Callable[[str], None]
STAGES = ("prompts", "write", "train", "evaluate")


def make_prompts(target: Path, recipe: Recipe, directory: Path, say: Say) -> None:
    """Gather text, cut it to prompts and tokenize them as the engine does. This stage needs no torch."""
    encode = engine_tokenizer(target)
    rng, plan = Random(recipe.seed), recipe.text
    wanted = plan.batch * plan.batches
    sources = list(installed_sources())
    most = max(60, min(6000, wanted // 6))
    material = gather(sources, rng, most_files=most, held_out=False)
    spare = gather(sources, rng, most_files=max(20, most // 10), held_out=True)
    sizes = (wanted, plan.long_batch * plan.long_batches, plan.held_out)
    prompts = build(encode, material, spare, sizes, recipe.seed)
    directory.mkdir(parents=True, exist_ok=True)
    prompts.save(directory / "prompts.npz")
    say(f"{sum(len(group) for group in prompts.train.values())} prompts from {len(material.origins)} origins")


def engine_tokenizer(target: Path) -> Callable[[str], list[int]]:
    """Return text to tokens by the vocabulary in the target's file; marks like `<|im_start|>` are single tokens."""
    from llama_cpp import Llama  # the machine that trains may have no engine

    llama = Llama(str(target), vocab_only=True, verbose=False)

    def encode(text: str) -> list[int]:
        tokens: list[int] = llama.tokenize(text.encode(), add_bos=False, special=True)
        return tokens

    return encode


def write(target: Path, recipe: Recipe, directory: Path, say: Say) -> None:
    """Let the target write the texts to learn from and those to be judged by."""
    from analysis.drafter import generate, target as targets, torchlib  # torch is optional

    prompts = Prompts.load(_needed(directory / "prompts.npz", "prompts"))
    loaded = targets.load_target(target, torchlib.best_device())
    for name, texts in generate.write_texts(loaded, prompts, recipe.text, recipe.seed, say).items():
        texts.save(directory / f"{name}.npz")


def train(target: Path, recipe: Recipe, directory: Path, say: Say) -> None:
    """Train on what was written, from the checkpoint where there is one, and export the drafter."""
    from analysis.drafter import export, generate, target as targets, torchlib, train as training

    device = torchlib.best_device()
    short, long = (generate.Texts.load(_needed(directory / f"{name}.npz", "write")) for name in ("short", "long"))
    loaded = targets.load_target(target, device)
    feed = training.Feed(short, long, recipe, device)
    say(f"{len(short)} + {len(long)} texts, {short.answer_tokens + long.answer_tokens} tokens; "
        f"the frequent part of the vocabulary covers {feed.coverage:.4f}")
    weights, history = training.train(loaded, feed, recipe, directory, say)
    arrays = {name: weight.cpu().numpy() for name, weight in weights.items()}
    export.save_checkpoint(directory / "hf", export.snapped(arrays), recipe.shape)
    _merge(directory / "result.json", {
        "recipe": recipe.plain(),
        "device": training.torch.cuda.get_device_name() if device == "cuda" else platform.machine(),
        "torch": training.torch.__version__,
        "texts": {"short": len(short), "long": len(long)},
        "answer_tokens": {"short": short.answer_tokens, "long": long.answer_tokens},
        "coverage": feed.coverage,
        "history": history,
    })


def evaluate(target: Path, directory: Path, say: Say, *, n_max: int | None = None) -> dict[str, Any]:
    """Draft over the held-out texts with the exported drafter and return mean accepted length by kind."""
    from analysis.drafter import export, generate, replay, target as targets, torchlib

    device = torchlib.best_device()
    arrays, shape = export.load_checkpoint(_needed(directory / "hf", "train"))
    weights = {name: torchlib.torch.from_numpy(array).float().to(device) for name, array in arrays.items()}
    texts = generate.Texts.load(_needed(directory / "held_out.npz", "write"))
    depth = n_max or min(5, shape.block)
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
    _merge(directory / "result.json", {
        "replay": {"n_max": depth, "summary": summary, "texts": [asdict(one) for one in replays]}
    })
    return summary


def _merge(path: Path, news: dict[str, Any]) -> None:
    known = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    path.write_text(json.dumps(known | news, indent=1) + "\n", encoding="utf-8")


def _needed(path: Path, stage: str) -> Path:
    if not path.exists():
        raise Problem(f"no {path}", expected=f"what the stage {stage} leaves", remedy=f"run it first: --stage {stage}")
    return path
