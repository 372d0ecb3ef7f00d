"""From nothing to a measured DeepSeek-V4 pair of a few megabytes: make, convert, quantize, check, launch, measure."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from analysis.convert.compare import Change, compare_models
from analysis.convert.dsv4 import TINY, Recipe, write_checkpoint, write_gguf
from analysis.convert.dsv4.tokenizer import ordinary_ids
from analysis.convert.dsv4.walk import expected_steps, readable_pairs, text_of, walk
from analysis.convert.fit import Fit, check_fit
from analysis.convert.gguf import GGUFFile, read_gguf
from analysis.convert.memory import Serving, machine_memory
from analysis.convert.quantize import quantize
from analysis.convert.recipes import load_recipe
from analysis.convert.rewrite import write_f32
from analysis.launch import Completion, FoundEngine, Server, ServerConfig

CONTEXT = 1024


@dataclass(frozen=True)
class TinyPair:
    """A synthetic pair on disk: as the official converter would write it, quantized by a recipe, and in F32.

    `quantized` is the target, `light` the drafter of the recipe; `changes` says what the recipe did to the drafter.
    """

    recipe: Recipe
    target: GGUFFile
    drafter: GGUFFile
    quantized: GGUFFile
    light: GGUFFile
    f32: GGUFFile
    changes: tuple[Change, ...]
    fit: Fit

    @property
    def files(self) -> dict[str, GGUFFile]:
        """Return every file by what it is."""
        return {
            "target": self.target,
            "drafter": self.drafter,
            "target, quantized": self.quantized,
            "drafter, quantized": self.light,
            "target, F32": self.f32,
        }


@dataclass(frozen=True)
class Served:
    """One prompt of one token: what the server did, and what the tables say it must do."""

    prompt: int
    completion: Completion
    expected: tuple[tuple[int, int], ...]

    @property
    def as_expected(self) -> bool:
        """Return whether every step drafted and accepted what the tables say."""
        return tuple(zip(self.completion.drafted, self.completion.accepted, strict=True)) == self.expected


def make_tiny(folder: Path, recipe: Recipe, quantization: str = "q2k-q4k") -> TinyPair:
    """Make a checkpoint and every file of it in a new folder, and check that target and drafter fit.

    Raises:
        Problem: the folder is not empty, the disk is full, or the pair does not fit.
    """
    checkpoint = folder / "tiny-0731"
    write_checkpoint(checkpoint, TINY, recipe, progress=False)
    target = write_gguf(checkpoint, "target", folder / "target.gguf")
    drafter = write_gguf(checkpoint, "drafter", folder / "drafter.gguf")
    types = load_recipe(quantization)
    quantized = quantize(target, folder / f"target-{quantization}.gguf", types, progress=False)
    light = quantize(drafter, folder / f"drafter-{quantization}.gguf", types, progress=False)
    before = read_gguf(target), read_gguf(drafter)
    serving = Serving(context=CONTEXT, rollback=TINY.block_size)
    fit = check_fit(before[0], light, spec_type="draft-dspark", serving=serving, room=machine_memory()[1])
    fit.require()
    return TinyPair(
        recipe=recipe,
        target=before[0],
        drafter=before[1],
        quantized=quantized,
        light=light,
        f32=write_f32(target, folder / "target-f32.gguf"),
        changes=compare_models(before[1], light, progress=False),
        fit=fit,
    )


def serve_tiny(found: FoundEngine, pair: TinyPair, prompts: Sequence[int], n_predict: int) -> tuple[Served, ...]:
    """Serve the target with the quantized drafter and let it go on from each token.

    Raises:
        Problem: the server died or contradicted itself.
    """
    block = TINY.block_size
    config = ServerConfig(
        model=pair.target.path,
        drafter=pair.light.path,
        spec_type="draft-dspark",
        n_max=block,
        context=CONTEXT,
        flash_attn="off",
    )
    with Server(found, config) as server:
        return tuple(
            Served(
                prompt=token,
                completion=server.client.complete([token], n_predict=n_predict, seed=1),
                expected=tuple(expected_steps(TINY, pair.recipe, token, n_predict, block)),
            )
            for token in prompts
        )


def write_target(folder: Path, recipe: Recipe) -> Path:
    """Make a target alone in a new folder and return its file.

    Raises:
        Problem: the folder is not empty, or the disk is full.
    """
    write_checkpoint(folder, TINY, recipe, progress=False)
    return write_gguf(folder, "target", folder / "target.gguf")


def starting_tokens(count: int) -> list[int]:
    """Return `count` ordinary tokens, spread over the vocabulary."""
    ordinary = ordinary_ids(TINY.vocabulary)
    return [ordinary[place * len(ordinary) // count] for place in range(count)]


def right_text(recipe: Recipe, count: int) -> list[int]:
    """Return `count` tokens that the target itself would emit."""
    return walk(TINY, recipe, starting_tokens(1)[0], count)


def sample_text(recipe: Recipe, count: int) -> str:
    """Return text of about `count` tokens, a third of which the target knows from the one before.

    Tokens stand in pairs with their successors; a digit between the pairs keeps them apart.
    """
    pairs, generator = readable_pairs(TINY, recipe), np.random.RandomState(recipe.seed)
    chosen = generator.randint(0, (len(pairs), 10), (count // 3, 2))
    return "".join(f"{text_of(pairs[pair], TINY.vocabulary)}{digit}" for pair, digit in chosen)
