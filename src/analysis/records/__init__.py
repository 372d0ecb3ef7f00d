"""The records that cross rooms, their units, where they lie on disk, and how they are read and written."""

from analysis.records.errors import Problem
from analysis.records.model import (
    Cell,
    Counters,
    Engine,
    FileHash,
    HostState,
    Label,
    Machine,
    Pair,
    Profile,
    Regime,
    Run,
    Sample,
    ServerLife,
    Source,
    SpecType,
    Step,
)

__all__ = [
    "Cell",
    "Counters",
    "Engine",
    "FileHash",
    "HostState",
    "Label",
    "Machine",
    "Pair",
    "Problem",
    "Profile",
    "Regime",
    "Run",
    "Sample",
    "ServerLife",
    "Source",
    "SpecType",
    "Step",
]
