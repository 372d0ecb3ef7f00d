"""Which factors move between two rows, and the check that a comparison moves one."""

import ast
from collections.abc import Iterator, Mapping
from itertools import pairwise

from analysis.evidence.cells import is_raw
from analysis.evidence.claims import Claim, claims
from analysis.evidence.consistency.finding import Finding, Outcome
from analysis.evidence.published import FACTORS, Row

# Factors that move together by their nature count as one.
DRAFTER = ("drafter_file", "n_max", "p_min")
TEXT = ("regime", "prompt")
BUNDLES = {
    "drafter": DRAFTER,
    "text": TEXT,
    **{name: (name,) for name in FACTORS if name not in (*DRAFTER, *TEXT, "repeats")},
}
# Functions of formulas that hold their arguments against each other.
_COMPARING = frozenset(
    {
        "gain",
        "loss",
        "above",
        "below",
        "at_least",
        "at_most",
        "increasing",
        "decreasing",
        "not_fading",
        "exceeds_all",
        "same",
        "apart",
        "together",
    }
)


def moves(a: Row, b: Row) -> tuple[list[str], list[str]]:
    """Return the factors in which two rows differ, and those that only one of them states.

    Drafter file, n_max and p_min count as one factor, prompt and regime as another. A raw rate does not depend on
    what a drafter would have drafted, so the text is not held against it. `short` says no depth.
    """
    moved, open_ = [], []
    for bundle, names in BUNDLES.items():
        if bundle == "drafter" and (is_raw(a) or is_raw(b)):
            moved += [bundle] * (is_raw(a) != is_raw(b))
            continue
        if bundle == "text" and (is_raw(a) or is_raw(b)):
            continue
        pairs = [(a.factors.get(name, ""), b.factors.get(name, "")) for name in names]
        if any(x and y and x != y and "short" not in (x, y) for x, y in pairs):
            moved.append(bundle)
        elif any(bool(x) != bool(y) for x, y in pairs):
            open_.append(bundle)
    return moved, open_


def one_factor_contrasts(rows: Mapping[str, Row]) -> list[Finding]:
    """A claim that holds rows against each other speaks of one factor only if one factor moves between them.

    Where a gain over raw decoding is itself compared, the rows are paired by their place: drafted with drafted, raw
    with raw.
    """
    findings = []
    for claim in claims().values():
        pairs = [
            (rows[a], rows[b])
            for formula in claim.formulas
            for a, b in compared(formula.tree)
            if a in rows and b in rows and a != b and rows[a].quantity == rows[b].quantity
        ]
        if pairs and not claim.missing:
            findings.append(_judge(claim, pairs))
    return findings


def compared(tree: ast.expr) -> Iterator[tuple[str, str]]:
    """Return the pairs of ids that a formula holds against each other."""
    for node in ast.walk(tree):
        sides: list[list[str]] = []
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _COMPARING:
            sides = [_names(argument) for argument in node.args]
            if node.func.id == "exceeds_all":
                sides = [side for other in sides[1:] for side in (sides[0], other)]
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div | ast.Sub):
            sides = [_names(node.left), _names(node.right)]
        for left, right in pairwise(sides):
            yield from _paired(left, right)


def _paired(left: list[str], right: list[str]) -> Iterator[tuple[str, str]]:
    if len(left) == len(right):
        yield from zip(left, right, strict=True)
    else:
        yield from ((a, b) for a in left for b in right)


def _names(node: ast.expr) -> list[str]:
    functions = {id(call.func) for call in ast.walk(node) if isinstance(call, ast.Call)}
    return [n.id for n in ast.walk(node) if isinstance(n, ast.Name) and id(n) not in functions]


def _judge(claim: Claim, pairs: list[tuple[Row, Row]]) -> Finding:
    moved, open_ = max((moves(a, b) for a, b in pairs), key=lambda found: (len(found[0]), len(found[1])))
    outcome: Outcome = "fails" if len(moved) > 1 else "underdetermined" if open_ else "holds"
    said = (
        f"moves: {', '.join(moved) or 'nothing stated'}",
        f"one row only states: {', '.join(open_)}" if open_ else "",
    )
    return Finding(
        "one_factor_contrasts",
        claim.card,
        outcome,
        claim.quote,
        None,
        "",
        (claim.id, *dict.fromkeys(row.id for pair in pairs for row in pair)),
        "; ".join(part for part in said if part),
        "" if outcome == "holds" else "the factors that are not stated, or cells between which one factor moves",
    )
