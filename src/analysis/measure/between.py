"""Two servers that somebody else runs, one without and one with a drafter: should it be passed?"""

import re
import time
from dataclasses import dataclass, replace

from analysis.launch import Attached, Client
from analysis.measure.access import ServerAccess, corpus_of
from analysis.measure.attached import attach_to, attached_leg, machine_of
from analysis.measure.decide import PROFILE, Outcome, measure_within, outcome_of
from analysis.measure.grid import Setting
from analysis.measure.plan import load_grid
from analysis.measure.study import Plan
from analysis.records import Known, Pair, Problem, Source, SpecType

_REPEATING = "one two three four five six seven eight nine ten\n" * 8


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
    if raw_seen.speculative and seen.speculative is False:
        raise Problem(
            "the server at --raw-url says that it drafts, and the one at --drafted-url that it does not",
            expected="the one without a drafter at --raw-url",
            remedy="exchange the two addresses",
        )
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
    study = measure_within(plan, (), end - time.monotonic(), again=again)
    return outcome_of(study, pair, grid.prompts, "served", method=method)


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


def _needs_drafter(spec_type: SpecType) -> bool:
    return spec_type.startswith("draft-") and spec_type != "draft-mtp"
