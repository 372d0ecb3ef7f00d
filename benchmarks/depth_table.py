"""A depth x regime table with the prefix of a depth filled once, beside filling the context again for every sample.

Two servers of one configuration live side by side and take turns, prompt by prompt, in an order that alternates. The
first is measured as grids are: the text in front of the prompts is filled once and its samples reuse it. The second
may not use its prompt cache, so that each sample fills everything again. The first way measures every cell. Filling
again takes so long that it measures one cell, the first kind of text; a table is that many such cells, for a fill does
not depend on the kind of text. Both ways are asked for the same prompts, and what they measured is compared by prompt.

`python benchmarks/depth_table.py 1024` tries it at another depth.
"""

import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from analysis.launch import read_machine, resolve_engine
from analysis.measure.corpus import Corpus
from analysis.measure.grid import Setting
from analysis.measure.legs import leg_of
from analysis.measure.life import Life
from analysis.measure.plan import Grid, LegPlan
from analysis.measure.prompts import Prompt, build_prompts
from analysis.measure.serving import serving_of
from analysis.measure.study import describe_run
from analysis.records import Regime, Sample
from analysis.records.model import Fill
from analysis.records.store import RunDir
from analysis.stats import Interval, mean_t, speed_ratio

PAIR, DEPTH, SAMPLES, N_PREDICT = "smollm2-dspark", 7000, 6, 48
REGIMES: tuple[Regime, ...] = ("continuation", "invention", "recall", "prose")
WAYS: tuple[Fill, Fill] = ("reused", "uncached")


@dataclass
class Spent:
    """What one way measured: wall seconds and sample by kind of text and prompt, and the seconds of its shared fill."""

    shared_s: float = 0.0
    seconds: dict[Regime, list[float]] = field(default_factory=dict)
    samples: dict[tuple[Regime, str], Sample] = field(default_factory=dict)


def measure(depth: int = DEPTH) -> list[dict[str, str]]:
    """Return the rows of the README's table."""
    grid = Grid(
        title="depth table",
        depths=(depth,),
        regimes=REGIMES,
        prompts=SAMPLES,
        n_predict=N_PREDICT,
        local_tokens=128,
    )
    leg, files = leg_of(serving_of(PAIR))
    found = resolve_engine()
    setting = Setting(read_machine(), found.engine, found, Corpus.standard_library())
    with TemporaryDirectory() as folder:
        run = describe_run("depth-table", grid.title, setting, files)
        with RunDir.create(Path(folder) / "run", run).writing() as writer, ExitStack() as stack:
            lives = {way: stack.enter_context(Life(found, leg, writer, name=f"{way}-0")) for way in WAYS}
            spent = taken(lives, leg, grid, setting)
    return rows(spent["reused"], spent["uncached"], depth)


def taken(lives: Mapping[Fill, Life], leg: LegPlan, grid: Grid, setting: Setting) -> dict[Fill, Spent]:
    """Measure every sample that the two ways take."""
    spent: dict[Fill, Spent] = {way: Spent() for way in WAYS}
    for regime in grid.regimes:
        # Filling again is measured for the first kind of text alone.
        ways = WAYS if regime == grid.regimes[0] else WAYS[:1]
        for number, prompt in enumerate(prompts_of(lives[WAYS[0]], grid, regime, setting)):
            if not spent[WAYS[0]].seconds:
                with timed() as clock:
                    lives[WAYS[0]].prime(prompt.filler(grid.depths[0]))
                spent[WAYS[0]].shared_s = clock[0]
                lives[WAYS[1]].ask(prompt.local[:8], n_predict=2)
            for order, way in enumerate(ways if number % 2 else reversed(ways)):
                cell = leg.cell(
                    replace(grid, fill=way),
                    depth=grid.depths[0],
                    regime=regime,
                    machine=setting.machine,
                    engine=setting.engine,
                )
                with timed() as clock:
                    sample = lives[way].take(cell, prompt, order=order, seed=grid.seed)
                spent[way].seconds.setdefault(regime, []).append(clock[0])
                spent[way].samples[regime, prompt.id] = sample
    return spent


def prompts_of(life: Life, grid: Grid, regime: Regime, setting: Setting) -> list[Prompt]:
    """Return the prompts of one kind of text."""
    return build_prompts(
        setting.corpus,
        life.client.tokenize,
        regime=regime,
        depths=grid.depths,
        count=grid.prompts,
        local_tokens=grid.local_tokens,
        seed=grid.seed,
        bos=life.client.beginning(),
    )


@contextmanager
def timed() -> Iterator[list[float]]:
    """Yield a list that holds the seconds that have passed once the block is left."""
    clock: list[float] = []
    begin = time.monotonic()
    yield clock
    clock.append(time.monotonic() - begin)


def rows(reused: Spent, again: Spent, depth: int) -> list[dict[str, str]]:
    """Return the comparison as rows of quantity, measured, target and note."""
    regime = REGIMES[0]
    cell_s, refill_s = reused.shared_s + sum(reused.seconds[regime]), sum(again.seconds[regime])
    table_s = reused.shared_s + sum(map(sum, reused.seconds.values()))
    both = [(reused.samples[key], sample) for key, sample in again.samples.items()]
    rates = speed_ratio([rate(new) for _, new in both], [rate(old) for old, _ in both])
    apart = mean_t([share(old) - share(new) for old, new in both])
    alike = sum(old.tokens == new.tokens for old, new in both)
    deep = min(sample.cache_n + sample.prompt_n for spent in (reused, again) for sample in spent.samples.values())
    sizes = f"{SAMPLES} samples a cell at {depth:,} tokens"
    return [
        row(
            f"depth x regime table, {sizes}: filling again over filling once",
            f"{len(REGIMES) * refill_s / table_s:.1f} x",
            "≥ 4 x",
            f"{len(REGIMES)} kinds of text in {table_s:.0f} s; filling again {refill_s:.0f} s for one kind, times "
            f"{len(REGIMES)}; every context {deep:,} tokens deep",
        ),
        row("of which one cell alone, measured whole both ways", f"{refill_s / cell_s:.1f} x", "none", f"{regime}"),
        row(
            "the same results: decode rate, filled once over filled again",
            said(rates, 2),
            "holds 1",
            f"{len(both)} prompts, 95 % {rates.method}; equal text in {alike}",
        ),
        row(
            "the same results: acceptance, filled once less filled again",
            said(apart, 3),
            "holds 0",
            f"accepted over drafted, {len(both)} prompts, 95 % {apart.method}",
        ),
    ]


def row(quantity: str, measured: str, target: str, note: str) -> dict[str, str]:
    """Return one row of the table."""
    return {"quantity": quantity, "measured": measured, "target": target, "note": note}


def rate(sample: Sample) -> float:
    """Return the decode rate of a sample, in tokens a second."""
    return 1e3 * (sample.emitted - 1) / sum(sample.step_ms)


def share(sample: Sample) -> float:
    """Return the accepted share of the drafted tokens."""
    return sum(sample.accepted) / sum(sample.drafted)


def said(found: Interval, decimals: int) -> str:
    """Return an estimate with its limits, or why there are none."""
    if found.limits is None:
        return f"{found.estimate:.{decimals}f}: {found.note}"
    low, high = found.limits
    return f"{found.estimate:.{decimals}f} [{low:.{decimals}f}, {high:.{decimals}f}]"


if __name__ == "__main__":
    for line in measure(*map(int, sys.argv[1:])):
        print("; ".join(line.values()))
