"""Is a server that somebody else runs still the one that a run was measured on?

A server does not tell its threads, cache types or drafter. What it counts since its start only grows while its process
lives, so that it tells whether these can have changed.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from analysis.launch import Client
from analysis.measure.plan import LegPlan
from analysis.records import Continued, Past, Problem, ServerLife
from analysis.records.store import RunDir

COUNTS = {"decodes": "decodes", "predicted_tokens": "predicted tokens", "prompt_tokens": "prompt tokens"}
"""What is compared, with its name in a message."""


@dataclass(frozen=True)
class Before:
    """What a run knows of the server that a leg was last measured on.

    `life` is its last recorded one; a run that was `begun` and has none was killed while it measured.
    """

    begun: bool
    life: ServerLife | None

    def continued(self, now: Past | None) -> Continued:
        """Return how the server that counts this stands to the one before."""
        if not self.begun:
            return "first"
        past = self.life.past if self.life else None
        if past is None or now is None:
            return "not told"
        if _fallen(past, now):
            return "restarted"
        if past.began and now.began:
            return "same" if past.began == now.began else "restarted"
        return "grown"


def before(run: RunDir, leg: str) -> Before:
    """Return what a run knows of the server of a leg."""
    lives = [life for life in run.lives() if _leg(life.id) == leg]
    return Before(bool(lives) or any(_leg(s.server) == leg for s in run.samples()), lives[-1] if lives else None)


def check_continued(run: RunDir, legs: Sequence[LegPlan]) -> None:
    """Refuse to add samples of servers that were started again, or do not tell whether they were, to a run.

    Raises:
        Problem: so it is, and nobody said that they have the same settings; or a server cannot be reached.
    """
    for leg in legs:
        if leg.found is None or leg.found.url is None or leg.said_alike:
            continue
        with Client(leg.found.url, leg.found.api_key) as client:
            now = client.past()
        known = before(run, leg.leg)
        found = known.continued(now)
        if found in ("restarted", "not told"):
            raise Problem(
                f"the {leg.leg} server {_words(known, now, found)}; nobody can tell whether its settings are those of "
                f"the run {run.run.id}",
                expected="the servers that the run was begun with",
                remedy="--again begins a new run and keeps the old one; "
                "--same-servers says that drafter and settings are the same",
            )


def _words(known: Before, now: Past | None, found: Continued) -> str:
    past = known.life.past if known.life else None
    if found == "not told" or now is None or past is None:
        return f"{'does' if now is None else 'did'} not tell how much it has counted (--metrics)"
    for name, what in COUNTS.items():
        mine, theirs = getattr(now, name), getattr(past, name)
        if mine < theirs:
            return f"was started again: it counts {mine} {what}, and counted {theirs} when last measured"
    return f"was started again: its start, by its own clock, is {now.began}, and was {past.began} when last measured"


def _fallen(past: Past, now: Past) -> bool:
    return any(getattr(now, name) < getattr(past, name) for name in COUNTS)


def _leg(server: str) -> str:
    return server.rpartition("-")[0]
