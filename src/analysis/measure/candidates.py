"""Which n_max and p_min to serve a drafter with: a few are tried on texts that the verdict does not use."""

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

from analysis.gates import refused
from analysis.measure.estimate import rate_of
from analysis.measure.grid import Setting, Task
from analysis.measure.plan import DRAFTED, Grid, LegPlan
from analysis.measure.study import Plan, Study, measure_plan
from analysis.measure.timebar import TimeBar
from analysis.records import Pair
from analysis.records.places import local_dir

TRIES = "decide-try"
P_MINS = (0.3, 0.6, 0.8)
TRIED_PROMPTS = 3
_LOOKUP = "--spec-ngram-simple-size-n"
_LOOKUP_DEFAULT = 12


@dataclass(frozen=True)
class Tried:
    """A setting that was tried, and its decode rate: the geometric mean over samples, in tokens/s.

    The rate ranks settings on the same few prompts. It is no estimate of anything else and carries no interval.
    """

    n_max: int
    p_min: float
    rate: float
    samples: int


class Shares:
    """Says whether there is time for a sample: each depth gets an equal part of what is left when it begins.

    Legs of one prompt are measured all or none. The first prompt of every cell is always measured, so that a run
    says something of each.
    """

    def __init__(self, depths: Sequence[int], seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._end = clock() + seconds
        self._waiting = list(depths)
        self._clock = clock
        self._depth: int | None = None
        self._until = 0.0
        self._open = True

    def __call__(self, task: Task) -> bool:
        """Return whether a sample may be measured now."""
        if task.cell.depth != self._depth:
            self._depth, now = task.cell.depth, self._clock()
            self._until = now + (self._end - now) / max(1, len(self._waiting))
            self._waiting = [depth for depth in self._waiting if depth != self._depth]
        if task.order == 0:
            self._open = task.prompt_number == 0 or self._clock() < self._until
        return self._open


def lengths_to_try(pair: Pair) -> list[int]:
    """Return the values of n_max to try: the pair's own, then halves of it and one above, as far as the method goes."""
    least = _least(pair)
    if least is None:
        return [pair.n_max]
    around = [pair.n_max // 2, pair.n_max - 1, 2, 1, pair.n_max + 1, 2 * pair.n_max]
    most = pair.n_max if pair.spec_type in ("draft-dspark", "draft-dflash") else 4 * pair.n_max
    return list(dict.fromkeys([pair.n_max, *(n for n in around if least <= n <= most)]))


def _least(pair: Pair) -> int | None:
    """Return the shortest n_max that a method takes; None where it has no such setting."""
    if pair.spec_type in ("none", "ngram-cache"):
        return None
    if pair.spec_type == "ngram-simple":  # it never drafts fewer tokens than the n-gram that it looks up
        given = [value for flag, value in pairwise(pair.extra_args) if flag == _LOOKUP]
        return int(given[-1]) if given and given[-1].isdigit() else _LOOKUP_DEFAULT
    return 1


def begun_setting(plan_with: Callable[[LegPlan], Plan], leg: LegPlan) -> tuple[int, float] | None:
    """Return n_max and p_min of the run with samples that was measured last, of those that a choice could have begun.

    Without that, a call with little time would try settings that an earlier one had no time for, choose another, and
    begin anew.

    Args:
        plan_with: what would be measured of a drafted leg.
        leg: the drafted leg with the pair's own setting.
    """
    begun = []
    for n_max in lengths_to_try(leg.pair):
        for p_min in dict.fromkeys((leg.pair.p_min, *P_MINS)):
            file = local_dir() / "runs" / plan_with(with_setting(leg, n_max, p_min)).run_id / "samples.jsonl"
            if file.is_file() and (seen := file.stat()).st_size:
                begun.append((seen.st_mtime, n_max, p_min))
    return max(begun)[1:] if begun else None


def try_settings(leg: LegPlan, grid: Grid, setting: Setting, files: Sequence[Path], seconds: float) -> list[Tried]:
    """Measure a few settings of a drafted leg, best first.

    The first is the pair's own. How many follow depends on how long that takes: first other lengths, then, for the
    best length, thresholds. All are measured at the shallowest depth and on the prompts of another seed than the
    verdict's, so that choosing the best does not flatter it.

    Args:
        leg: the drafted leg with the pair's own setting.
        grid: what the verdict will measure.
        setting: machine, engine and text.
        files: the model files.
        seconds: how long all of it may take.

    Raises:
        Problem: a server died, hung or contradicted itself.
    """
    small = replace(grid, depths=grid.depths[:1], prompts=TRIED_PROMPTS, seed=grid.seed + 1)
    end = time.monotonic() + seconds
    found: list[Tried] = []
    slowest = 0.0
    with TimeBar("trying settings", seconds) as bar:
        for n_max, p_min in _in_turn(leg.pair, found):
            began = time.monotonic()
            if found and began + slowest > end:
                break
            limited = replace(setting, allowed=Shares(small.depths, max(end - began, 0.0)), progress=bar)
            found.append(_try(leg, small, limited, files, (n_max, p_min)))
            slowest = max(slowest, time.monotonic() - began)
    return sorted(found, key=lambda tried: -tried.rate)


def _in_turn(pair: Pair, found: list[Tried]) -> Iterator[tuple[int, float]]:
    """Yield settings in the order of trying; what was found so far decides the length that thresholds are tried at."""
    for n_max in lengths_to_try(pair):
        yield n_max, pair.p_min
    if pair.spec_type.startswith("draft-"):
        best = max(found, key=lambda tried: tried.rate).n_max
        for p_min in P_MINS:
            yield best, p_min


def with_setting(leg: LegPlan, n_max: int, p_min: float) -> LegPlan:
    """Return a drafted leg with another length and threshold; its pair is named for them."""
    if (n_max, p_min) == (leg.pair.n_max, leg.pair.p_min):
        return leg
    name = f"{leg.pair.name}-n{n_max}" + (f"-p{p_min:g}" if p_min else "")
    pair = replace(leg.pair, name=name[:80], n_max=n_max, n_min=min(leg.pair.n_min, n_max), p_min=p_min)
    config = replace(leg.config, n_max=n_max, n_min=pair.n_min, p_min=p_min)
    return replace(leg, pair=pair, config=config)


def _try(leg: LegPlan, grid: Grid, setting: Setting, files: Sequence[Path], values: tuple[int, float]) -> Tried:
    tried = with_setting(leg, *values)
    study = measure_plan(Plan(tried.pair, TRIES, (tried,), grid, setting), files)
    rates = _rates(study)
    mean = math.exp(sum(map(math.log, rates)) / len(rates)) if rates else 0.0
    return Tried(n_max=values[0], p_min=values[1], rate=mean, samples=len(rates))


def _rates(study: Study) -> list[float]:
    """Return decode rates of the drafted samples whose text is of its kind; of all, where none is."""
    bad = {place for kind, place in refused(study.findings) if kind == "sample"}
    drafted = [sample for sample in study.samples if sample.leg == DRAFTED and sample.emitted > 1]
    kept = [sample for sample in drafted if str(sample.index) not in bad]
    return [rate_of(sample) for sample in kept or drafted if sum(sample.step_ms) > 0]
