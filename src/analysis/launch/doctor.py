"""What would make a measurement here untrustworthy: the engine and the machine examined, finding by finding."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from analysis.launch.check_engine import examine_engine
from analysis.launch.check_host import examine_host, look
from analysis.launch.engine import FoundEngine
from analysis.launch.finding import Finding, FindingLevel
from analysis.launch.host import read_host_state, read_machine
from analysis.records import Engine, HostState, Machine, Problem
from analysis.records.model import plain


@dataclass(frozen=True)
class Report:
    """An engine and a machine, and what was found about them. `engine` is None if there is none."""

    engine: Engine | None
    machine: Machine
    host: HostState
    findings: tuple[Finding, ...]

    def at(self, *levels: FindingLevel) -> tuple[Finding, ...]:
        """Return the findings of some levels."""
        return tuple(finding for finding in self.findings if finding.level in levels)

    @property
    def trusted(self) -> bool:
        """Return whether nothing forbids measuring here; warnings may still say which numbers to doubt."""
        return not self.at("bad")

    def plain(self) -> dict[str, Any]:
        """Return the report as data that JSON can hold."""
        return {
            "trusted": self.trusted,
            "engine": plain(self.engine) if self.engine else None,
            "machine": plain(self.machine),
            "host": plain(self.host),
            "findings": [asdict(finding) for finding in self.findings],
        }


def examine(found: FoundEngine | Problem, target: Path | None = None) -> Report:
    """Examine an engine and this machine. Takes half a second.

    Args:
        found: the engine, or the problem that kept it from being found.
        target: a model file that is to be measured.

    Raises:
        Problem: `SPECBOOK_MACHINE` is no name.
    """
    host = read_host_state()
    sight = look()
    if isinstance(found, Problem):
        findings: Sequence[Finding] = (Finding("bad", "engine", str(found), matters="nothing can be measured"),)
        machine, engine = read_machine(), None
    else:
        findings = tuple(examine_engine(found))
        machine, engine = read_machine(found.engine.devices), found.engine
    return Report(engine, machine, host, (*findings, *examine_host(machine, host, sight, target)))
