"""What is known of builds of llama-server: does one count accepted tokens as it should?

Until llama.cpp's pull request 26320 a server that restored a checkpoint (a target that cannot roll back: recurrent,
sliding-window) counted one accepted token too many each time, the one that the target itself had chosen. Nothing in
its stream or its `/metrics` shows it.
"""

from typing import Literal

from analysis.records.model import Engine

READ_COMMITS = ("0c1e570", "000547513")
"""Commits that are known to hold the repair: the bundled one, whose source was read, and the repair's own."""

FIRST_SOUND = 10210
"""The first upstream build with the repair (its own commit)."""

SHALLOW = 1000
"""Below this a build number comes from a copy of the source without its history and says nothing."""


def counts_soundly(engine: Engine) -> Literal["sound", "faulty", "unknown"]:
    """Return whether a build is known to count accepted tokens rightly, known not to, or unknown.

    A fork's build number is not upstream's; that cannot be seen from here.
    """
    if engine.commit.startswith(READ_COMMITS):
        return "sound"
    build = engine.build or 0
    if build < SHALLOW:
        return "unknown"
    return "sound" if build >= FIRST_SOUND else "faulty"
