"""Should I pass `-md`? Both legs measured within a time, and one of three answers for each kind of text and depth."""

import hashlib
import math
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from analysis.convert.fit import check_fit
from analysis.convert.gguf import read_gguf
from analysis.launch import read_machine, resolve_engine
from analysis.launch.config import user_argv
from analysis.measure.access import corpus_of
from analysis.measure.candidates import Shares, Tried, begun_setting, try_settings, with_setting
from analysis.measure.continued import check_continued
from analysis.measure.estimate import by_cell, rate_of, steps_of
from analysis.measure.grid import Setting
from analysis.measure.legs import legs_of
from analysis.measure.plan import DRAFTED, RAW, LegPlan, check_context, load_grid, raw_leg
from analysis.measure.serving import Serving, serving_of
from analysis.measure.study import Plan, Study, finished, measure_plan
from analysis.measure.timebar import TimeBar
from analysis.records import Cell, Known, Pair, Problem, Sample, Source, SpecType
from analysis.records.places import local_dir
from analysis.records.store import RunDir
from analysis.stats import BreakEven, Interval, RawLeg, Rule, Steps, Verdict, break_even, speed_ratio, verdict
from analysis.stats.intervals import no_interval

PROFILE = "decide"
TRYING = 0.4
"""Share of the time that goes into trying settings."""

Chosen = Literal["tried", "given", "begun", "served"]
"""Why a drafter's n_max and p_min are what they are: the best of some that were tried; what was given; those of the run
that is there; those of a server that somebody else runs."""

Because = Literal["acceptance", "step cost", "nothing drafted", "refused"]


@dataclass(frozen=True)
class Answer:
    """What holds for one kind of text at one depth.

    `ratio` is drafted over raw decode rate with the interval that the verdict rests on. `lasting` is its interval
    that stays valid however often one looks; the verdict rests on it where samples were added to an earlier run.
    """

    regime: str
    depth: int
    verdict: Verdict
    ratio: Interval
    lasting: Interval
    because: Because
    why: str


@dataclass(frozen=True)
class Outcome:
    """The answers, the run that holds what they rest on, the settings that were tried, and what to type.

    `command` starts the server as the answers advise; it is empty for servers that somebody else runs. `pair` is the
    pair as it was measured, and `chosen` why with its n_max and p_min. Of such servers, `method` is who says how the
    drafter drafts.
    """

    study: Study
    pair: Pair
    answers: tuple[Answer, ...]
    tried: tuple[Tried, ...]
    command: tuple[str, ...]
    extended: bool
    chosen: Chosen
    method: Known = ""

    @property
    def longest_seen(self) -> int:
        """Return the longest draft of any sample, in tokens."""
        return max((max(sample.drafted, default=0) for sample in self.study.samples), default=0)

    @property
    def pays(self) -> bool:
        """Return whether drafting pays anywhere and loses nowhere."""
        verdicts = {answer.verdict for answer in self.answers}
        return "pays" in verdicts and "loses" not in verdicts

    @property
    def loses(self) -> bool:
        """Return whether drafting loses somewhere and pays nowhere."""
        verdicts = {answer.verdict for answer in self.answers}
        return "loses" in verdicts and "pays" not in verdicts


def pair_of_files(target: Path, drafter: Path, *, spec_type: SpecType | None = None, context: int = 4096) -> Pair:
    """Return a pair of two files of this machine, after checking from their headers that they fit each other.

    Raises:
        Problem: a file is no GGUF, or the two do not fit.
    """
    files = read_gguf(target), read_gguf(drafter)
    fit = check_fit(*files, spec_type=spec_type)
    fit.require()
    name = re.sub(r"[^a-z0-9]+", "-", drafter.stem.lower()).strip("-")[:40] or "drafter"
    key = hashlib.sha256(f"{files[0].tokens_sha256} {target.name} {drafter.name}".encode()).hexdigest()[:4]
    block = files[1].number("{arch}.block_size")
    return Pair(
        name=f"{name}-{key}",
        title=f"{target.name} with {drafter.name}",
        target=Source(kind="path", file=str(target.resolve())),
        drafter=Source(kind="path", file=str(drafter.resolve())),
        spec_type=fit.spec_type,
        n_max=max(1, block - 1) if block else 3,
        context=context,
    )


def decide(
    pair: str | Pair,
    *,
    seconds: float = 300.0,
    corpus: str = "",
    size: dict[str, object] | None = None,
    again: bool = False,
    n_max: int | None = None,
    p_min: float | None = None,
) -> Outcome:
    """Measure a pair with and without its drafter on this machine, and answer.

    A run of the pair that is there is gone on with, as it was set. Without one, a few settings are tried first.

    Args:
        pair: a pair's name, or the pair.
        seconds: how long measuring may take; starting servers is part of it, a sample that began is finished.
        corpus: a directory with the text to prompt with.
        size: fields of `Grid` to change.
        again: begin a new run; the one that is there is set aside. Settings that were tried are not tried again.
        n_max: the longest draft in tokens, in place of trying; with `p_min` alone, the pair's own.
        p_min: the probability below which a draft ends, in place of trying; with `n_max` alone, the pair's own.

    Raises:
        Problem: the pair drafts nothing, a file or the engine is not as it must be, or a server failed.
    """
    end = time.monotonic() + seconds
    served = serving_of(pair) if isinstance(pair, str) else Serving(pair, {})
    if served.pair.spec_type == "none":
        raise Problem(
            f"pair {served.pair.name} drafts nothing", expected="a pair with a drafter or a draft-free method"
        )
    grid = load_grid(PROFILE, **(size or {}))
    check_context(grid, served.pair.context)
    found = resolve_engine()
    (_, drafted), files = legs_of(served)
    setting = Setting(machine=read_machine(), engine=found.engine, found=found, corpus=corpus_of(corpus))

    def plan_with(leg: LegPlan) -> Plan:
        return Plan(leg.pair, PROFILE, (raw_leg(leg), leg), grid, setting)

    tried: list[Tried] = []
    chosen: Chosen
    if n_max is not None or p_min is not None:
        values, chosen = _given(served.pair, n_max, p_min), "given"
    elif not again and (begun := begun_setting(plan_with, drafted)):
        values, chosen = begun, "begun"
    else:
        tried = try_settings(drafted, grid, setting, files, TRYING * seconds)
        values, chosen = (tried[0].n_max, tried[0].p_min), "tried"
    best = with_setting(drafted, *values)
    study = measure_within(plan_with(best), files, end - time.monotonic(), again=again)
    outcome = outcome_of(study, best.pair, grid.prompts, chosen, tried)
    config = raw_leg(best).config if outcome.loses else best.config
    return replace(outcome, command=tuple(user_argv(config)))


def _given(pair: Pair, n_max: int | None, p_min: float | None) -> tuple[int, float]:
    return pair.n_max if n_max is None else n_max, pair.p_min if p_min is None else p_min


def outcome_of(
    study: Study, pair: Pair, prompts: int, chosen: Chosen, tried: Sequence[Tried] = (), method: Known = ""
) -> Outcome:
    """Return a study's answers; they allow for having been looked at where an earlier call ended with fewer samples."""
    extended = study.calls > 1
    answers = answers_of(study, extended=extended, prompts=prompts)
    return Outcome(study, pair, answers, tuple(tried), (), extended, chosen, method)


def answers_of(study: Study, *, extended: bool, prompts: int) -> tuple[Answer, ...]:
    """Return the answer for every drafted cell of a study.

    Args:
        study: a run with both legs.
        extended: an earlier call ended with other samples, so that somebody has looked before.
        prompts: the number of prompts that the lasting interval is planned for.
    """
    raw = {(cell.regime, cell.depth): samples for cell, samples, _ in by_cell(study, RAW)}
    return tuple(
        _answer(
            cell, raw.get((cell.regime, cell.depth), []), samples, _by_which(study, cell, refused), extended, prompts
        )
        for cell, samples, refused in by_cell(study, DRAFTED)
    )


def _by_which(study: Study, cell: Cell, refused: str) -> str:
    """Return why a cell is refused, with the gates that refuse its samples; nothing for one that is not."""
    counted = ", ".join(f"{gate} {count}" for gate, count in study.refused_by(cell).most_common()) if refused else ""
    return f"{refused} ({counted})" if counted else refused


def _answer(
    cell: Cell, raw: Sequence[Sample], drafted: Sequence[Sample], refused: str, extended: bool, prompts: int
) -> Answer:
    before = {sample.prompt_id: rate_of(sample) for sample in raw if sum(sample.step_ms) > 0}
    rates = [(before[s.prompt_id], rate_of(s)) for s in drafted if s.prompt_id in before and sum(s.step_ms) > 0]
    refused = refused or ("" if rates else "no prompt was measured on both legs")
    if refused:
        nothing = no_interval(math.nan, n=0, note=refused)
        return Answer(cell.regime, cell.depth, "undecided", nothing, nothing, "refused", refused)
    fixed = speed_ratio([a for a, _ in rates], [b for _, b in rates])
    rule = Rule(width=0.0, budget=max(prompts, 1), kind="normal")
    lasting = rule.decide([math.log(after / first) for first, after in rates]).valid.map(math.exp)
    ratio = lasting if extended else fixed
    because, why = _reason(cell, raw, drafted)
    said: Verdict = verdict(ratio)
    return Answer(cell.regime, cell.depth, said, ratio, lasting, because, why)


def _reason(cell: Cell, raw: Sequence[Sample], drafted: Sequence[Sample]) -> tuple[Because, str]:
    """Return whether acceptance or the cost of a step decides: would it pay if every draft were accepted whole?"""
    d, a, ms, prompt = steps_of(drafted)
    if not d.any():
        return "nothing drafted", "no step had a draft to verify"
    longest = max(cell.n_max, int(d.max()))
    legs = (
        RawLeg([s.emitted for s in raw], [sum(s.step_ms) for s in raw], [s.prompt_id for s in raw]),
        Steps(d, a, ms, prompt),
    )
    found = break_even(*legs, n_max=longest)
    needed, length = found.length_needed.estimate, found.mean_length.estimate
    if needed > 1 + longest:
        return "step cost", (
            f"a step costs as much as {needed:.2f} raw tokens and can yield {1 + longest} at most, "
            f"with drafts of {longest}"
        )
    return "acceptance", f"a step yields {length:.2f} tokens and costs as much as {needed:.2f} raw ones{_share(found)}"


def _share(found: BreakEven) -> str:
    if math.isnan(found.acceptance.estimate):
        return ""
    have, needed = found.acceptance.estimate, found.acceptance_needed.estimate
    return f"; {have:.2f} of the drafted are accepted, {needed:.2f} break even"


def measure_within(plan: Plan, files: Sequence[Path], seconds: float, *, again: bool) -> Study:
    """Measure what a plan still lacks, as far as the time goes, and return the study; arguments as for `decide`."""
    seconds = max(0.0, seconds)
    folder = local_dir() / "runs" / plan.run_id
    journal = folder / "samples.jsonl"
    if not again and journal.is_file() and journal.stat().st_size > 0 and not finished(plan):
        check_continued(RunDir.open(folder), plan.legs)
    allowed = Shares(plan.grid.depths, seconds)
    with TimeBar("measuring with and without the drafter", seconds) as bar:
        timed = replace(plan, setting=replace(plan.setting, allowed=allowed, progress=bar))
        return measure_plan(timed, files, remeasure=again)
