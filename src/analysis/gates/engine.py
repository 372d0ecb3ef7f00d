"""Does this build of llama-server count as it should?"""

from collections.abc import Iterator

from analysis.gates.base import Evidence, Finding, Subject, finding
from analysis.records import Engine
from analysis.records.builds import FIRST_SOUND, counts_soundly

ENOUGH_DRAFTS = 50
MORE_THAN_ONE = 2


class CountersSound:
    """The build is not one of those that count acceptance wrongly.

    Until llama.cpp's pull request 26320 a server that restored a checkpoint counted a partly accepted draft as not
    accepted at all and the replayed tokens, with one that the target had chosen, as accepted (26320, 25682).
    """

    name = "counters-sound"
    why = "Builds with a known counter fault report an acceptance that never happened."
    symptom = "A replayed token counts as accepted; partial acceptance counts as zero."
    expected = f"build {FIRST_SOUND} or later, or a commit that was read"
    looks_at: Subject = "run"

    def check(self, evidence: Evidence) -> Iterator[Finding]:
        """Refuse the drafted cells of a build known to be faulty; report builds of which nothing is known."""
        verdict = counts_soundly(evidence.run.engine)
        if verdict == "sound":
            return
        said = _said(evidence.run.engine)
        if verdict == "unknown":
            yield finding(self, "unchecked", "run", evidence.run.id, said)
            return
        for cell in evidence.by_cell:
            if cell.spec_type != "none":
                yield finding(self, "refuse", "cell", cell.id, said)


class PartialAcceptanceSeen:
    """Drafts are now and then accepted in part."""

    name = "partial-acceptance-seen"
    why = "A build that counts a partly accepted draft as not accepted shows drafts accepted whole or not at all."
    symptom = "Partial acceptance counts as zero."
    expected = f"some partly accepted draft among {ENOUGH_DRAFTS} of two tokens or more"
    looks_at: Subject = "cell"

    def check(self, evidence: Evidence) -> Iterator[Finding]:
        """Warn of cells with enough drafts, accepted whole or not at all and both ways."""
        for cell, samples in evidence.by_cell.items():
            steps = [(a, d) for s in samples for a, d in zip(s.accepted, s.drafted, strict=True) if d >= MORE_THAN_ONE]
            whole = sum(a == d for a, d in steps)
            none = sum(a == 0 for a, _ in steps)
            if len(steps) >= ENOUGH_DRAFTS and whole and none and whole + none == len(steps):
                saw = f"{len(steps)} drafts: {whole} accepted whole, {none} not at all, none in part"
                yield finding(self, "warn", "cell", cell.id, saw)


def _said(engine: Engine) -> str:
    return f"version {engine.version}, build {engine.build}, commit {engine.commit or 'not known'}"
