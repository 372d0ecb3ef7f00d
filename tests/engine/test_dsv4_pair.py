"""The synthetic DeepSeek-V4 pair served for real: what it drafts and what is accepted follows from its tables."""

import pytest

from analysis.convert.dsv4 import TINY, Recipe, write_checkpoint, write_gguf
from analysis.convert.dsv4.write import drafter_table, successor_table
from analysis.launch import Server, ServerConfig

pytestmark = pytest.mark.engine

PROMPT = [5, 9, 40]
N_PREDICT = 60


def walk(recipe: Recipe, token: int, block: int) -> list[tuple[int, int]]:
    """Return (drafted, accepted) of each step when target and drafter follow their tables.

    The server drafts no more than the request still needs.
    """
    right, believed = successor_table(TINY, recipe), drafter_table(TINY, recipe)
    emitted, steps = 1, []
    token = right[token]
    while emitted < N_PREDICT:
        drafted, kept = min(block, N_PREDICT - emitted - 1), 0
        while kept < drafted and believed[token] == right[token]:
            token = right[token]
            kept += 1
        token = right[token]
        steps.append((drafted, kept))
        emitted += kept + 1
    return steps


@pytest.mark.parametrize("agree", [0.0, 0.8, 1.0])
def test_acceptance_is_what_the_tables_say(engine, tmp_path, agree):
    recipe = Recipe(agree=agree)
    checkpoint = tmp_path / "tiny-0731"
    write_checkpoint(checkpoint, recipe=recipe)
    config = ServerConfig(
        model=write_gguf(checkpoint, "target", tmp_path / "target.gguf"),
        drafter=write_gguf(checkpoint, "drafter", tmp_path / "drafter.gguf"),
        spec_type="draft-dspark",
        n_max=TINY.block_size,
        context=512,
    )
    with Server(engine, config) as server:
        found = server.client.complete(PROMPT, n_predict=N_PREDICT, seed=1)
    successors = successor_table(TINY, recipe)
    assert [successors[token] for token in (PROMPT[-1], *found.tokens[:-1])] == list(found.tokens)
    assert list(zip(found.drafted, found.accepted, strict=True)) == walk(recipe, PROMPT[-1], TINY.block_size)
