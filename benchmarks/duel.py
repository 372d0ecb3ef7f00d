"""Width of a speed ratio's interval: duels beside two unpaired runs, while a load on the machine comes and goes.

Both designs ask two servers of one configuration for the same requests, so that they take the same wall time. A duel
takes them in blocks of four legs; the unpaired design asks one server for all, then the other, and compares the two
lists afterwards (Welch's interval on the logarithms of the rates), as scripts do that compare two finished runs. The
designs take turns. A process that computes for some seconds and rests for some is the load, which is why no gate for a
quiet host looks at this. The ratio is 1, so that the row also says how often each interval held the truth: where the
load changes slowly, an unpaired interval can be narrow and wrong.
"""

import random
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
from scipy import stats

from analysis.launch import Client, resolve_engine
from analysis.measure.calibration.synthetic import random_prompt, synthetic_server
from analysis.stats import block_orders, speed_ratio

BLOCKS, PROMPTS, EMITTED, ROUNDS = 16, 1, 48, 6
LOAD = """
import random, time
rng = random.Random(5)
while True:
    end = time.monotonic() + rng.uniform(1, 6)
    while time.monotonic() < end:
        sum(range(10_000))
    time.sleep(rng.uniform(1, 6))
"""


def measure() -> list[dict[str, str]]:
    """Return the row of the README's table."""
    found = resolve_engine()
    rng = np.random.default_rng(1)
    widths: dict[str, list[float]] = {"duel": [], "unpaired": []}
    held: dict[str, int] = {"duel": 0, "unpaired": 0}
    with synthetic_server(found) as first, synthetic_server(found) as second, background_load():
        servers = {"a": first.client, "b": second.client}
        for client in servers.values():
            decode(client, random_prompt(rng))  # the warm-up
        for number in range(ROUNDS):
            designs = [("duel", duel), ("unpaired", unpaired)]
            random.Random(number).shuffle(designs)
            for name, design in designs:
                low, high = design(servers, rng, number)
                widths[name].append(high - low)
                held[name] += low <= 0 <= high
    factor = np.median(np.array(widths["unpaired"]) / np.array(widths["duel"]))
    return [
        {
            "quantity": "interval of a speed ratio under a load that comes and goes, unpaired over duel",
            "measured": f"{factor:.1f} x as wide",
            "target": "≥ 2 x",
            "note": f"median of {ROUNDS} rounds of {4 * BLOCKS * PROMPTS} requests a design, widths in the logarithm; "
            f"the duels held 1 in {held['duel']} of {ROUNDS}, the unpaired runs in {held['unpaired']}",
        }
    ]


def duel(servers: dict[str, Client], rng: np.random.Generator, number: int) -> tuple[float, float]:
    """Return the limits of the logarithm of the ratio from blocks of four legs."""
    rates: dict[str, list[float]] = {"a": [], "b": []}
    block: list[int] = []
    for place, order in enumerate(block_orders(BLOCKS, seed=number)):
        for half in (0, 1):
            prompts = [random_prompt(rng) for _ in range(PROMPTS)]
            for side in order[2 * half : 2 * half + 2]:
                rates[side] += [decode(servers[side], prompt) for prompt in prompts]
            block += [place] * PROMPTS
    limits = speed_ratio(rates["a"], rates["b"], block, unit="blocks").limits
    assert limits
    return float(np.log(limits[0])), float(np.log(limits[1]))


def unpaired(servers: dict[str, Client], rng: np.random.Generator, number: int) -> tuple[float, float]:
    """Return the limits of the logarithm of the ratio from all requests to one server, then all to the other."""
    prompts = [random_prompt(rng) for _ in range(2 * BLOCKS * PROMPTS)]
    order = ("a", "b") if number % 2 else ("b", "a")
    rates = {side: [decode(servers[side], prompt) for prompt in prompts] for side in order}
    found = stats.ttest_ind(np.log(rates["b"]), np.log(rates["a"]), equal_var=False).confidence_interval(0.95)
    return float(found.low), float(found.high)


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
