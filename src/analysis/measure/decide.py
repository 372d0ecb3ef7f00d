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
from analysis.launch import Attached, Client, read_machine, resolve_engine
from analysis.launch.config import user_argv
from analysis.measure.access import ServerAccess, corpus_of
from analysis.measure.attached import attach_to, attached_leg, machine_of
from analysis.measure.candidates import Shares, Tried, try_settings, with_setting
from analysis.measure.continued import check_continued
from analysis.measure.estimate import by_cell, rate_of, steps_of
from analysis.measure.grid import Setting
from analysis.measure.legs import legs_of
from analysis.measure.plan import DRAFTED, RAW, check_context, load_grid, raw_leg
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

_REPEATING = "one two three four five six seven eight nine ten\n" * 8

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
    pair as it was measured. Of such servers, `method` is who says how the drafter drafts.
    """

    study: Study
    pair: Pair
    answers: tuple[Answer, ...]
    tried: tuple[Tried, ...]
    command: tuple[str, ...]
    extended: bool
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
) -> Outcome:
    """Measure a pair with and without its drafter on this machine, and answer.

    Args:
        pair: a pair's name, or the pair.
        seconds: how long measuring may take; starting servers is part of it, a sample that began is finished.
        corpus: a directory with the text to prompt with.
        size: fields of `Grid` to change.
        again: begin a new run; the one that is there is set aside. Settings that were tried are not tried again.

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
    tried = try_settings(drafted, grid, setting, files, TRYING * seconds)
    best = with_setting(drafted, tried[0].n_max, tried[0].p_min)
    plan = Plan(best.pair, PROFILE, (raw_leg(best), best), grid, setting)
    study, extended = _measure(plan, files, end - time.monotonic(), again=again)
    answers = answers_of(study, extended=extended, prompts=grid.prompts)
    outcome = Outcome(study, best.pair, answers, tuple(tried), (), extended)
    config = raw_leg(best).config if outcome.loses else best.config
    return replace(outcome, command=tuple(user_argv(config)))


@dataclass(frozen=True)
class Said:
    """What who measures says of servers that somebody else runs.

    `spec_type` is how the second drafts; None takes what it says after a first request, and draft-simple if it says
    nothing. `n_max` is the longest draft it is set to (tokens), which no server tells; 0 takes the longest that a first
    request shows. With `same_servers`, drafter and settings are those of the run that is there.
    """

    spec_type: SpecType | None = None
    n_max: int = 0
    same_servers: bool = False


def decide_between(
    raw: ServerAccess,
    drafted: ServerAccess,
    said: Said | None = None,
    *,
    seconds: float = 300.0,
    corpus: str = "",
    size: dict[str, object] | None = None,
    again: bool = False,
) -> Outcome:
    """Measure two servers that somebody else runs, one without and one with a drafter, and answer.

    Args:
        raw: the server without a drafter.
        drafted: the server with one.
        said: what you know of them.
        seconds: as for `decide`.
        corpus: as for `decide`.
        size: as for `decide`.
        again: as for `decide`.

    Raises:
        Problem: both addresses are one server's, they are of different builds or hold different models, one drafts
            where it should not or the other way round, or otherwise than was given; they may be others than the run
            was begun with; or a server failed.
    """
    end, said = time.monotonic() + seconds, said or Said()
    if raw.url.rstrip("/") == drafted.url.rstrip("/"):
        raise Problem("one server cannot supply both legs", expected="two addresses: one without a drafter, one with")
    (raw_found, raw_seen), (found, seen) = attach_to(raw), attach_to(drafted)
    _check_alike(raw_seen, seen)
    grid = load_grid(PROFILE, **(size or {}))
    first = attached_leg(_served_pair(seen, "none", 0), raw_seen, grid)
    longest, kinds = first_draft(drafted)
    kind, method = method_of(kinds, said.spec_type)
    pair = _served_pair(seen, kind, length_of(longest, said.n_max))
    second = attached_leg(pair, seen, grid)
    legs = (
        replace(first, found=raw_found, said_alike=said.same_servers),
        replace(second, found=found, said_alike=said.same_servers, method=method),
    )
    setting = Setting(
        machine=machine_of(drafted),
        engine=found.engine,
        found=found,
        corpus=corpus_of(corpus),
    )
    plan = Plan(pair, PROFILE, legs, grid, setting)
    study, extended = _measure(plan, (), end - time.monotonic(), again=again)
    return Outcome(study, pair, answers_of(study, extended=extended, prompts=grid.prompts), (), (), extended, method)


def _check_alike(raw: Attached, drafted: Attached) -> None:
    for what in ("build", "model", "parameters", "vocabulary", "context"):
        mine, theirs = getattr(raw, what), getattr(drafted, what)
        if mine != theirs:
            raise Problem(f"the two servers differ in {what}: {mine} and {theirs}", expected="one factor, the drafter")


def _served_pair(seen: Attached, spec_type: SpecType, n_max: int) -> Pair:
    name = re.sub(r"[^a-z0-9]+", "-", (seen.alias or seen.model).lower()).strip("-")[:40] or "model"
    drafter = Source(kind="path", file="not told") if _needs_drafter(spec_type) else None
    return Pair(
        name=f"{name}-served",
        title=f"{seen.model or seen.alias or 'a model'}, two running servers",
        target=Source(kind="path", file=seen.model or "not told"),
        drafter=drafter,
        spec_type=spec_type,
        n_max=n_max,
    )


def first_draft(access: ServerAccess) -> tuple[int, str]:
    """Return the longest draft (tokens) of a server's answer to a text that repeats itself, and how it says it drafted.

    Raises:
        Problem: it drafted nothing.
    """
    with Client(access.url, access.key()) as client:
        answer = client.complete(_REPEATING, n_predict=48, seed=1, cache_prompt=False)
    longest = max(answer.drafted, default=0)
    if not longest:
        raise Problem(
            "the server that should draft drafted nothing in its first answer",
            expected="drafts",
            remedy="start it with --spec-type and its drafter, or exchange the two addresses",
        )
    return longest, answer.kinds


def method_of(kinds: str, given: SpecType | None) -> tuple[SpecType, Known]:
    """Return how a server drafts, and who says so.

    Args:
        kinds: its own words, such as `none,draft-dspark`; empty where it says nothing.
        given: what who measures says.

    Raises:
        Problem: the two contradict each other; or it drafts in several ways and none was named, or in an unknown one.
    """
    told = [kind for kind in (part.strip() for part in kinds.split(",")) if kind not in ("", "none")]
    if not told:
        return given or "draft-simple", "given" if given else "assumed"
    known: list[SpecType] = [kind for kind in SpecType.__args__ if kind in told]  # type: ignore[attr-defined]  # a Literal has them
    said = " and ".join(told)
    if given and given not in told:
        raise Problem(
            f"the server says that it drafts by {said}",
            expected=f"{given}, as --spec-type says",
            remedy="leave --spec-type out, or ask who runs it",
        )
    if not given and len(known) != 1:
        raise Problem(f"the server says that it drafts by {said}", expected="one method", remedy="name it: --spec-type")
    return given or known[0], "told"


def length_of(seen: int, given: int) -> int:
    """Return the longest draft that a server is set to: what was given, or else what was seen; both in tokens.

    Raises:
        Problem: it drafted more than was given.
    """
    if given and seen > given:
        raise Problem(
            f"the longest draft seen is {seen} tokens",
            expected=f"at most {given}, as --n-max says",
            remedy="leave --n-max out, or give what the server was started with",
        )
    return given or seen


def answers_of(study: Study, *, extended: bool, prompts: int) -> tuple[Answer, ...]:
    """Return the answer for every drafted cell of a study.

    Args:
        study: a run with both legs.
        extended: an earlier call ended with other samples, so that somebody has looked before.
        prompts: the number of prompts that the lasting interval is planned for.
    """
    raw = {(cell.regime, cell.depth): samples for cell, samples, _ in by_cell(study, RAW)}
    return tuple(
        _answer(cell, raw.get((cell.regime, cell.depth), []), samples, refused, extended, prompts)
        for cell, samples, refused in by_cell(study, DRAFTED)
    )


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
        return "step cost", f"a step costs as much as {needed:.2f} raw tokens and can yield {1 + longest} at most"
    return "acceptance", f"a step yields {length:.2f} tokens and costs as much as {needed:.2f} raw ones{_share(found)}"


def _share(found: BreakEven) -> str:
    if math.isnan(found.acceptance.estimate):
        return ""
    have, needed = found.acceptance.estimate, found.acceptance_needed.estimate
    return f"; {have:.2f} of the drafted are accepted, {needed:.2f} break even"


def _measure(plan: Plan, files: Sequence[Path], seconds: float, *, again: bool) -> tuple[Study, bool]:
    seconds = max(0.0, seconds)
    folder = local_dir() / "runs" / plan.run_id
    journal = folder / "samples.jsonl"
    extended = not again and journal.is_file() and journal.stat().st_size > 0
    if extended and not finished(plan):
        check_continued(RunDir.open(folder), plan.legs)
    allowed = Shares(plan.grid.depths, seconds)
    with TimeBar("measuring with and without the drafter", seconds) as bar:
        timed = replace(plan, setting=replace(plan.setting, allowed=allowed, progress=bar))
        return measure_plan(timed, files, remeasure=again), extended


def _needs_drafter(spec_type: SpecType) -> bool:
    return spec_type.startswith("draft-") and spec_type != "draft-mtp"
