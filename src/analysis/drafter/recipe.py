"""The recipe end to end, stage by stage; each stage reads what the one before it left in the directory.

prompts.npz    what the target is given to begin from (needs the engine's binding, no torch)
short.npz, long.npz, held_out.npz    what it wrote
checkpoint.pt  the training as far as it got
hf/            the drafter, as llama.cpp's converter reads it
target/        what the converter asks of the target: tokenizer and configuration
result.json    recipe, machine, training history, evaluation of every held-out text
"""

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from random import Random

from analysis.convert.gguf import read_gguf
from analysis.drafter.prompts import build
from analysis.drafter.shapes import Recipe
from analysis.drafter.text import gather, installed_sources
from analysis.records import Problem

Say = Callable[[str], None]
STAGES = ("prompts", "write", "train", "evaluate")


def run_stage(
    stage: str, target: Path, recipe: Recipe, directory: Path, say: Say, *, start: Path | None = None
) -> None:
    """Run one of `STAGES`; `start` is an exported drafter (`hf/`) that the stage `train` begins with.

    Raises:
        Problem: what the stage needs is not there (torch, or what an earlier stage leaves), or `start` does not fit.
    """
    if stage == "prompts":
        make_prompts(target, recipe, directory, say)
    else:
        # Imported when asked for: the stages that compute need torch, and making prompts does not.
        run = getattr(import_module("analysis.drafter.stages"), stage)
        run(target, recipe, directory, say, **({"start": start} if stage == "train" else {}))


def make_prompts(target: Path, recipe: Recipe, directory: Path, say: Say) -> None:
    """Gather text, cut it to prompts and tokenize them as the engine does. This stage needs no torch."""
    encode = engine_tokenizer(target)
    rng, plan = Random(recipe.seed), recipe.text  # noqa: S311 (choices, no secrets)
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
    """Return text to tokens by the vocabulary in the target's file; marks like `<|im_start|>` are single tokens.

    Raises:
        Problem: the file is missing, damaged, or the engine does not load it.
    """
    read_gguf(target)
    # The machine that trains may have no engine.
    try:
        llama = import_module("llama_cpp").Llama(str(target), vocab_only=True, verbose=False)
    except ValueError as error:  # the engine says no more than that it failed
        raise Problem(f"{target}: {error}", expected="a target with its vocabulary") from None

    def encode(text: str) -> list[int]:
        tokens: list[int] = llama.tokenize(text.encode(), add_bos=False, special=True)
        return tokens

    return encode
