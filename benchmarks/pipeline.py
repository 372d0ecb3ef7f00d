"""The default profile, and one chapter by itself, with the environment in place; peak memory of the process tree."""

import os
import sys
import tempfile
from pathlib import Path

from processes import watched

ROOT = Path(__file__).resolve().parent.parent
SPECBOOK = str(Path(sys.executable).parent / "specbook")


def measure() -> list[dict[str, str]]:
    """Run the whole book and then one chapter, each into an empty folder, and return what they took."""
    rows = []
    cases = [
        ("every notebook and the book, default profile", ["book"], "≤ 6 min"),
        ("one chapter, `04_depth_regime`, default profile", ["chapter", "04_depth_regime"], "≤ 90 s"),
    ]
    peak = 0
    for what, arguments, target in cases:
        with tempfile.TemporaryDirectory() as folder:
            outcome = watched([SPECBOOK, *arguments], cwd=ROOT, env=os.environ | {"SPECBOOK_LOCAL": folder})
        peak = max(peak, outcome.peak)
        rows.append(
            {
                "quantity": what,
                "measured": f"{outcome.seconds:.0f} s",
                "target": target,
                "note": "nothing measured before",
            }
        )
    rows.append(
        {
            "quantity": "peak memory of both, all processes together",
            "measured": f"{peak / 2**30:.2f} GiB",
            "target": "≤ 2 GiB",
            "note": "resident memory, shared pages counted in each process",
        }
    )
    return rows
