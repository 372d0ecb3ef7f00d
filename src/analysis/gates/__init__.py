"""Is this sample, cell or contrast fit to publish? One small class a concern; looks at records only."""

from analysis.gates.base import Evidence, Finding, Gate, Level, Subject, Where
from analysis.gates.checklist import GATES, LATE_GATES, check_all, publishable, refused
from analysis.gates.contrast import Contrast, contrast

__all__ = [
    "GATES",
    "LATE_GATES",
    "Contrast",
    "Evidence",
    "Finding",
    "Gate",
    "Level",
    "Subject",
    "Where",
    "check_all",
    "contrast",
    "publishable",
    "refused",
]
