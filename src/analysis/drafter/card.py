"""Tables of a drafter's model card, from its recorded results; the card's page holds no number of its own."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from analysis.drafter.shapes import KINDS
from analysis.stats.intervals import POSITIVE, Interval, Scale, interval_of
from analysis.stats.resampling import Floats


def pipe_table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table; the cells are taken as they are, so a bar in one must be escaped."""
    lines = [f"| {' | '.join(cells)} |" for cells in (headings, *rows)]
    return "\n".join([lines[0], "|" + "--|" * len(headings), *lines[1:]])


def training_table(result: dict[str, Any]) -> str:
    """Return a Markdown table of simulated drafting over held-out texts: a row a kind of text.

    Args:
        result: what the stage `evaluate` left in `result.json`.
    """
    replay = result["replay"]
    places = [f"place {k}" for k in range(1, replay["n_max"] + 1)]
    rows = []
    for kind in (*KINDS, "all"):
        row = replay["summary"][kind]
        survival = [f"{share:.3f}" for share in row["survival"]]
        rows.append([kind, str(row["texts"]), f"{row['mean_length']:.2f}", *survival])
    return pipe_table(["kind", "texts", "mean accepted length", *places], rows)


def served_table(served: dict[str, Any], second: str) -> str:
    """Return a Markdown table of two drafters served over the same prompts: a row a kind of text.

    Mean accepted length before the text loops, with intervals over prompts; the ratio is paired by prompt.

    Args:
        served: recorded requests: `drafters`, the names, and `requests`, each with `drafter`, `kind`, `prompt`,
            `drafted` and `accepted` (tokens of each verification step), and `steps_before_loop`.
        second: the drafter that the first one is compared with.
    """
    first = served["drafters"][0]
    rows = []
    for kind in (*KINDS, "all"):
        chosen = [request for request in served["requests"] if kind in (request["kind"], "all")]
        mine, other = (_sums([r for r in chosen if r["drafter"] == name]) for name in (first, second))
        whole = len(mine)
        used = (mine[:, 0] > 0) & (other[:, 0] > 0)
        lengths = [interval_of(sums[used], _length, scale=Scale(1.0)) for sums in (mine, other)]
        ratio = interval_of(np.hstack([mine, other])[used], _ratio, scale=POSITIVE)
        looping = sum(r["loops"] for r in chosen if r["drafter"] == first)
        rows.append([kind, str(whole), str(looping), *map(_shown, (*lengths, ratio))])
    return pipe_table(["kind", "prompts", "looping", first, second, "ratio"], rows)


def _sums(requests: list[dict[str, Any]]) -> Floats:
    kept = [request["accepted"][: request["steps_before_loop"]] for request in requests]
    return np.array([[len(steps), sum(steps)] for steps in kept], dtype=np.float64).reshape(-1, 2)


def _length(sums: Floats) -> Floats:
    lengths: Floats = 1 + sums[..., 1] / sums[..., 0]
    return lengths


def _ratio(sums: Floats) -> Floats:
    ratios: Floats = _length(sums[..., :2]) / _length(sums[..., 2:])
    return ratios


def _shown(interval: Interval) -> str:
    if interval.low is None or interval.high is None:
        return f"{interval.estimate:.2f}"
    return f"{interval.estimate:.2f} ({interval.low:.2f} to {interval.high:.2f})"
