"""From the running totals that a stream carries with its tokens to one record for each target evaluation.

All tokens of one evaluation carry the same `predicted_ms`, `draft_n` and `draft_n_accepted`, so the differences
between two groups of tokens are what one evaluation drafted, had accepted, and took.

- The first token is sampled from the last logits of the fill. It belongs to no step; its `predicted_ms` is the
  microseconds between the end of the fill and that sampling.
- An evaluation that had no draft to verify leaves `draft_n` unchanged: `drafted` is 0, and it emits one token.
- A draft is counted when it is made, and made only to be verified, so both totals move together.
- Text may end in the middle of what an evaluation accepted (an end-of-text token inside a draft). The server
  counts all that was accepted. The last step's `accepted` is trimmed to what was emitted; `drafted` is not.
- A context that cannot roll back (recurrent, sliding-window) restores a checkpoint when a draft is accepted in
  part, and evaluates the accepted tokens again: two evaluations with one difference, and one more token than an
  evaluation emits. The first gets the whole duration, for the second is its consequence; the second is recorded
  as an evaluation without a draft that took 0 ms, and counted in `replayed`.
- The stream sends no token while the text ends in an unfinished character; `predicted_n` tells that tokens are
  missing. They may be the tail of one evaluation, the head of the next, or evaluations of their own that share
  one difference. The totals leave few possibilities, often one. Where they leave more, the fewest evaluations
  are assumed that need no longer draft than the longest seen elsewhere, and those that could not
  be told apart are counted in `blurred`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import NamedTuple

from analysis.records import Problem

Columns = tuple[list[int], list[int], list[float]]


class Mark(NamedTuple):
    """The server's running totals when it sent a token; `predicted_n` counts that token."""

    predicted_n: int
    predicted_ms: float
    draft_n: int
    draft_n_accepted: int


@dataclass(frozen=True)
class Steps:
    """The target evaluations of one request after the fill, as columns of equal length, in order.

    `drafted` and `accepted` are tokens, `ms` milliseconds. `trimmed` counts accepted tokens past the end of the
    text, `replayed` the evaluations that repeat accepted tokens, `blurred` the evaluations that could not be told
    apart for certain (see the module).
    """

    drafted: tuple[int, ...]
    accepted: tuple[int, ...]
    ms: tuple[float, ...]
    trimmed: int = 0
    replayed: int = 0
    blurred: int = 0

    @property
    def emitted(self) -> int:
        """Return the tokens that these steps and the fill before them emitted."""
        return 1 + sum(self.accepted) + len(self.accepted)


class _Group(NamedTuple):
    """The tokens that came with one set of totals, how far those moved, and whether nothing was withheld around."""

    first: int
    last: int
    next_first: int
    drafted: int
    accepted: int
    ms: float
    whole: bool

    @property
    def may_replay(self) -> bool:
        """Return whether a draft was accepted in part, so that a checkpoint may have been restored."""
        return self.accepted < self.drafted


def derive_steps(marks: Sequence[Mark], longest_draft: int = 0) -> Steps:
    """Derive the target evaluations of a request from the totals that came with its tokens.

    Args:
        marks: one for each token that was sent, in order.
        longest_draft: what the server drafts at most, 0 if unknown; it matters only where tokens were withheld.

    Raises:
        Problem: the totals contradict each other, so that no honest step record exists.
    """
    columns: Columns = ([], [], [])
    trimmed = replayed = blurred = 0
    end = 1  # the last token of the evaluations so far; the fill emitted token 1
    groups = _groups(marks)
    longest = max((group.drafted for group in groups if group.whole), default=0) or longest_draft
    for group, latest in zip(groups, _latest_ends(groups), strict=True):
        earliest = max(group.last, end + group.accepted + 1)
        cut = max(0, earliest - group.last) if group is groups[-1] else 0
        chosen = _choose_end(group, end, earliest, latest, longest)
        count = chosen - end - group.accepted
        if earliest > max(latest, group.last + cut) or (group.whole and count > 1 + group.may_replay):
            raise _contradiction(f"{group.accepted} tokens accepted cannot have emitted these", group)
        if group.whole and count == 2:
            _add(columns, [group.drafted, 0], [group.accepted, 0], [group.ms, 0.0])
            replayed += 1
        else:
            _share(group, count, cut, longest, columns)
            blurred += count if count > 1 or latest > earliest else 0
        trimmed += cut
        end = chosen - cut
    drafted, accepted, ms = columns
    found = Steps(tuple(drafted), tuple(accepted), tuple(ms), trimmed, replayed, blurred)
    _check_identity(found, marks)
    return found


def _groups(marks: Sequence[Mark]) -> list[_Group]:
    together = [list(group) for _, group in groupby(marks, key=lambda mark: mark[1:])]
    before = Mark(1, 0.0, 0, 0)
    if together and together[0][0].predicted_n == 1:  # else the first token itself was withheld
        first = together.pop(0)
        if len(first) > 1 or first[0].draft_n or first[0].draft_n_accepted:
            raise _contradiction("the totals of the first token already hold an evaluation")
        before = first[0]
    found = []
    for position, group in enumerate(together):
        after = group[-1]
        following = together[position + 1][0].predicted_n if position + 1 < len(together) else after.predicted_n + 1
        moved = _Group(
            first=group[0].predicted_n,
            last=after.predicted_n,
            next_first=following,
            drafted=after.draft_n - before.draft_n,
            accepted=after.draft_n_accepted - before.draft_n_accepted,
            ms=after.predicted_ms - before.predicted_ms,
            whole=following - before.predicted_n - 1 == len(group),
        )
        if moved.first <= before.predicted_n or min(moved.drafted, moved.accepted, moved.ms) < 0:
            raise _contradiction("a running total fell", moved)
        if moved.accepted > moved.drafted:
            raise _contradiction(f"{moved.accepted} tokens were accepted of {moved.drafted} drafted", moved)
        found.append(moved)
        before = after
    return found


def _latest_ends(groups: Sequence[_Group]) -> list[int]:
    """Return, for each group, the latest token that may be the last of its evaluations.

    Its last evaluation began no later than with the group's first token, ended before the next group's first,
    and left the next group's evaluations room.
    """
    found: list[int] = []
    following: _Group | None = None
    for group in reversed(groups):
        latest = min(group.next_first - 1, group.first + group.accepted + group.may_replay)
        if following is not None and len(found) > 1:
            latest = min(latest, found[-1] - following.accepted - 1)
        found.append(latest)
        following = group
    return found[::-1]


def _choose_end(group: _Group, end: int, earliest: int, latest: int, longest: int) -> int:
    """Return the last token of a group's evaluations: the fewest that need no draft over the longest."""
    if latest <= earliest or not longest:
        return earliest
    least = -(-group.drafted // longest)
    return min(latest, max(earliest, end + group.accepted + least))


def _share(group: _Group, count: int, cut: int, longest: int, columns: Columns) -> None:
    """Append a group's evaluations; all but the last of several emitted a single, withheld token each."""
    left = group.drafted
    shares: list[int] = []
    for still in range(count - 1, 0, -1):  # from the last evaluation backwards
        share = min(left, max(longest, group.accepted if not shares else 0, -(-left // (still + 1))))
        shares.append(share)
        left -= share
    accepted = [0] * (count - 1) + [group.accepted - cut]
    _add(columns, [left, *reversed(shares)], accepted, [group.ms / count] * count)


def _add(columns: Columns, drafted: list[int], accepted: list[int], ms: list[float]) -> None:
    columns[0].extend(drafted)
    columns[1].extend(accepted)
    columns[2].extend(ms)


def _check_identity(found: Steps, marks: Sequence[Mark]) -> None:
    if not marks:
        return
    last = marks[-1]
    if found.emitted != last.predicted_n:
        raise _contradiction(f"the steps emitted {found.emitted} tokens and the server says {last.predicted_n}")
    if sum(found.drafted) != last.draft_n or sum(found.accepted) + found.trimmed != last.draft_n_accepted:
        raise _contradiction("the steps do not add up to the server's drafted and accepted tokens")


def _contradiction(saw: str, group: _Group | None = None) -> Problem:
    where = f" (tokens {group.first} to {group.last})" if group else ""
    return Problem(
        f"the counters in the stream contradict each other: {saw}{where}",
        expected="emitted = 1 + sum(accepted + 1) over the target evaluations",
        remedy="this build of llama-server cannot be measured; `specbook doctor` says more",
    )
