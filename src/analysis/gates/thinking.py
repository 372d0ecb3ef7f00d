"""Is the thinking mode known?"""

from collections.abc import Iterator

from analysis.gates.base import Evidence, Finding, Subject, finding


class ThinkingRecorded:
    """A cell with a chat template says whether the model was thinking."""

    name = "thinking-recorded"
    why = "Text that a model thinks is drafted far better or worse than its answers."
    symptom = "Thinking mode changes acceptance two- to threefold."
    expected = "thinking on or off wherever a chat template is used"
    looks_at: Subject = "cell"

    def check(self, evidence: Evidence) -> Iterator[Finding]:
        """Refuse cells that have a template and no thinking mode."""
        for cell in evidence.by_cell:
            if cell.template != "none" and cell.thinking is None:
                yield finding(self, "refuse", "cell", cell.id, f"template {cell.template}, thinking not recorded")
