"""Duels of a server against itself: two servers of one configuration, whose ratio is 1 whatever the machine does.

The duels are those of `measure.duel` (blocks of four legs in balanced random order, a discarded request before each
leg, the same prompts on both sides of a half), on the synthetic pair, so that a hundred of them take minutes.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from time import monotonic

import numpy as np
from tqdm import tqdm

from analysis.launch import Client, FoundEngine, read_machine
from analysis.measure.calibration.coverage import Coverage, count
from analysis.measure.calibration.synthetic import random_prompt, synthetic_server
from analysis.records.model import Count, plain, record
from analysis.records.places import local_dir
from analysis.records.store import append_line, journal_writing, read_lines, write_atomically
from analysis.stats import Interval, block_orders, speed_ratio

GROUND = ".json"
"""Beside a journal of duels lies the machine that they were fought on, under the same name."""


@record
class SelfDuel:
    """One duel: the decode rates (tokens/s) of both sides, prompt by prompt, and the block of each."""

    number: Count
    block: tuple[Count, ...]
    a: tuple[float, ...]
    b: tuple[float, ...]

    @property
    def ratio(self) -> Interval:
        """Return the speed of b over that of a with its interval over blocks."""
        return speed_ratio(self.a, self.b, self.block, unit="blocks")


@dataclass(frozen=True, kw_only=True)
class SelfDuels:
    """How the duels are fought: blocks a duel, prompts a leg, tokens a prompt."""

    blocks: int = 4
    prompts: int = 2
    emitted: int = 48
    seed: int = 0

    def journal(self, found: FoundEngine) -> Path:
        """Return the file of the duels fought so far with this engine."""
        digest = hashlib.sha256(repr((found.engine, self)).encode()).hexdigest()[:6]
        return local_dir() / "calibration" / f"self-duels-{digest}.jsonl"


def fight(plan: SelfDuels, found: FoundEngine, duels: int, *, budget_s: float | None = None) -> list[SelfDuel]:
    """Fight what is missing of `duels` duels and return all; a duel that was cut off is fought again.

    Raises:
        Problem: a server failed, or another process is fighting them.
    """
    journal = plan.journal(found)
    end = None if budget_s is None else monotonic() + budget_s
    with journal_writing(journal), ExitStack() as stack:
        ground = journal.with_suffix(GROUND)
        if not ground.exists():
            write_atomically(ground, json.dumps(plain(read_machine()), indent=1) + "\n")
        done = {duel.number for duel in read_lines(journal, SelfDuel)}
        missing = [number for number in range(duels) if number not in done]
        if missing:
            clients = {side: stack.enter_context(synthetic_server(found)).client for side in "ab"}
            for number in tqdm(missing, desc="duels with oneself", unit="duel"):
                if end is not None and monotonic() > end:
                    break
                append_line(journal, _duel(plan, clients, number))
    return list(read_lines(journal, SelfDuel))


def self_coverage(duels: Sequence[SelfDuel]) -> Coverage:
    """Return how often the ratio's interval held 1; `prompts` counts the blocks of a duel."""
    blocks = len(set(duels[0].block)) if duels else 0
    return count("speed ratio of a server to itself", blocks, [(duel.ratio, 1.0) for duel in duels])


def _duel(plan: SelfDuels, clients: Mapping[str, Client], number: int) -> SelfDuel:
    rng = np.random.default_rng((plan.seed, number))
    rates: dict[str, list[float]] = {"a": [], "b": []}
    block: list[int] = []
    for place, order in enumerate(block_orders(plan.blocks, seed=int(rng.integers(2**31)))):
        for half in (0, 1):
            prompts = [random_prompt(rng) for _ in range(plan.prompts)]
            for side in order[2 * half : 2 * half + 2]:
                _decode(clients[side], random_prompt(rng), 8)  # the warm-up
                rates[side] += [_decode(clients[side], prompt, plan.emitted) for prompt in prompts]
            block += [place] * plan.prompts
    return SelfDuel(number=number, block=tuple(block), a=tuple(rates["a"]), b=tuple(rates["b"]))


def _decode(client: Client, prompt: list[int], emitted: int) -> float:
    found = client.complete(prompt, n_predict=emitted, seed=0, cache_prompt=False, ignore_eos=True)
    return 1e3 * (len(found.tokens) - 1) / sum(found.step_ms)
