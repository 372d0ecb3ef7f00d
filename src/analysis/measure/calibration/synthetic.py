"""Cells whose acceptance is known: a real llama-server that accepts drafts by coin flips of given rates.

The pair is the synthetic DeepSeek-V4 pair with its DSpark drafter, which decodes fast; stream, steps, counters and
requests are those of any measurement. Each request has a seed of its own, for equal seeds give equal coins.
"""

import hashlib
import json
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event, Lock
from time import monotonic

import numpy as np
from tqdm import tqdm

from analysis.convert.dsv4 import TINY, write_checkpoint, write_gguf
from analysis.convert.dsv4.tokenizer import ordinary_ids
from analysis.launch import Client, FoundEngine, Server, ServerConfig, read_machine
from analysis.measure.life import StreamCounters, check_counters
from analysis.measure.provenance import commit
from analysis.records import Engine, Machine
from analysis.records.model import Count, Share, plain, record
from analysis.records.places import cache_dir, local_dir
from analysis.records.store import append_line, journal_writing, read_lines, write_atomically

RATES: tuple[tuple[float, ...], ...] = (
    (0.80, 0.60, 0.45, 0.30, 0.20),
    (0.50, 0.25, 0.12, 0.06, 0.03),
    (0.30, 0.10, 0.04, 0.02, 0.01),
    (0.65, 0.45, 0.30, 0.22, 0.15),
    (0.70, 0.60, 0.50, 0.40, 0.35),
    (0.40, 0.30, 0.25, 0.20, 0.15),
    (0.75, 0.40, 0.20, 0.10, 0.05),
    (0.60, 0.36, 0.22, 0.13, 0.08),
    (0.55, 0.50, 0.45, 0.40, 0.10),
    (0.92, 0.85, 0.78, 0.72, 0.66),
)
"""Survival rates by position: steep and flat, low and high; the last lies where intervals are mostly refused."""

PROMPT_TOKENS = 4

CELLS, MADE = "cells.jsonl", "made.json"


@record
class SyntheticCell:
    """One cell of known acceptance: what each of its requests drafted and accepted, step by step.

    Evaluations without a draft are in it with 0. `rates` are P(accepted >= k); a request emitted `emitted` tokens.
    """

    number: Count
    rates: tuple[Share, ...]
    emitted: Count
    drafted: tuple[tuple[Count, ...], ...]
    accepted: tuple[tuple[Count, ...], ...]


@record
class Made:
    """What measured the cells of a campaign, and their sizes. It lies beside them: another machine may count."""

    machine: Machine
    engine: Engine
    commit: str
    dirty: bool
    requests: Count
    emitted: Count
    rates: tuple[tuple[Share, ...], ...]


@dataclass(frozen=True, kw_only=True)
class Campaign:
    """Which cells to measure: `requests` of `emitted` tokens each; the rates take turns."""

    requests: int = 8
    emitted: int = 24
    seed: int = 0
    rates: tuple[tuple[float, ...], ...] = RATES

    def folder(self, found: FoundEngine) -> Path:
        """Return where its cells are recorded; another engine, or other sizes, are another folder."""
        identity = repr((found.engine, self))
        digest = hashlib.sha256(identity.encode()).hexdigest()[:6]
        return local_dir() / "calibration" / f"synthetic-{digest}"

    def made(self, found: FoundEngine) -> Made:
        """Return what measures its cells here and now."""
        head, dirty = commit()
        return Made(
            machine=read_machine(),
            engine=found.engine,
            commit=head,
            dirty=dirty,
            requests=self.requests,
            emitted=self.emitted,
            rates=self.rates,
        )


def read_cells(campaign: Campaign, found: FoundEngine) -> list[SyntheticCell]:
    """Return the cells that were measured so far."""
    return list(read_lines(campaign.folder(found) / CELLS, SyntheticCell))


def measure_cells(
    campaign: Campaign, found: FoundEngine, cells: int, *, budget_s: float | None = None, servers: int = 1
) -> int:
    """Measure what is missing of the first `cells` cells; return how many are new.

    Args:
        campaign: their sizes and rates.
        found: the engine.
        cells: how many there shall be.
        budget_s: stop after so many seconds, between two cells; the next call goes on.
        servers: rates that are measured at once. Coins are drawn per request, so company changes only the time,
            and no time is taken here.

    Raises:
        Problem: a server failed, its counters contradict its stream, or another process is measuring them.
    """
    journal = campaign.folder(found) / CELLS
    with journal_writing(journal):
        if not journal.exists():
            write_atomically(journal.with_name(MADE), json.dumps(plain(campaign.made(found)), indent=1) + "\n")
        return _measure_missing(campaign, found, cells, journal, budget_s=budget_s, servers=servers)


def _measure_missing(
    campaign: Campaign, found: FoundEngine, cells: int, journal: Path, *, budget_s: float | None, servers: int
) -> int:
    done = {cell.number for cell in read_cells(campaign, found)}
    numbers = [sorted(set(range(place, cells, len(campaign.rates))) - done) for place in range(len(campaign.rates))]
    wanted = [(rates, missing) for rates, missing in zip(campaign.rates, numbers, strict=True) if missing]
    rounds = -(-len(wanted) // servers)
    share = None if budget_s is None else budget_s / max(1, rounds)
    tiny_pair()
    with (
        tqdm(total=cells, initial=len(done & set(range(cells))), desc="calibrating", unit="cell") as bar,
        ThreadPoolExecutor(servers) as pool,
    ):
        writing, ended = Lock(), Event()

        def measure(rates: tuple[float, ...], missing: Sequence[int]) -> int:
            taken = 0
            for cell in _cells_of(campaign, found, rates, missing, share):
                with writing:
                    append_line(journal, cell)
                    bar.update()
                taken += 1
                if ended.is_set():
                    break
            return taken

        try:
            return sum(pool.map(measure, *zip(*wanted, strict=True))) if wanted else 0
        except BaseException:  # Ctrl-C, too: the pool would wait for all the cells that are still missing
            ended.set()
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def tiny_pair() -> tuple[Path, Path]:
    """Return target and drafter of the synthetic pair from the user's cache, made at first use."""
    folder = cache_dir() / "calibration"
    target, drafter = folder / "tiny-target.gguf", folder / "tiny-drafter.gguf"
    if not (target.exists() and drafter.exists()):
        folder.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(dir=folder) as scratch:
            checkpoint = Path(scratch) / "tiny-0731"
            write_checkpoint(checkpoint, progress=False)
            write_gguf(checkpoint, "target", Path(scratch) / "target.gguf").replace(target)
            write_gguf(checkpoint, "drafter", Path(scratch) / "drafter.gguf").replace(drafter)
    return target, drafter


def synthetic_server(found: FoundEngine, rates: Sequence[float] = ()) -> Server:
    """Return a server of the synthetic pair that accepts by coins of these rates, or without speculation."""
    target, drafter = tiny_pair()
    if not rates:
        return Server(found, ServerConfig(model=target, context=512))
    words = ("--spec-synth-rates", ",".join(f"{rate:g}" for rate in rates))
    config = ServerConfig(
        model=target, drafter=drafter, spec_type="draft-dspark", n_max=len(rates), context=512, extra_args=words
    )
    return Server(found, config)


def random_prompt(rng: np.random.Generator) -> list[int]:
    """Return a few printable tokens; what they are is without effect on the coins."""
    return [int(token) for token in rng.choice(ordinary_ids(TINY.vocabulary), PROMPT_TOKENS)]


def _cells_of(
    campaign: Campaign, found: FoundEngine, rates: tuple[float, ...], numbers: Sequence[int], budget_s: float | None
) -> Iterator[SyntheticCell]:
    counters = StreamCounters()
    end = None if budget_s is None else monotonic() + budget_s
    with synthetic_server(found, rates) as server:
        for number in numbers:
            if end is not None and monotonic() > end:
                break
            yield _cell(server.client, counters, campaign, rates, number)
        check_counters(counters.counters(), server.client.metrics(), "of known acceptance")


def _cell(
    client: Client, counters: StreamCounters, campaign: Campaign, rates: tuple[float, ...], number: int
) -> SyntheticCell:
    rng = np.random.default_rng((campaign.seed, number))
    drafted, accepted = [], []
    for _ in range(campaign.requests):
        found = client.complete(
            random_prompt(rng),
            n_predict=campaign.emitted,
            seed=int(rng.integers(2**31)),
            cache_prompt=False,
            ignore_eos=True,
        )
        counters.add(found)
        drafted.append(found.drafted)
        accepted.append(found.accepted)
    return SyntheticCell(
        number=number, rates=rates, emitted=campaign.emitted, drafted=tuple(drafted), accepted=tuple(accepted)
    )
