"""Tables of a drafter's model card, from its recorded results; the card's page holds no number of its own."""

from typing import Any

import numpy as np

from analysis.drafter.shapes import KINDS


def training_table(result: dict[str, Any]) -> str:
    """Return a Markdown table of simulated drafting over held-out texts: a row a kind of text.

    Args:
        result: what the stage `evaluate` left in `result.json`.
    """
    replay = result["replay"]
    places = " | ".join(f"place {k}" for k in range(1, replay["n_max"] + 1))
    rows = [f"| kind | texts | mean accepted length | {places} |", "|--|" * 1 + "--|" * (2 + replay["n_max"])]
    for kind in (*KINDS, "all"):
        row = replay["summary"][kind]
        survival = " | ".join(f"{share:.3f}" for share in row["survival"])
        rows.append(f"| {kind} | {row['texts']} | {row['mean_length']:.2f} | {survival} |")
    return "\n".join(rows)


def served_table(served: dict[str, Any]) -> str:
    """Return a Markdown table of drafters served over the same prompts: mean accepted length by kind of text.

    Args:
        served: recorded requests: `requests`, each with `drafter`, `kind`, `prompt`, `accepted` (drafted tokens
            accepted, a verification step each) and `steps_before_loop`.
    """
    drafters = list(dict.fromkeys(request["drafter"] for request in served["requests"]))
    rows = [f"| kind | prompts | {' | '.join(drafters)} | ratio |", "|--|--|" + "--|" * (len(drafters) + 1)]
    for kind in (*KINDS, "all"):
        lengths = {}
        for name in drafters:
            chosen = [r for r in served["requests"] if r["drafter"] == name and kind in (r["kind"], "all")]
            lengths[name] = mean_length(chosen)
            prompts = len(chosen)
        values = [lengths[name] for name in drafters]
        shown = " | ".join(f"{value:.2f}" for value in values)
        rows.append(f"| {kind} | {prompts} | {shown} | {values[0] / values[-1]:.2f} |")
    return "\n".join(rows)


def mean_length(requests: list[dict[str, Any]]) -> float:
    """Return the mean accepted length over the steps of requests before their text loops."""
    accepted = [a for request in requests for a in request["accepted"][: request["steps_before_loop"]]]
    return 1 + float(np.mean(accepted)) if accepted else float("nan")
