"""Did something else use the machine?"""

from collections.abc import Iterator

from analysis.gates.base import Evidence, Finding, Subject, finding

QUIET = 0.5
"""Load per core that a host may have before a run begins."""

BUSY = 1.5
"""Load per core that a host may have when one of our servers starts: the load of our own last server is in it."""


class HostQuiet:
    """The machine has nothing else to do."""

    name = "host-quiet"
    why = "What else runs takes cores and bandwidth from one leg and not from the other."
    symptom = "Throughput varies by a fifth at temperature 0."
    expected = f"a load per core below {QUIET} before the run and below {BUSY} when a server starts"
    looks_at: Subject = "run"

    def check(self, evidence: Evidence) -> Iterator[Finding]:
        """Warn of a busy host; report where the load was not read."""
        run, cores = evidence.run, evidence.run.machine.cores
        load = run.host_before.load1 if run.host_before else None
        if load is None:
            yield finding(self, "unchecked", "run", run.id, "no load recorded before the run")
        elif load > QUIET * cores:
            yield finding(self, "warn", "run", run.id, f"a load of {load:g} on {cores} cores before the run")
        cores_of = {machine.name: machine.cores for machine in run.machines}
        for life in evidence.lives:
            load, cores = life.host_before.load1, cores_of.get(life.machine, run.machine.cores)
            if load is not None and load > BUSY * cores:
                yield finding(self, "warn", "server", life.id, f"a load of {load:g} on {cores} cores at its start")
