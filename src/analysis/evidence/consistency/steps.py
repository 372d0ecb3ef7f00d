"""Checks on time: the step that a decode rate implies, against what the card says of it and what physics asks."""

from collections.abc import Mapping
from fractions import Fraction
from itertools import pairwise

from analysis.evidence.cells import Drafted, drafted, is_raw
from analysis.evidence.consistency.finding import Finding, shown
from analysis.evidence.interval import Interval
from analysis.evidence.published import Row
from analysis.evidence.published import depth_tokens as tokens


def implied_step_matches(rows: Mapping[str, Row]) -> list[Finding]:
    """Decode is mean accepted length over step, so a printed step must be the length over the printed rate.

    A step that the card measured apart can disagree; one that it computed from the two cannot.
    """
    findings = []
    for acceptance, cells in _by_acceptance(rows).items():
        measured = _printed_step(cells[0], rows)
        if measured is not None:
            findings.append(_compare_step(acceptance, cells, measured))
    return findings + [
        Finding(
            "implied_step_matches",
            card,
            "underdetermined",
            "implied steps",
            None,
            "",
            (),
            "the card prints no step duration",
            "mean accepted length and step duration of each cell",
        )
        for card in sorted({"A", "B"} - {finding.card for finding in findings})
    ]


def _compare_step(acceptance: str, cells: list[Drafted], measured: Row) -> Finding:
    steps = [cell.step for cell in cells if cell.step is not None]
    centre = Fraction(sum(s.centre for s in steps), len(steps))
    implied = Interval(min(s.low for s in steps), centre, max(s.high for s in steps))
    meets = implied.overlaps(measured.printed.interval)
    return Finding(
        "implied_step_matches",
        cells[0].row.card,
        "holds" if meets else "fails",
        f"step implied for {acceptance}",
        implied,
        "ms",
        (*(cell.row.id for cell in cells), measured.id),
        f"length over rate gives {shown(implied)} ms, the card prints {measured.printed.text}",
        "" if meets else "step durations measured apart from the decode rate",
    )


def _by_acceptance(rows: Mapping[str, Row]) -> dict[str, list[Drafted]]:
    """Return the drafted cells whose step can be computed by the acceptance that they share."""
    groups: dict[str, list[Drafted]] = {}
    for cell in drafted(rows):
        if cell.acceptance is not None and cell.step is not None:
            groups.setdefault(cell.acceptance.id, []).append(cell)
    return groups


def _printed_step(cell: Drafted, rows: Mapping[str, Row]) -> Row | None:
    """Return the printed step whose acceptance lies closest to the cell's, among those that overlap it."""
    if cell.acceptance is None or cell.row.card != "A" or cell.row.factors.get("depth") != "176000":
        return None
    mine = cell.acceptance.printed.interval
    fitting = []
    for row in rows.values():
        beside = rows.get(f"{row.id}_acceptance")
        if row.quantity == "step" and beside is not None and beside.printed.interval.overlaps(mine):
            fitting.append((abs(beside.printed.interval.centre - mine.centre), row.id, row))
    return min(fitting)[2] if fitting else None


def drafted_step_outlasts_raw(rows: Mapping[str, Row]) -> list[Finding]:
    """A drafted step cannot be shorter than a raw step: it evaluates the same weights for at least as many tokens."""
    findings = []
    for card in ("A", "B"):
        cells = [cell for cell in drafted(rows) if cell.row.card == card and cell.raw_steps is not None]
        ratios = [(cell.raw_steps, cell.row.id) for cell in cells if cell.raw_steps is not None]
        shortest, name = min(ratios, key=lambda pair: pair[0].centre)
        findings.append(
            Finding(
                "drafted_step_outlasts_raw",
                card,
                "holds" if shortest.high >= 1 else "fails",
                f"{len(ratios)} drafted steps in raw steps, the shortest",
                shortest,
                "raw steps",
                (name,),
                f"{name} takes {shown(shortest)} raw steps",
            )
        )
    return findings


def step_rises_with_n(rows: Mapping[str, Row]) -> list[Finding]:
    """A step that drafts and verifies more tokens takes no less time, everything else equal."""
    by_section: dict[tuple[str, str], list[Drafted]] = {}
    for cell in drafted(rows):
        if cell.n_from == "n_max" and cell.step is not None:
            by_section.setdefault((cell.row.card, cell.row.section), []).append(cell)
    findings = []
    for (card, section), cells in by_section.items():
        if len({cell.n for cell in cells}) < 3:
            continue
        steps = [cell.step for cell in sorted(cells, key=lambda cell: cell.n or 0) if cell.step is not None]
        per_token = [shown(after - before) for before, after in pairwise(steps)]
        smallest = min((after - before for before, after in pairwise(steps)), key=lambda rise: rise.centre)
        findings.append(
            Finding(
                "step_rises_with_n",
                card,
                "holds" if smallest.high >= 0 else "fails",
                f"implied step by n_max, {section}",
                smallest,
                "ms",
                tuple(cell.row.id for cell in cells),
                f"rises from one n_max to the next: {', '.join(per_token)} ms",
            )
        )
    return findings


def step_linear_in_length(rows: Mapping[str, Row]) -> list[Finding]:
    """If a step has a fixed part and a part for each accepted token, its duration is a straight line in the length.

    Then the slope between any two neighbouring points is the same, as far as the printed digits tell. n and depth
    must be equal between the points.
    """
    findings = []
    for card in ("A", "B"):
        points = step_points(rows, card)
        if len(points) < 3:
            findings.append(_no_points(card))
            continue
        slopes = [(after[1] - before[1]) / (after[0] - before[0]) for before, after in pairwise(points)]
        one = max(slope.low for slope in slopes) <= min(slope.high for slope in slopes)
        between = Interval(
            min(s.low for s in slopes),
            Fraction(sum(s.centre for s in slopes), len(slopes)),
            max(s.high for s in slopes),
        )
        findings.append(
            Finding(
                "step_linear_in_length",
                card,
                "holds" if one else "fails",
                "ms added by an accepted token, between neighbouring points",
                between,
                "ms a token",
                tuple(name for *_, name in points),
                f"slopes: {', '.join(shown(slope) for slope in slopes)} ms a token",
                "" if one else "durations of single steps with their accepted tokens",
            )
        )
    return findings


def step_points(rows: Mapping[str, Row], card: str) -> list[tuple[Interval, Interval, str]]:
    """Return a card's printed steps as (accepted length, duration in ms, id), in the order of the length."""
    points = []
    for row in rows.values():
        beside = rows.get(f"{row.id}_acceptance")
        if row.card == card and row.quantity == "step" and beside is not None and "n_max" in row.factors:
            length = 1 + int(row.factors["n_max"]) * beside.printed.interval
            points.append((length, row.printed.interval, row.id))
    return sorted(points, key=lambda point: point[0].centre)


def _no_points(card: str) -> Finding:
    return Finding(
        "step_linear_in_length",
        card,
        "underdetermined",
        "ms added by an accepted token",
        None,
        "",
        (),
        "the card prints no step durations",
        "step durations at one n_max for several acceptances",
    )


def raw_slows_with_depth(rows: Mapping[str, Row]) -> list[Finding]:
    """Raw decoding cannot get faster with depth on one build: each token attends to more of the cache."""
    findings = []
    for card, build, cells in _raw_by_build(rows):
        changes = [
            (after.printed.interval - before.printed.interval, before, after) for before, after in pairwise(cells)
        ]
        rise, before, after = max(changes, key=lambda change: change[0].centre)
        moved = _moved(before, after)
        fails = rise.low > 0
        findings.append(
            Finding(
                "raw_slows_with_depth",
                card,
                "fails" if fails else "holds",
                f"raw decode by depth, {build}",
                rise,
                "t/s",
                tuple(row.id for row in cells),
                f"the largest change from one depth to the next is {shown(rise)} t/s, {before.id} to {after.id}"
                + (f", where {moved} moves as well" if moved else ""),
                "both depths at one context size, with repeats" if fails else "",
            )
        )
    return findings


def _raw_by_build(rows: Mapping[str, Row]) -> list[tuple[str, str, list[Row]]]:
    groups: dict[tuple[str, str], list[tuple[float, Row]]] = {}
    for row in rows.values():
        depth = tokens(row)
        if row.quantity == "decode" and is_raw(row) and depth is not None and "build" in row.factors:
            groups.setdefault((row.card, row.factors["build"]), []).append((depth, row))
    several = {key: sorted(g, key=lambda pair: pair[0]) for key, g in groups.items() if len({d for d, _ in g}) > 2}
    return [(card, build, [row for _, row in group]) for (card, build), group in several.items()]


def _moved(a: Row, b: Row) -> str:
    names = [n for n in a.factors.keys() & b.factors.keys() if a.factors[n] != b.factors[n] and n != "depth"]
    return ", ".join(sorted(names))
