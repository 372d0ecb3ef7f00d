"""Checks on accepted tokens: mean accepted length, tokens added by a further position, one conditional acceptance."""

from collections.abc import Mapping
from fractions import Fraction
from itertools import pairwise

from analysis.evidence.cells import Drafted, drafted
from analysis.evidence.consistency.finding import Finding, shown
from analysis.evidence.interval import Interval
from analysis.evidence.published import Row

_TOLERANCE = Fraction(1, 10**9)


def mean_length_within_bound(rows: Mapping[str, Row]) -> list[Finding]:
    """A mean accepted length cannot exceed 1 + n x acceptance.

    With S steps, D drafted and A accepted tokens the length is 1 + A / S and the acceptance A / D. As D <= n S, the
    length is at most 1 + n x acceptance, with equality where every step drafts n tokens. A shortfall says how many
    tokens a step drafted on average: (length - 1) / acceptance.
    """
    findings = []
    for cell in drafted(rows):
        if cell.length_from != "printed" or cell.acceptance is None or cell.n is None or cell.length is None:
            continue
        acceptance = cell.acceptance.printed.interval
        bound = 1 + cell.n * acceptance
        drafts = (cell.length - 1) / acceptance
        holds = cell.length.low <= bound.high
        findings.append(
            Finding(
                "mean_length_within_bound",
                cell.row.card,
                "holds" if holds else "fails",
                "mean accepted length",
                drafts,
                "tokens drafted a step",
                (cell.row.id, cell.acceptance.id),
                f"the bound is {shown(bound)}; a step drafted {shown(drafts)} of {cell.n} tokens on average",
            )
        )
    return findings + [_no_length(card) for card in sorted({"A", "B"} - {finding.card for finding in findings})]


def _no_length(card: str) -> Finding:
    return Finding(
        "mean_length_within_bound",
        card,
        "underdetermined",
        "mean accepted length",
        None,
        "",
        (),
        "the card prints no mean accepted length",
        "mean accepted length, or the number of steps, beside each acceptance",
    )


def accepted_per_position(rows: Mapping[str, Row]) -> list[Finding]:
    """A further draft position cannot add more accepted tokens than the position before it.

    If every step drafts n tokens, n x acceptance is the sum of the survivals s_1 + ... + s_n. A drafter whose drafts
    are prefixes of one another has the same s_k for every n_max on the same text, so the difference between two
    n_max is the survival of the positions in between; and s_k never exceeds s_(k-1), because a token is accepted only
    after all before it.
    """
    findings = [_nested(table) for table in _tables_by_n(rows)]
    return findings + [
        Finding(
            "accepted_per_position",
            card,
            "underdetermined",
            "accepted tokens added by each position",
            None,
            "",
            (),
            "the card prints acceptance for one n_max a cell",
            "accepted and tested drafts at each position",
        )
        for card in sorted({"A", "B"} - {finding.card for finding in findings})
    ]


def _nested(table: list[Drafted]) -> Finding:
    added = _added(table)
    worst = max((after - before for (before, _), (after, _) in pairwise(added)), key=lambda gap: gap.centre)
    fails = worst.low > 0
    ask = "accepted and tested drafts at each position, on the same prompts for every n_max, with p_min and repeats"
    return Finding(
        "accepted_per_position",
        table[0].row.card,
        "fails" if fails else "holds",
        f"largest rise from one position to the next, {table[0].row.section}",
        worst,
        "tokens a step",
        tuple(cell.acceptance.id for cell in table if cell.acceptance),
        "added a step: " + ", ".join(f"{label}: {shown(tokens)}" for tokens, label in added),
        ask if fails else "",
    )


def constant_conditional(rows: Mapping[str, Row]) -> list[Finding]:
    """One conditional acceptance c for all positions would make n x acceptance = c + c^2 + ... + c^n.

    The c that explains a cell is a fair summary of a drafter with a flat conditional curve. If the cells of a table
    that differ in n_max alone need different c, the curve is not flat, or the cells differ in more than n_max.
    """
    findings = []
    for table in _tables_by_n(rows):
        needed = [(cell, conditional(cell)) for cell in table]
        agree = max(c.low for _, c in needed) <= min(c.high for _, c in needed)
        values = ", ".join(f"n {cell.n}: {shown(c)}" for cell, c in needed)
        spread = max(c.centre for _, c in needed) - min(c.centre for _, c in needed)
        findings.append(
            Finding(
                "constant_conditional",
                table[0].row.card,
                "holds" if agree else "fails",
                f"one conditional acceptance for all n_max, {table[0].row.section}",
                Interval.exactly(spread),
                "",
                tuple(cell.acceptance.id for cell in table if cell.acceptance),
                f"needed: {values}",
                "" if agree else "the conditional acceptance of each position",
            )
        )
    grouped = {name for finding in findings for name in finding.rows}
    single = {
        cell.acceptance.id: cell
        for cell in drafted(rows)
        if cell.acceptance is not None and cell.n is not None and cell.acceptance.id not in grouped
    }
    return findings + [_single_cell(cell) for cell in single.values()]


def _single_cell(cell: Drafted) -> Finding:
    assert cell.acceptance is not None
    return Finding(
        "constant_conditional",
        cell.row.card,
        "underdetermined",
        f"conditional acceptance that would explain {cell.acceptance.id}",
        conditional(cell),
        "",
        (cell.acceptance.id,),
        f"n is the {cell.n_from}",
        "accepted and tested drafts at each position",
    )


def conditional(cell: Drafted) -> Interval:
    """Return the constant conditional acceptance that gives a cell its acceptance, or its printed length.

    Raises:
        ValueError: the cell has no accepted length or no n.
    """
    if cell.length is None or cell.n is None:
        raise ValueError(f"{cell.row.id} has no accepted length")
    return conditional_of(cell.length, cell.n)


def conditional_of(length: Interval, n: int) -> Interval:
    """Return the constant conditional acceptance that gives a mean accepted length with drafts of n tokens."""
    added = length - 1
    return Interval(*(_solve(bound, n) for bound in (added.low, added.centre, added.high)))


def carried_length(length: Interval, n: int, to: int) -> Interval:
    """Return the mean accepted length with drafts of another number of tokens, if one conditional acceptance holds."""
    if n == to:
        return length
    c = conditional_of(length, n)
    return Interval(*(sum((bound**k for k in range(1, to + 1)), Fraction(1)) for bound in (c.low, c.centre, c.high)))


def _solve(added: Fraction, n: int) -> Fraction:
    """Bisect c + c^2 + ... + c^n = added for c in [0, 1]; the sum rises with c."""
    low, high = Fraction(0), Fraction(1)
    while high - low > _TOLERANCE:
        middle = (low + high) / 2
        if sum(middle**k for k in range(1, n + 1)) < added:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def _added(table: list[Drafted]) -> list[tuple[Interval, str]]:
    """Return accepted tokens added by each position between two n_max, with the positions' label."""
    added = []
    before, accepted = 0, Interval.exactly(0)
    for cell in table:
        assert cell.length is not None
        assert cell.n is not None
        positions = cell.n - before
        label = f"position {cell.n}" if positions == 1 else f"positions {before + 1} to {cell.n}, each"
        added.append(((cell.length - 1 - accepted) / positions, label))
        before, accepted = cell.n, cell.length - 1
    return added


def _tables_by_n(rows: Mapping[str, Row]) -> list[list[Drafted]]:
    """Return the tables of a card in which n_max varies, each in the order of n_max."""
    tables: dict[tuple[str, str], list[Drafted]] = {}
    for cell in drafted(rows):
        if cell.n_from == "n_max" and cell.length is not None and cell.length_from != "printed":
            tables.setdefault((cell.row.card, cell.row.section), []).append(cell)
    several = [t for t in tables.values() if len({cell.n for cell in t}) > 2]
    return [sorted(table, key=lambda cell: cell.n or 0) for table in several]
