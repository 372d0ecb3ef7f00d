"""Where drafting begins to pay, measured: decoding at chosen acceptances beside decoding without a draft.

A server that accepts by coins (`--spec-synth-rates`) evaluates, rolls back and counts as always, so that the cost of a
step is real while its acceptance is chosen. Its text is worth nothing and is not kept. Prompts are taken one after the
other, each on every leg, in an order of its own; all servers stay alive and all but one idle.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd
from tqdm import tqdm

from analysis.convert.files import whole_file
from analysis.launch import FoundEngine, Server, read_host_state, read_machine, resolve_engine
from analysis.measure.access import corpus_of
from analysis.measure.corpus import Corpus
from analysis.measure.estimate import interval_columns
from analysis.measure.legs import leg_of
from analysis.measure.life import now
from analysis.measure.plan import Grid, LegPlan, check_context, load_grid, raw_leg
from analysis.measure.prompts import Prompt, build_prompts
from analysis.measure.provenance import commit, file_hashes
from analysis.measure.serving import serving_of
from analysis.records import Engine, FileHash, HostState, Machine, Problem, Regime
from analysis.records.model import Count, Duration, Positive, Share, parse, plain, record
from analysis.records.places import data_dir, local_dir
from analysis.records.store import append_line, journal_writing, read_lines
from analysis.stats import Interval, RawLeg, Steps, crossing, decode_rate, interval_of
from analysis.stats.intervals import Scale
from analysis.stats.resampling import cluster_sums

ACCEPTANCES = (0.1, 0.4, 0.7, 0.95)
"""Chance of each drafted token to be accepted, given that those before it were."""


@record
class CrossingSample:
    """One request: what each evaluation drafted, accepted and took (ms). `acceptance` is None on the raw leg."""

    prompt: str
    acceptance: Share | None
    drafted: tuple[Count, ...]
    accepted: tuple[Count, ...]
    step_ms: tuple[Duration, ...]


@record
class RecordedCrossing:
    """A measured break-even and what it was measured with; `depth`, `n_max` and `n_predict` are tokens."""

    pair: str
    depth: Positive
    regime: Regime
    n_max: Positive
    n_predict: Positive
    threads: Positive
    machine: Machine
    engine: Engine
    files: tuple[FileHash, ...]
    corpus: str
    corpus_sha256: str
    at: str
    commit: str
    dirty: bool
    host_before: HostState
    host_after: HostState
    samples: tuple[CrossingSample, ...]


@dataclass(frozen=True)
class CrossingPlan:
    """What is decoded: a pair's leg at one depth and regime, at some acceptances."""

    leg: LegPlan
    files: tuple[Path, ...]
    grid: Grid
    found: FoundEngine
    corpus: Corpus
    acceptances: tuple[float, ...] = ACCEPTANCES

    @property
    def journal(self) -> Path:
        """Return the file of its samples."""
        size = replace(self.grid, prompts=1)
        files = self.leg.target_sha256, self.leg.drafter_sha256
        identity = repr((self.found.engine, self.leg.config, files, size, self.corpus.sha256, self.acceptances))
        digest = hashlib.sha256(identity.encode()).hexdigest()[:6]
        return local_dir() / "crossing" / f"{self.leg.pair.name}-{digest}.jsonl"

    def legs(self) -> dict[float | None, LegPlan]:
        """Return how each leg is served, by its acceptance; None is raw."""
        found: dict[float | None, LegPlan] = {None: raw_leg(self.leg)}
        for acceptance in self.acceptances:
            rates = ",".join(f"{acceptance**k:.6g}" for k in range(1, self.leg.config.n_max + 1))
            words = (*self.leg.config.extra_args, "--spec-synth-rates", rates)
            found[acceptance] = replace(self.leg, config=replace(self.leg.config, extra_args=words))
        return found


def plan_crossing(
    pair: str,
    *,
    profile: str = "quick",
    size: Mapping[str, object] | None = None,
    corpus: str = "",
    acceptances: Sequence[float] = ACCEPTANCES,
) -> CrossingPlan:
    """Return the plan of a measured break-even; of the grid the first depth and regime are taken.

    Raises:
        Problem: the pair does not draft, an acceptance is no share, or something outside is not as it must be.
    """
    if len(set(acceptances)) < 2 or not all(0 <= share <= 1 for share in acceptances):
        raise Problem(f"acceptances {list(acceptances)}", expected="at least two different shares")
    served = serving_of(pair)
    if served.pair.spec_type == "none":
        raise Problem(f"pair {pair} drafts nothing", expected="a pair that drafts")
    grid = load_grid(profile, **dict(size or {}))
    grid = replace(grid, depths=grid.depths[:1], regimes=grid.regimes[:1])
    check_context(grid, served.pair.context)
    leg, files = leg_of(served)
    return CrossingPlan(leg, files, grid, resolve_engine(), corpus_of(corpus), tuple(acceptances))


def measure_crossing(plan: CrossingPlan) -> list[CrossingSample]:
    """Measure what is missing of a plan and return all of its samples.

    Raises:
        Problem: a server failed, or another process is writing. What was measured is recorded; run again to go on.
    """
    legs = plan.legs()
    with journal_writing(plan.journal), ExitStack() as stack:
        done = {(sample.prompt, sample.acceptance) for sample in read_lines(plan.journal, CrossingSample)}
        if len(done) < len(legs) * plan.grid.prompts:
            servers = {key: stack.enter_context(Server(plan.found, leg.config)) for key, leg in legs.items()}
            for prompt in tqdm(_prompts(plan, servers[None]), desc=plan.journal.stem, unit="prompt"):
                order = np.random.default_rng(int(prompt.sha256(prompt.depths[0])[:8], 16)).permutation(len(legs))
                for key in [list(legs)[place] for place in order]:
                    if (prompt.id, key) not in done:
                        append_line(plan.journal, _sample(plan, servers[key], prompt, key))
    return list(read_lines(plan.journal, CrossingSample))


def record_crossing(plan: CrossingPlan) -> RecordedCrossing:
    """Measure what is missing of a plan and return it with its provenance.

    Raises:
        Problem: see `measure_crossing`.
    """
    before = read_host_state(None)
    samples = measure_crossing(plan)
    (head, dirty), config = commit(), plan.leg.config
    return RecordedCrossing(
        pair=plan.leg.pair.name,
        depth=plan.grid.depths[0],
        regime=plan.grid.regimes[0],
        n_max=config.n_max,
        n_predict=plan.grid.n_predict,
        threads=config.threads,
        machine=read_machine(),
        engine=plan.found.engine,
        files=file_hashes(plan.files),
        corpus=plan.corpus.title,
        corpus_sha256=plan.corpus.sha256,
        at=now(),
        commit=head,
        dirty=dirty,
        host_before=before,
        host_after=read_host_state(None),
        samples=tuple(replace(sample, step_ms=tuple(round(ms, 3) for ms in sample.step_ms)) for sample in samples),
    )


def save_crossing(found: RecordedCrossing, path: Path) -> None:
    """Write a measured break-even as JSON, a sample a line.

    Raises:
        Problem: the disk is full.
    """
    data = plain(found)
    lines = ",\n".join(json.dumps(sample) for sample in data.pop("samples"))
    head = json.dumps(data, indent=1)[:-2]
    with whole_file(path) as unfinished:
        unfinished.write_text(f'{head},\n "samples": [\n{lines}\n]\n}}\n', encoding="utf-8")


def load_crossing(name: str) -> RecordedCrossing:
    """Return a break-even that `save_crossing` wrote, by the name of its file in `data/crossings` or by path.

    Raises:
        Problem: there is no such file, or it is no such record.
    """
    path = Path(name) if name.endswith(".json") else data_dir() / "crossings" / f"{name}.json"
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise Problem(
            f"{path.name} is no recorded crossing: {error}", expected="what `specbook crossing PAIR --write` wrote"
        ) from None
    return parse(RecordedCrossing, data, where=path.name)


def crossing_of(samples: Sequence[CrossingSample]) -> Interval:
    """Return the accepted tokens a step at which decoding with drafts is as fast as without, over prompts."""
    raw, drafted = _legs(samples)
    d, a, ms, prompt = _steps(drafted)
    return crossing(
        RawLeg([_emitted(s) for s in raw], [sum(s.step_ms) for s in raw], [s.prompt for s in raw]),
        Steps(d, a, ms, prompt),
    )


def crossing_frame(samples: Sequence[CrossingSample]) -> pd.DataFrame:
    """Return the decode rate (tokens/s) of each leg, raw first, with its accepted tokens a step.

    Columns: `acceptance` (not a number for raw), `accepted`, `accepted_low`, `accepted_high`, and those of estimates.
    Evaluations without a draft are left out of the drafted legs.
    """
    raw, drafted = _legs(samples)
    rows = [{"acceptance": np.nan, "accepted": 0.0} | interval_columns(_rate(raw), "")]
    for acceptance in sorted({s.acceptance for s in drafted if s.acceptance is not None}):
        mine = [s for s in drafted if s.acceptance == acceptance]
        d, a, ms, prompt = _steps(mine)
        verified = d > 0
        sums = cluster_sums(prompt[verified], a[verified], np.ones(int(verified.sum())))
        longest = float(d.max(initial=1))
        mean = interval_of(sums, lambda total: np.asarray(total[..., 0] / total[..., 1]), scale=Scale(0.0, longest))
        rate = decode_rate(a[verified] + 2, ms[verified], prompt[verified])
        low, high = mean.limits or (np.nan, np.nan)
        rows.append(
            {"acceptance": acceptance, "accepted": mean.estimate, "accepted_low": low, "accepted_high": high}
            | interval_columns(rate, "")
        )
    return pd.DataFrame(rows)


def _sample(plan: CrossingPlan, server: Server, prompt: Prompt, acceptance: float | None) -> CrossingSample:
    depth = plan.grid.depths[0]
    seed = int(hashlib.sha256(f"{prompt.id} {acceptance}".encode()).hexdigest()[:7], 16)
    server.client.complete(prompt.warmup(depth), n_predict=2, seed=0)  # the warm-up
    found = server.client.complete(prompt.tokens(depth), n_predict=plan.grid.n_predict, seed=seed, ignore_eos=True)
    return CrossingSample(
        prompt=prompt.id,
        acceptance=acceptance,
        drafted=found.drafted,
        accepted=found.accepted,
        step_ms=found.step_ms,
    )


def _prompts(plan: CrossingPlan, server: Server) -> list[Prompt]:
    grid = plan.grid
    return build_prompts(
        plan.corpus,
        server.client.tokenize,
        regime=grid.regimes[0],
        depths=grid.depths,
        count=grid.prompts,
        local_tokens=grid.local_tokens,
        seed=grid.seed,
        bos=server.client.beginning(),
    )


def _legs(samples: Sequence[CrossingSample]) -> tuple[list[CrossingSample], list[CrossingSample]]:
    return [s for s in samples if s.acceptance is None], [s for s in samples if s.acceptance is not None]


def _emitted(sample: CrossingSample) -> int:
    return 1 + sum(sample.accepted) + len(sample.accepted)


def _rate(samples: Sequence[CrossingSample]) -> Interval:
    return decode_rate([_emitted(s) for s in samples], [sum(s.step_ms) for s in samples], [s.prompt for s in samples])


def _steps(samples: Sequence[CrossingSample]) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    counts = [len(s.drafted) for s in samples]
    return (
        np.array([d for s in samples for d in s.drafted], dtype=np.int64),
        np.array([a for s in samples for a in s.accepted], dtype=np.int64),
        np.array([ms for s in samples for ms in s.step_ms], dtype=np.float64),
        np.repeat([s.prompt for s in samples], counts) if samples else np.array([], dtype=str),
    )
