"""Did speculation take place, and as the cell says?"""

from collections.abc import Iterator

from analysis.gates.base import Evidence, Finding, Subject, finding
from analysis.records import Sample


class DraftsHappened:
    """A cell with speculation drafted something, and says how many evaluations had no draft."""

    name = "drafts-happened"
    why = "A server that was given a drafter and no type, or a drafter it cannot use, decodes raw and says nothing."
    symptom = "A drafter is loaded without a type and nothing drafts."
    expected = "drafts in every cell with speculation"
    looks_at: Subject = "cell"

    def check(self, evidence: Evidence) -> Iterator[Finding]:
        """Refuse cells without drafts.

        A lookup in the context may rightly find nothing in one cell; that is a warning where the same pair
        drafted in another cell of the run.
        """
        drafts = {cell: sum(map(_drafts, samples)) for cell, samples in evidence.by_cell.items()}
        drafting_pairs = {cell.pair for cell, count in drafts.items() if count}
        for cell, count in drafts.items():
            if cell.spec_type == "none":
                continue
            evaluations = sum(len(sample.drafted) for sample in evidence.by_cell[cell])
            if count:
                saw = f"{count} drafts; {1 - count / evaluations:.0%} of {evaluations} evaluations had none"
                yield finding(self, "pass", "cell", cell.id, saw)
            elif cell.spec_type.startswith("ngram") and cell.pair in drafting_pairs:
                saw = f"no draft in {evaluations} evaluations: the context held nothing to look up"
                yield finding(self, "warn", "cell", cell.id, saw)
            else:
                saw = f"no draft in {evaluations} evaluations with {cell.spec_type}"
                yield finding(self, "refuse", "cell", cell.id, saw)


class DraftsWithinLimit:
    """No draft is longer than the cell's n_max."""

    name = "drafts-within-limit"
    why = "n_max is a factor of the cell; longer drafts mean that the server did not take it."
    symptom = ""
    expected = "drafts of at most n_max tokens, none in a raw cell"
    looks_at: Subject = "cell"

    def check(self, evidence: Evidence) -> Iterator[Finding]:
        """Refuse cells with longer drafts."""
        for cell, samples in evidence.by_cell.items():
            longest = max((max(sample.drafted, default=0) for sample in samples), default=0)
            if longest > cell.n_max:
                saw = f"a draft of {longest} tokens where n_max is {cell.n_max}"
                yield finding(self, "refuse", "cell", cell.id, saw)


def _drafts(sample: Sample) -> int:
    return sum(count > 0 for count in sample.drafted)
