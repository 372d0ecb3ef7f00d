"""A measured pair beside published figures of another: the last part of chapter 03."""

import pandas as pd

from analysis.evidence.references import Reference
from analysis.measure.estimate import acceptance_frame, cells_of, depth_frame
from analysis.measure.plan import DRAFTED
from analysis.measure.study import Study
from analysis.publish.chapters.common import in_words, made_how
from analysis.publish.tables import Markdown, escape_text, table

NOT_PRINTED = ""


def reference_sentence(reference: Reference) -> Markdown:
    """Return what the published figures are of, and why they are no yardstick."""
    return Markdown(
        f"For orientation, what {escape_text(reference.authors)} print of {escape_text(reference.drafter)} for "
        f"{escape_text(reference.target)} (*{escape_text(reference.title)}*, {reference.year}, "
        f"{escape_text(reference.identifier)}). Model, drafter, texts and sampling are all others, so a difference "
        f"between the two halves of the table has no single cause. {escape_text(reference.note)}"
    )


def reference_table(study: Study, depth: int, reference: Reference) -> Markdown:
    """Return mean accepted length and first position of a study's regimes, above the printed ones."""
    rows = [*_measured(study, depth), *_printed(reference)]
    headings = {
        "whose": "pair",
        "text": "text",
        "drafted": "drafted a step",
        "temperature": "temperature",
        "length": "mean accepted length",
        "first": "position 1, conditional",
        "where": "where from",
    }
    made = made_how(depth_frame(study, "mean accepted length"))
    caption = f"This pair at depth {depth} ({made}), and published figures of another, printed without intervals"
    return table(pd.DataFrame(rows), caption, "acceptance-reference", columns=headings)


def _measured(study: Study, depth: int) -> list[dict[str, str]]:
    positions, lengths = acceptance_frame(study), depth_frame(study, "mean accepted length")
    if positions.empty:
        return []
    first = positions[(positions["meaning"] == "conditional") & (positions["position"] == 1)]
    at_first, at_length = (
        {row["regime"]: in_words(row) for row in frame[frame["depth"] == depth].to_dict("records")}
        for frame in (first, lengths)
    )
    return [
        {
            "whose": cell.pair,
            "text": cell.regime,
            "drafted": str(cell.n_max),
            "temperature": f"{cell.temperature:g}",
            "length": at_length.get(cell.regime, "not measured"),
            "first": at_first.get(cell.regime, "not measured"),
            "where": "measured here",
        }
        for cell in cells_of(study, DRAFTED)
        if cell.depth == depth
    ]


def _printed(reference: Reference) -> list[dict[str, str]]:
    return [
        {
            "whose": f"{reference.target}, {reference.drafter}",
            "text": f"{value.kind}: {value.text}",
            "drafted": str(reference.drafted),
            "temperature": f"{reference.temperature:g}",
            "length": value.value if value.quantity == "mean accepted length" else NOT_PRINTED,
            "first": value.value if value.quantity == "conditional acceptance at position 1" else NOT_PRINTED,
            "where": f"printed, {value.place}",
        }
        for value in reference.values
    ]
