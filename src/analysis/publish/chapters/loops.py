"""What loops do to acceptance: the part of chapter 03 that shows them as a row of their own."""

import math

import pandas as pd

from analysis.measure.loops import loop_acceptance, loop_frame
from analysis.measure.study import Study
from analysis.publish.tables import Markdown, table
from analysis.stats import Interval

NO_LOOPS = "No emission of this depth loops, so nothing was left out for that reason."


def loops_sentence(study: Study, depth: int) -> Markdown:
    """Return, in words, how often text looped and how much that would add to each regime."""
    frame, alone = loop_frame(study, depth), loop_acceptance(study, depth)
    if frame.empty or alone is None:
        return Markdown(NO_LOOPS)
    loops, emissions = int(frame["loops"].sum()), int((frame["samples"] + frame["loops"]).sum())
    touched = frame[frame["loops"] > 0].to_dict("records")
    words = "; ".join(f"{row['regime']} by {text_of(row['difference'])} tokens" for row in touched)
    return Markdown(
        f"Of {emissions} emissions at depth {depth} that are of their kind or a loop, {loops} loop. Their mean "
        f"accepted length is {text_of(alone.mean_length)}. Left in, they would change {words}."
    )


def loops_table(study: Study, depth: int) -> Markdown:
    """Return mean accepted length by regime without and with loops, and of the loops alone."""
    frame, alone = loop_frame(study, depth), loop_acceptance(study, depth)
    if frame.empty or alone is None:
        return Markdown(NO_LOOPS)
    rows = [
        {
            "text": row["regime"],
            "emissions": f"{row['samples']}, and {row['loops']} that loop",
            "length": text_of(row["without"]),
            "left_in": text_of(row["left_in"]) if row["loops"] else "",
            "difference": text_of(row["difference"]) if row["loops"] else "",
        }
        for row in frame.to_dict("records")
    ]
    rows.append(
        {
            "text": "loops, whatever was asked for",
            "emissions": str(alone.prompts),
            "length": text_of(alone.mean_length),
            "left_in": "",
            "difference": "",
        }
    )
    headings = {
        "text": "text",
        "emissions": "emissions",
        "length": "mean accepted length",
        "left_in": "with its loops left in",
        "difference": "difference",
    }
    caption = f"Mean accepted length (tokens) with and without loops at depth {depth}; 95 % intervals over prompts"
    return table(pd.DataFrame(rows), caption, "acceptance-loops", columns=headings)


def text_of(interval: Interval) -> str:
    """Return an interval as pages show it: estimate, limits if there are any, number of prompts."""
    if math.isnan(interval.estimate):
        return "none left"
    return f"{interval.format(decimals=2).removesuffix(' (no interval)')} (n = {interval.n})"
