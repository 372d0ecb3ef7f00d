"""The records that cross rooms, their units, where they lie on disk, and how they are read and written.

The models are imported when one of them is first asked for: they bring pydantic, for which a command that only needs
to say what is wrong would wait half a second.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from analysis.records.errors import Problem

if TYPE_CHECKING:
    from analysis.records.blocks import Block, Leg
    from analysis.records.model import (
        Cell,
        Continued,
        Counters,
        Engine,
        FileHash,
        HostState,
        Known,
        Label,
        Machine,
        Pair,
        Past,
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
    "Block",
    "Cell",
    "Continued",
    "Counters",
    "Engine",
    "FileHash",
    "HostState",
    "Known",
    "Label",
    "Leg",
    "Machine",
    "Pair",
    "Past",
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


def __getattr__(name: str) -> Any:
    """Return one of the models by name."""
    if name in __all__:
        module = "blocks" if name in ("Block", "Leg") else "model"
        return getattr(import_module(f"analysis.records.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
