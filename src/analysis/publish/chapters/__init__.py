"""What each chapter shows: one module a chapter, whose function a notebook calls for a page of tables and charts."""

from analysis.publish.chapters.acceptance import acceptance
from analysis.publish.chapters.calibration import calibration
from analysis.publish.chapters.depth import depth_regime
from analysis.publish.chapters.economics import economics
from analysis.publish.chapters.exactness import exactness
from analysis.publish.chapters.failures import failures
from analysis.publish.chapters.files import files
from analysis.publish.chapters.fills import fills
from analysis.publish.chapters.launching import launch
from analysis.publish.chapters.sweeps import sweeps
from analysis.publish.chapters.travels import travels

__all__ = [
    "acceptance",
    "calibration",
    "depth_regime",
    "economics",
    "exactness",
    "failures",
    "files",
    "fills",
    "launch",
    "sweeps",
    "travels",
]
