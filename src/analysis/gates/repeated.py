"""Was a prompt seen before by the same server?"""

from collections.abc import Iterator

from analysis.gates.base import Evidence, Finding, Subject, finding


class PromptNotRepeated:
    """A server sees each prompt once."""

    name = "prompt-not-repeated"
    why = "A server that saw a prompt before may replay what it drafted then."
    symptom = "Repeating a prompt replays a cached draft, and acceptance looks about ten times too good."
    expected = "each prompt once in a server's life"
    looks_at: Subject = "sample"

    def check(self, evidence: Evidence) -> Iterator[Finding]:
        """Refuse every repetition; the first use stands."""
        for server, samples in evidence.by_server.items():
            first: dict[str, int] = {}
            for sample in samples:
                before = first.setdefault(sample.prompt_sha256, sample.index)
                if before != sample.index:
                    saw = f"server {server} had this prompt in sample {before}"
                    yield finding(self, "refuse", "sample", sample.index, saw)
