"""What an examination found: one thing that was seen, why it matters to a measurement, and what to do."""

from dataclasses import dataclass
from typing import Literal

# bad: do not measure here. warning: measured numbers may be off, and how is said. note: good to know.
FindingLevel = Literal["bad", "warning", "note", "ok"]


@dataclass(frozen=True)
class Finding:
    """One thing that was seen. `matters` and `remedy` are empty where all is well."""

    level: FindingLevel
    topic: str
    seen: str
    matters: str = ""
    remedy: str = ""
