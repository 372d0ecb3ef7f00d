"""Width of a speed ratio's interval: duels beside two unpaired runs, while a load on the machine comes and goes.

Both designs ask two servers of one configuration for the same requests, so that they take the same wall time. A duel
takes them in blocks of four legs; the unpaired design asks one server for all, then the other, and compares the two
lists afterwards (Welch's interval on the logarithms of the rates), as scripts do that compare two finished runs. The
designs take turns. A process that computes for some seconds and rests for some is the load, which is why no gate for a
quiet host looks at this. The true ratio is 1.

An interval from within two unpaired runs takes their requests for independent, which a load makes them not: it is
narrow, and wrong. Widths are therefore compared between intervals that both designs may claim: over rounds, each of
which gives one ratio. How often the interval from within a round holds 1 is a row of its own.
"""

import random
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np
from scipy import stats

from analysis.launch import Client, resolve_engine
from analysis.measure.calibration.synthetic import random_prompt, synthetic_server
from analysis.stats import block_orders, speed_ratio

BLOCKS, PROMPTS, EMITTED, ROUNDS = 16, 1, 48, 16
LOAD = """
import random, time
rng = random.Random(5)
while True:
    end = time.monotonic() + rng.uniform(1, 6)
    while time.monotonic() < end:
        sum(range(10_000))
    time.sleep(rng.uniform(1, 6))
"""


class Found(NamedTuple):
    """What one round of a design gives: the logarithm of the ratio, and the limits of its interval."""

    log_ratio: float
    low: float
    high: float


def measure() -> list[dict[str, str]]:
    """Return the rows of the README's table."""
    found = resolve_engine()
    rng = np.random.default_rng(1)
    rounds: dict[str, list[Found]] = {"duel": [], "unpaired": []}
    with synthetic_server(found) as first, synthetic_server(found) as second, background_load():
        servers = {"a": first.client, "b": second.client}
        for client in servers.values():
            decode(client, random_prompt(rng))  # the warm-up
        for number in range(ROUNDS):
            designs = [("duel", duel), ("unpaired", unpaired)]
            random.Random(number).shuffle(designs)
            for name, design in designs:
                rounds[name].append(design(servers, rng, number))
    return rows(rounds["duel"], rounds["unpaired"])


def rows(duels: list[Found], runs: list[Found]) -> list[dict[str, str]]:
    """Return the comparison as rows of quantity, measured, target and note.

    Intervals over equally many rounds are as wide as the rounds' spreads; the interval of a ratio of two standard
    deviations is F's.
    """
    spread = {name: np.std([one.log_ratio for one in found], ddof=1) for name, found in (("d", duels), ("r", runs))}
    factor = spread["r"] / spread["d"]
    low, high = factor / np.sqrt(stats.f.ppf((0.975, 0.025), len(runs) - 1, len(duels) - 1))
    held, held_unpaired = (sum(one.low <= 0 <= one.high for one in found) for found in (duels, runs))
    nominal = np.median([(r.high - r.low) / (d.high - d.low) for d, r in zip(duels, runs, strict=True)])
    each = f"{len(duels)} rounds of {4 * BLOCKS * PROMPTS} requests a design"
    return [
        {
            "quantity": "interval of a speed ratio under a load that comes and goes, unpaired over duel",
            "measured": f"{factor:.1f} x as wide [{low:.1f}, {high:.1f}]",
            "target": "≥ 2 x",
            "note": f"over {each}, 95 % F",
        },
        {
            "quantity": "rounds whose own interval held the true ratio: duels, unpaired runs",
            "measured": f"{held} of {len(duels)}, {held_unpaired} of {len(runs)}",
            "target": "none",
            "note": f"the unpaired interval is {nominal:.1f} x as wide as the duel's; requests count as independent",
        },
    ]


def duel(servers: dict[str, Client], rng: np.random.Generator, number: int) -> Found:
    """Return the ratio from blocks of four legs."""
    rates: dict[str, list[float]] = {"a": [], "b": []}
    block: list[int] = []
    for place, order in enumerate(block_orders(BLOCKS, seed=number)):
        for half in (0, 1):
            prompts = [random_prompt(rng) for _ in range(PROMPTS)]
            for side in order[2 * half : 2 * half + 2]:
                rates[side] += [decode(servers[side], prompt) for prompt in prompts]
            block += [place] * PROMPTS
    ratio = speed_ratio(rates["a"], rates["b"], block, unit="blocks")
    assert ratio.limits
    return Found(*(float(np.log(value)) for value in (ratio.estimate, *ratio.limits)))


def unpaired(servers: dict[str, Client], rng: np.random.Generator, number: int) -> Found:
    """Return the ratio from all requests to one server, then all to the other."""
    prompts = [random_prompt(rng) for _ in range(2 * BLOCKS * PROMPTS)]
    order = ("a", "b") if number % 2 else ("b", "a")
    rates = {side: [decode(servers[side], prompt) for prompt in prompts] for side in order}
    logs = {side: np.log(values) for side, values in rates.items()}
    found = stats.ttest_ind(logs["b"], logs["a"], equal_var=False).confidence_interval(0.95)
    return Found(float(np.mean(logs["b"]) - np.mean(logs["a"])), float(found.low), float(found.high))


def decode(client: Client, prompt: list[int]) -> float:
    """Return the decode rate of one request, in tokens a second."""
    found = client.complete(prompt, n_predict=EMITTED, seed=0, cache_prompt=False, ignore_eos=True)
    return 1e3 * (len(found.tokens) - 1) / sum(found.step_ms)


@contextmanager
def background_load() -> Iterator[None]:
    """Keep a core busy now and then."""
    process = subprocess.Popen([sys.executable, "-c", LOAD])
    try:
        yield
    finally:
        process.kill()
        process.wait()


if __name__ == "__main__":
    for line in measure():
        print("; ".join(line.values()))
