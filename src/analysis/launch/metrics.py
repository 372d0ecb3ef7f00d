"""A server's own counters of speculation, from the page that it offers to Prometheus."""

import re

from analysis.records import Counters, Past

_METRIC = re.compile(r"^llamacpp:spec_decode_num_(\w+?)_total(?:\{position=\"(\d{1,4})\"\})? ([\d.e+]+)$", re.M)

_PAST = re.compile(r"^llamacpp:(prompt_tokens|tokens_predicted|n_decode)_total ([\d.e+]+)$", re.M)
_DIGITS = re.compile(r"\d{1,24}")


def parse_metrics(printed: str) -> Counters:
    """Return the counters of speculation from a page of Prometheus text; a counter that is not there is 0."""
    totals: dict[str, int] = {}
    positions: dict[int, int] = {}
    for name, position, value in _METRIC.findall(printed):
        if position:
            positions[int(position)] = round(float(value))
        else:
            totals[name] = round(float(value))
    return Counters(
        drafts=totals.get("drafts", 0),
        draft_tokens=totals.get("draft_tokens", 0),
        accepted_tokens=totals.get("accepted_tokens", 0),
        accepted_per_pos=tuple(positions.get(k, 0) for k in range(max(positions, default=-1) + 1)),
    )


def parse_past(printed: str, began: str) -> Past | None:
    """Return what a server counted since it started; None where a counter is missing.

    Args:
        printed: a page of Prometheus text.
        began: what it says of its start; anything but digits says nothing.
    """
    found = {name: round(float(value)) for name, value in _PAST.findall(printed)}
    if len(found) < 3:
        return None
    return Past(
        began=began if _DIGITS.fullmatch(began) else "",
        prompt_tokens=found["prompt_tokens"],
        predicted_tokens=found["tokens_predicted"],
        decodes=found["n_decode"],
    )
