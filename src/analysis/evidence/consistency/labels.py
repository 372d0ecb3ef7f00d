"""Checks across tables: gains that were not printed, and one label with several numbers."""

from collections.abc import Mapping
from fractions import Fraction
from itertools import combinations

from analysis.evidence.cells import drafted, is_drafted, is_raw
from analysis.evidence.claims import claims
from analysis.evidence.consistency.factors import moves
from analysis.evidence.consistency.finding import Finding, shown
from analysis.evidence.interval import Interval
from analysis.evidence.published import Row

SHORT_DEPTH = 2000


def gains_not_printed(rows: Mapping[str, Row]) -> list[Finding]:
    """What a card says of its gains must hold for the columns it prints no gain for, or name the column.

    Each drafted rate is held against the raw rate of the same build; the gains of a build are compared with the
    printed range of gains.
    """
    printed = claims()["b_c_gain_range"].number
    assert printed is not None
    findings = []
    by_build: dict[tuple[str, str], list[tuple[str, Interval]]] = {}
    for cell in drafted(rows):
        if cell.gain is not None and "build" in cell.row.factors:
            by_build.setdefault((cell.row.card, cell.row.factors["build"]), []).append((cell.row.id, cell.gain))
    for (card, build), gains in by_build.items():
        hull = Interval(
            min(g.low for _, g in gains),
            Fraction(sum(g.centre for _, g in gains), len(gains)),
            max(g.high for _, g in gains),
        )
        outside = [name for name, g in gains if not g.overlaps(printed.interval)] if card == "B" else []
        findings.append(
            Finding(
                "gains_not_printed",
                card,
                "fails" if outside else "holds",
                f"gain of drafting, {build}",
                hull,
                "%",
                tuple(name for name, _ in gains),
                "; ".join(f"{name} {shown(g)} %" for name, g in gains),
                "the gain column for this build, and which build the sentence is about" if outside else "",
            )
        )
    return findings


def same_label(rows: Mapping[str, Row]) -> list[Finding]:
    """Rows that a card labels alike should have one number; where they have several, a stated factor must differ.

    A label is what the card's headings give: card, target, drafted or raw, depth, n_max and regime. Two rows of one
    label whose numbers cannot be equal are explained if a factor that both state differs, or if they are repeats of
    one cell. Else a reader cannot tell what made the difference.
    """
    groups: dict[tuple[str, ...], list[Row]] = {}
    for row in rows.values():
        if row.quantity == "decode" and "depth" in row.factors and (is_raw(row) or is_drafted(row)):
            groups.setdefault(_label(row), []).append(row)
    return [_judge_label(label, group) for label, group in groups.items() if _disagreeing(group)]


def _label(row: Row) -> tuple[str, ...]:
    depth = row.factors["depth"]
    short = depth == "short" or int(depth) <= SHORT_DEPTH
    drafter = "raw" if is_raw(row) else f"drafted, n_max {row.factors.get('n_max', 'not stated')}"
    where = "short context" if short else f"{int(depth):,} tokens"
    return (row.card, row.factors.get("target", ""), drafter, where, row.factors.get("regime", ""))


def _disagreeing(group: list[Row]) -> list[tuple[Row, Row]]:
    return [(a, b) for a, b in combinations(group, 2) if not a.printed.interval.overlaps(b.printed.interval)]


def _judge_label(label: tuple[str, ...], group: list[Row]) -> Finding:
    between = [moves(a, b) for a, b in _disagreeing(group)]
    differing = sorted({name for moved, _ in between for name in moved})
    unstated = sorted({name for moved, open_ in between if not moved for name in open_})
    numbers = [row.printed.interval for row in group]
    ratio = max(numbers, key=lambda n: n.centre) / min(numbers, key=lambda n: n.centre)
    said = (
        ", ".join(f"{row.id} {row.printed.text}" for row in group),
        f"stated and different: {', '.join(differing)}" if differing else "",
        f"stated by one row of a pair only: {', '.join(unstated)}" if unstated else "",
        "" if differing or unstated else "repeats of one cell",
    )
    return Finding(
        "same_label",
        label[0],
        "underdetermined" if unstated else "holds",
        ", ".join(part for part in label[1:] if part),
        (ratio - 1) * 100,
        "% apart",
        tuple(row.id for row in group),
        "; ".join(part for part in said if part),
        f"{', '.join(unstated)} beside every row" if unstated else "",
    )
