"""What a page or a card says of a run of servers that somebody else runs, and of one measured in several calls.

No server tells its threads, its cache types or its drafter's file, so none of that may be printed as if it were known.
"""

from collections.abc import Iterator
from dataclasses import fields

from analysis.measure.attached import NOT_TOLD
from analysis.measure.study import Study
from analysis.publish.commands import DECIDED
from analysis.records import Cell, Run

UNTOLD = "not told by the server"
METHODS = {"told": "told by the server", "given": "as given by the user", "assumed": "assumed"}
NOBODY_SAYS = "as given by the user, or assumed"


def is_served(run: Run) -> bool:
    """Return whether somebody else ran the servers of a run."""
    return run.engine.source == "url"


def shown_setting(run: Run, field: str) -> str:
    """Return the values of a field of a run's cells, or that the server does not tell it."""
    if is_served(run) and field in NOT_TOLD:
        return UNTOLD
    return ", ".join(dict.fromkeys(str(getattr(cell, field)) for cell in run.cells))


def speculation(study: Study) -> str:
    """Return how the drafted cells of a study were set, and how much of that is known."""
    drafted = [cell for cell in study.run.cells if cell.spec_type != "none"]
    if is_served(study.run) and study.run.profile == DECIDED:
        return "; ".join(sorted({_as_far_as_known(study, cell) for cell in drafted})) or "none"
    said = {f"{c.spec_type}, n_max {c.n_max}, n_min {c.n_min}, p_min {c.p_min:g}" for c in drafted}
    return ("; ".join(sorted(said)) or "none") + (", as the pair says" if said and is_served(study.run) else "")


def settings(study: Study, *, leave_out: frozenset[str]) -> Iterator[tuple[str, str]]:
    """Yield name and values of every setting of a study's cells, but for those that are left out."""
    for field in fields(Cell):
        if field.name not in leave_out:
            yield field.name.replace("_", " "), shown_setting(study.run, field.name)


def extended_sentence(study: Study) -> str:
    """Return what plain intervals assume of a run that `specbook decide` added to; empty where it did not."""
    calls = study.calls
    if study.run.profile != DECIDED or calls < 2:
        return ""
    return (
        f"This run was measured in {calls} calls, and plain intervals, as here, assume that nobody went on or stopped "
        "on their account; those that `specbook decide` prints are wider and stay valid however often one looks."
    )


def started_sentence(study: Study) -> str:
    """Return which servers of a run were started again between calls, or may have been; empty where none was."""
    later = [life for life in study.lives if life.continued in ("restarted", "not told")]
    parts = []
    for continued, words in (
        ("restarted", "were started again before a later call"),
        ("not told", "do not tell whether they were started again before a later call"),
    ):
        legs = sorted({life.id.rpartition("-")[0] for life in later if life.continued == continued})
        if legs:
            parts.append(f"servers of the leg{'s' if len(legs) > 1 else ''} {' and '.join(legs)} {words}")
    if not parts:
        return ""
    alike = all(life.said_alike for life in later)
    said = "who measured said that drafter and settings are the same" if alike else "nobody said whether they are alike"
    return f"{'; '.join(parts)}; {said}"


def _as_far_as_known(study: Study, cell: Cell) -> str:
    ways = [METHODS[life.method] for life in study.lives if life.method]
    method = " and ".join(dict.fromkeys(ways)) or NOBODY_SAYS
    seen = max((max(s.drafted, default=0) for s in study.samples if s.leg == "drafted"), default=0)
    return f"{cell.spec_type}, {method}; n_max {cell.n_max}, longest draft seen {seen}; n_min and p_min {UNTOLD}"
