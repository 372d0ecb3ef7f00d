"""A drafter that was made for another target of the same shape and vocabulary: nothing in its header tells."""

import tempfile
from dataclasses import dataclass
from pathlib import Path

from analysis.convert.dsv4 import TINY, Recipe, write_checkpoint, write_gguf
from analysis.convert.fit import check_fit
from analysis.convert.gguf import read_gguf
from analysis.launch.drafting import Drafter, generate, generate_raw
from analysis.launch.inside import Context, Model
from analysis.measure.exact.tiny import starting_tokens


@dataclass(frozen=True)
class Foreign:
    """One drafter with the target: what the headers say, and what was drafted and accepted over all prompts."""

    title: str
    fits: bool
    prompts: int
    drafted: int
    accepted: int
    same_text: int


def foreign_drafter(*, prompts: int = 6, count: int = 40) -> tuple[Foreign, ...]:
    """Let a synthetic target be drafted for by its own drafter and by that of another seed, in process.

    Raises:
        Problem: the disk is full, or the engine cannot load what was made.
    """
    with tempfile.TemporaryDirectory(prefix="specbook-") as scratch:
        paths = {}
        for seed in (1, 2):
            checkpoint = Path(scratch) / f"seed-{seed}"
            write_checkpoint(checkpoint, recipe=Recipe(seed=seed), progress=False)
            paths[seed] = write_gguf(checkpoint, "drafter", Path(scratch) / f"drafter-{seed}.gguf")
            if seed == 1:
                target = write_gguf(checkpoint, "target", Path(scratch) / "target.gguf")
        return (
            _drafted("its own", target, paths[1], prompts, count),
            _drafted("another target's", target, paths[2], prompts, count),
        )


def _drafted(title: str, target: Path, drafter: Path, prompts: int, count: int) -> Foreign:
    n_max = TINY.block_size
    fit = check_fit(read_gguf(target), read_gguf(drafter))
    drafted = accepted = same = 0
    with (
        Model(target) as target_model,
        Model(drafter) as drafter_model,
        Context(target_model, size=256, rollback=n_max) as context,
        Context(drafter_model, size=256, target=context) as beside,
    ):
        drafting = Drafter(context, beside)
        for token in starting_tokens(prompts):
            raw, _ = generate_raw(context, [token], count)
            found = generate(context, drafting, [token], count, n_max=n_max)
            drafted += sum(found.drafted)
            accepted += sum(found.accepted)
            same += list(found.tokens) == raw
    return Foreign(title, not fit.refused, prompts, drafted, accepted, same)
