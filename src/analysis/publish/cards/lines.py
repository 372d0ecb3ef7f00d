"""Published cells, laws and predictions as rows of charts and texts of tables."""

from typing import Any

from analysis.evidence import cells, step_model
from analysis.evidence.interval import Interval
from analysis.evidence.step_law import Law
from analysis.evidence.step_model import Predicted
from analysis.publish.cards.marks import build_tag, short_label


def ratio(cell: cells.Drafted) -> Interval:
    """Return drafted over raw decode rate of a cell.

    Raises:
        ValueError: it has no raw rate.
    """
    if cell.raw is None:
        raise ValueError(f"{cell.row.id} has no raw rate beside it")
    return cell.row.printed.interval / cell.raw.printed.interval


def verdict(cell: cells.Drafted) -> str:
    """Return whether drafting pays in a cell: what its ratio says."""
    return step_model.verdict(ratio(cell))


def verdict_line(cell: cells.Drafted) -> dict[str, Any]:
    """Return a cell for a chart of verdicts."""
    return {
        "id": cell.row.id,
        "cell": f"{short_label(cell.row)}{repeat(cell)}",
        "printed": cell.row.printed.text,
        "verdict": verdict(cell),
    } | bounds(ratio(cell))


def cell_name(cell: cells.Drafted) -> str:
    """Return what tells a cell from its neighbours."""
    factors = cell.row.factors
    depth = factors.get("depth", "")
    parts = (
        factors.get("prompt") if factors.get("backend") == "Vulkan" else factors.get("regime"),
        f"n_max {factors['n_max']}" if "n_max" in factors else "",
        f"{int(depth):,} tokens" if depth.isdigit() else depth,
        build_tag(cell.row),
    )
    return f"{cell.row.card}: {', '.join(part for part in parts if part)}{repeat(cell)}"


def repeat(cell: cells.Drafted) -> str:
    """Return the number of a repeat that the card prints one by one."""
    number = cell.row.id.rpartition("_")[2]
    return f" #{number}" if cell.row.factors.get("repeats") == "1" and number.isdigit() else ""


def model_line(p: Predicted) -> dict[str, Any]:
    """Return a predicted cell for a chart."""
    return {
        "id": p.cell.row.id,
        "cell": short_label(p.cell.row),
        "low": float(p.raw_steps.low),
        "high": float(p.raw_steps.high),
        "measured": float(p.measured.centre),
        "shown": f"measured {text(p.measured, 2)}",
    }


def law_lines(law: Law) -> list[dict[str, Any]]:
    """Return the points of a law for a chart."""
    return [
        {
            "id": point.ids[0],
            "tokens": float(point.tokens.centre),
            "tokens_low": float(point.tokens.low),
            "tokens_high": float(point.tokens.high),
            "ms": float(point.ms.centre),
            "low": float(point.ms.low),
            "high": float(point.ms.high),
            "shown": f"{text(point.tokens, 2)} tokens, {text(point.ms, 1)} ms",
        }
        for point in law.points
    ]


def bounds(value: Interval) -> dict[str, float]:
    """Return an interval as columns."""
    return {"low": float(value.low), "centre": float(value.centre), "high": float(value.high)}


def text(value: Interval | None, digits: int) -> str:
    """Return a centre with what the digits leave open, or one number where that prints alike."""
    if value is None:
        return "–"
    low, centre, high = (f"{float(bound):.{digits}f}" for bound in (value.low, value.centre, value.high))
    return centre if low == high else f"{centre} ({low} to {high})"
