"""The tables of a run's model card: every estimate with its interval and the number of prompts behind it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import nan
from typing import TypeVar

import pandas as pd

from analysis.measure.economics import break_even_frame
from analysis.measure.estimate import acceptance_frame, acceptance_of, by_cell, cells_of, depth_frame, ratio_frame
from analysis.measure.plan import DRAFTED, RAW
from analysis.measure.study import Study
from analysis.publish.formats import format_interval
from analysis.publish.frames import interval_texts
from analysis.publish.tables import escape_text
from analysis.stats import Interval

# Decimals in which the audit of a card recomputes what the card rounds.
EXACT = 12
KEYS = ("regime", "depth")
K = TypeVar("K", bound=tuple[str, ...])


@dataclass(frozen=True)
class CardTable:
    """One table of a card. `chapter` is the notebook that shows the same numbers."""

    title: str
    note: str
    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    chapter: str


def card_tables(study: Study, *, exact: bool = False) -> list[CardTable]:
    """Return the tables that a run has something to say in.

    Args:
        study: the run.
        exact: give every estimate 12 decimals instead of rounding it.
    """
    every = (_verdicts, _rates, _lengths, _positions, _break_evens)
    return [table for make in every if (table := make(study, exact)).rows]


def _verdicts(study: Study, exact: bool) -> CardTable:
    frame = ratio_frame(study) if cells_of(study, RAW) else pd.DataFrame()
    rows = []
    if len(frame):
        for row, text in zip(frame.to_dict("records"), _texts(frame, 2, exact), strict=True):
            verdict = "none" if row["refused"] else str(row["verdict"])
            rows.append((*_key(row), text, verdict, f"{row['equal_text']} of {row['pairs']}"))
    return CardTable(
        "Does it pay?",
        f"Decode rate with the drafter over decode rate without it, paired by prompt. It holds for this machine only: "
        f"{escape_text(study.run.machine.cpu)}, {study.run.machine.cores} cores. Raw decoding ran without the drafter "
        "loaded. It *pays* if the whole interval lies above one, *loses* if below, and is *undecided* otherwise.",
        (*KEYS, "drafted / raw", "verdict", "prompts with equal text"),
        tuple(rows),
        "05_economics",
    )


def _rates(study: Study, exact: bool) -> CardTable:
    quantities = {
        "raw (tokens/s)": "raw decode rate",
        "drafted (tokens/s)": "decode rate",
        "verification step (ms)": "step",
    }
    found = {heading: depth_frame(study, quantity) for heading, quantity in quantities.items()}
    texts = {heading: _by_key(frame, _texts(frame, 1, exact)) for heading, frame in found.items() if len(frame)}
    return CardTable(
        "Decode rate and step cost",
        "What a user of this machine sees, and what one verification step costs. Neither carries over to others.",
        (*KEYS, *texts),
        tuple(_joined(texts)),
        "05_economics",
    )


def _lengths(study: Study, exact: bool) -> CardTable:
    texts: dict[str, dict[tuple[str, str], str]] = {}
    for heading, quantity in (
        ("mean accepted length", "mean accepted length"),
        ("accepted / drafted", "acceptance"),
    ):
        frame = depth_frame(study, quantity)
        if len(frame):
            texts[heading] = _by_key(frame, _texts(frame, 2, exact))
    for cell, samples, _ in by_cell(study, DRAFTED):
        found, key = acceptance_of(samples, cell), (cell.regime, str(cell.depth))
        texts.setdefault("tokens", {})[key] = f"{found.accepted} of {found.drafted}"
        texts.setdefault("verification steps", {})[key] = str(found.steps)
        texts.setdefault("evaluations without a draft", {})[key] = str(found.undrafted)
    return CardTable(
        "Mean accepted length",
        "Tokens that one verification step yields, the bonus token included. It is a property of target, drafter and "
        "text, and may be carried to other hardware.",
        (*KEYS, *texts),
        tuple(_joined(texts)),
        "04_depth_regime",
    )


def _positions(study: Study, exact: bool) -> CardTable:
    frame = acceptance_frame(study)
    texts: dict[str, dict[tuple[str, ...], str]] = {}
    counts: dict[tuple[str, ...], str] = {}
    if len(frame):
        for row, text in zip(frame.to_dict("records"), _texts(frame, 3, exact), strict=True):
            key = (*_key(row), str(row["position"]))
            texts.setdefault(str(row["meaning"]), {})[key] = text
            if row["meaning"] == "survival":
                counts[key] = f"{row['successes']} of {row['trials']}"
        texts["steps that survived"] = counts
    return CardTable(
        "Acceptance by draft position",
        "Survival is over all verification steps, the proposal rate over those that drafted the position, conditional "
        "acceptance over those that also accepted the position before it.",
        (*KEYS, "position", *texts),
        tuple(_joined(texts)),
        "03_acceptance",
    )


def _break_evens(study: Study, exact: bool) -> CardTable:
    rows = []
    for row in break_even_frame(study).to_dict("records"):
        parts = ((row["raw"], 1), (row["step"], 1))
        measured = ((row["length"], 2), (row["margin"], 2))
        needed = format_interval(row["estimate"], row["low"], row["high"], row["n"], digits=EXACT if exact else 2)
        shown = (*(_text(*part, exact) for part in parts), escape_text(row["refused"]) or needed)
        rows.append((str(row["depth"]), *shown, *(_text(*part, exact) for part in measured)))
    return CardTable(
        "Where a drafted step breaks even",
        "The mean accepted length at which a verification step is worth its time, regimes together. Above a margin of "
        "zero a drafted step pays.",
        ("depth", "raw (tokens/s)", "step (ms)", "break-even length", "measured length", "margin"),
        tuple(rows),
        "05_economics",
    )


def _texts(frame: pd.DataFrame, digits: int, exact: bool) -> list[str]:
    texts = interval_texts(frame, digits=EXACT if exact else digits)
    # A refusal quotes what a gate saw, which may be text that a model emitted.
    return [escape_text(text) if refused else text for text, refused in zip(texts, frame["refused"], strict=True)]


def _text(interval: Interval, digits: int, exact: bool) -> str:
    low, high = interval.limits or (nan, nan)
    return format_interval(interval.estimate, low, high, interval.n, digits=EXACT if exact else digits)


def _key(row: Mapping[object, object]) -> tuple[str, str]:
    return str(row["regime"]), str(row["depth"])


def _by_key(frame: pd.DataFrame, texts: list[str]) -> dict[tuple[str, str], str]:
    return {_key(row): text for row, text in zip(frame.to_dict("records"), texts, strict=True)}


def _joined(columns: Mapping[str, Mapping[K, str]]) -> Iterable[tuple[str, ...]]:
    """Yield one row a key that any column has, keys in the order of their first appearance."""
    for key in dict.fromkeys(key for column in columns.values() for key in column):
        yield (*key, *(column.get(key, "not measured") for column in columns.values()))
