"""What about a machine, and what it is doing now, would make a measurement on it untrustworthy."""

import os
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import psutil

from analysis.launch import registry
from analysis.launch.finding import Finding
from analysis.records import HostState, Machine

_LOOK_S = 0.5
_GIB = 2**30


class CpuTimes(NamedTuple):
    """Processor time since boot in clock ticks, over all cores."""

    busy: int
    steal: int
    total: int


@dataclass(frozen=True)
class Sight:
    """What one look at the machine saw: shares of processor time in a moment, and stolen time since boot."""

    busy: float
    steal: float
    steal_since_boot: float


def read_cpu_times(stat: str) -> CpuTimes:
    """Return the processor times of the first line of `/proc/stat`; guest time is in user time already."""
    user, nice, system, idle, iowait, irq, softirq, steal = (int(word) for word in stat.split()[1:9])
    busy = user + nice + system + irq + softirq
    return CpuTimes(busy, steal, busy + idle + iowait + steal)


def look() -> Sight:
    """Watch the processors for half a second."""
    first = read_cpu_times(Path("/proc/stat").read_text(encoding="ascii"))
    time.sleep(_LOOK_S)
    then = read_cpu_times(Path("/proc/stat").read_text(encoding="ascii"))
    span = max(1, then.total - first.total)
    return Sight((then.busy - first.busy) / span, (then.steal - first.steal) / span, then.steal / max(1, then.total))


def examine_host(machine: Machine, host: HostState, sight: Sight, target: Path | None = None) -> Iterator[Finding]:
    """Yield what was found about the machine.

    Args:
        machine: its hardware.
        host: its state.
        sight: what half a second of watching saw.
        target: a model file that is to be measured.
    """
    quota = cpu_quota()
    yield _processor(machine, quota)
    yield from _memory(machine, host, target)
    yield _swap(host)
    yield _clock(host)
    yield _temperature(host, throttle_count())
    yield _load(machine, host, sight)
    yield _stolen(sight, virtual_machine())
    yield _disk(host)
    yield from _servers(other_servers())
    yield from _environment()


def _processor(machine: Machine, quota: float | None) -> Finding:
    seen = f"{machine.cpu}, {machine.cores} cores ({machine.name})"
    if quota is not None and quota < machine.cores:
        return Finding(
            "warning",
            "processor",
            f"{seen}, of which a control group allows {quota:g}",
            matters="threads are stopped whenever the allowance is used up: durations come in bursts",
            remedy="lift the allowance, or measure with at most that many threads",
        )
    return Finding("ok", "processor", seen)


def _memory(machine: Machine, host: HostState, target: Path | None) -> Iterator[Finding]:
    available = host.memory_available or 0
    seen = f"{gib(machine.memory)}, {gib(available)} available"
    if target is None:
        yield Finding("ok", "memory", seen)
        return
    try:
        size = target.stat().st_size
    except OSError as error:
        yield Finding("bad", "target", f"{target.name} cannot be read: {error.strerror}", remedy="name a GGUF file")
        return
    if size > available:
        yield Finding(
            "bad",
            "memory",
            f"{seen}; the target has {gib(size)}",
            matters="weights that do not fit are read from disk again and again",
            remedy="unless the weights go to a device, free memory or take a smaller file",
        )
    else:
        yield Finding("ok", "memory", f"{seen}; the target has {gib(size)}")


def _swap(host: HostState) -> Finding:
    if host.swap_used:
        return Finding(
            "warning",
            "swap",
            f"{gib(host.swap_used)} of swap in use",
            matters="what was swapped out comes back during a measurement and slows it",
            remedy="switch swap off (`swapoff -a`) while measuring",
        )
    return Finding("ok", "swap", "none in use")


def _clock(host: HostState) -> Finding:
    clock = f"{host.frequency_mhz:.0f} MHz" if host.frequency_mhz else "clock not visible"
    if host.governor is None:
        return Finding(
            "note",
            "clock",
            f"{clock}; no governor visible",
            matters="whether the clock changes during a measurement cannot be told from here",
            remedy="rely on legs in balanced order: slow changes then cancel out",
        )
    if host.governor != "performance":
        return Finding(
            "warning",
            "clock",
            f"{clock}; governor {host.governor}",
            matters="the clock follows the load: the first steps and light legs run slower",
            remedy="set it to performance while measuring (`cpupower frequency-set -g performance`)",
        )
    return Finding("ok", "clock", f"{clock}; governor performance")


def _temperature(host: HostState, throttled: int | None) -> Finding:
    if host.temperature_c is None and throttled is None:
        return Finding(
            "note",
            "temperature",
            "no sensor visible",
            matters="a processor that slows down when hot cannot be caught in the act",
            remedy="look at the drift within a run",
        )
    said = [f"{host.temperature_c:.0f} °C" if host.temperature_c is not None else "no sensor visible"]
    if throttled is not None:
        said.append(f"throttled {throttled} times since boot")
    seen = ", ".join(said)
    if (host.temperature_c or 0) >= 90 or throttled:
        return Finding(
            "warning",
            "temperature",
            seen,
            matters="a hot processor slows down in the middle of a run",
            remedy="cool it, or measure in shorter runs",
        )
    return Finding("ok", "temperature", seen)


def _load(machine: Machine, host: HostState, sight: Sight) -> Finding:
    cores = os.cpu_count() or machine.cores
    load = host.load1 or 0.0
    seen = f"load {load:.2f} on {cores} cores, {sight.busy:.0%} busy now"
    if sight.busy > 0.1:
        return Finding(
            "warning",
            "load",
            seen,
            matters="other programs take time from the steps: durations grow, acceptance does not change",
            remedy="stop them, wait for quiet, or publish no speeds from this run",
        )
    if load > 0.25 * cores:
        return Finding(
            "note",
            "load",
            seen,
            matters="the load counts what ran in the last minutes; almost nothing runs now",
            remedy="wait a minute: a run's gates take what is recorded, the load",
        )
    return Finding("ok", "load", seen)


def _stolen(sight: Sight, hypervisor: str) -> Finding:
    seen = f"{sight.steal:.1%} of processor time stolen now, {sight.steal_since_boot:.1%} since boot"
    if sight.steal > 0.01 or sight.steal_since_boot > 0.01:
        return Finding(
            "warning",
            "virtualisation",
            f"{hypervisor or 'virtual machine'}: {seen}",
            matters="the host gives this machine's time to others: durations are not those of its hardware",
            remedy="measure on hardware of your own, or publish no speeds from here",
        )
    if hypervisor:
        return Finding(
            "note",
            "virtualisation",
            f"{hypervisor}: {seen}",
            matters="a host may slow a guest down without saying so",
            remedy="repeat at another hour before trusting a speed; acceptance is not touched",
        )
    return Finding("ok", "virtualisation", "none visible")


def _disk(host: HostState) -> Finding:
    free = host.disk_free
    if free is None:
        return Finding("note", "disk", "free space not visible")
    if free < 2 * _GIB:
        return Finding(
            "warning",
            "disk",
            f"{gib(free)} free where model files are kept",
            matters="a run stops when its journal cannot grow; what was recorded stays whole",
            remedy="free some space",
        )
    return Finding("ok", "disk", f"{gib(free)} free where model files are kept")


def _servers(pids: list[int]) -> Iterator[Finding]:
    if pids:
        yield Finding(
            "warning",
            "other servers",
            f"{len(pids)} other llama-server running (process {', '.join(map(str, pids))})",
            matters="it shares cores, memory bandwidth and devices with what is measured",
            remedy="stop it; one left behind by a killed run is ended at the next start",
        )
    else:
        yield Finding("ok", "other servers", "no other llama-server running")


def _environment() -> Iterator[Finding]:
    ignored = sorted(name for name in os.environ if name.startswith(("LLAMA_ARG_", "LLAMA_API_KEY")))
    if ignored:
        yield Finding(
            "note",
            "environment",
            f"{', '.join(ignored)} set",
            matters="they would change a server's settings unseen",
            remedy="nothing: servers of ours are started without them",
        )
    felt = sorted(name for name in os.environ if name.startswith(("GGML_", "OMP_", "GOMP_", "KMP_")))
    if felt:
        yield Finding(
            "note",
            "environment",
            f"{', '.join(felt)} set",
            matters="the engine reads them, and they are in no record",
            remedy="unset them unless you mean them",
        )


def cpu_quota() -> float | None:
    """Return how many cores a control group allows; None where it sets no limit."""
    try:
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text(encoding="ascii").split()
        return int(quota) / int(period)
    except (OSError, ValueError):  # no control group, or `max`
        return None


def throttle_count() -> int | None:
    """Return how often a core was slowed down for its heat since boot; None where this system does not say."""
    counts = []
    for path in Path("/sys/devices/system/cpu").glob("cpu[0-9]*/thermal_throttle/core_throttle_count"):
        try:
            counts.append(int(path.read_text(encoding="ascii")))
        except (OSError, ValueError):
            continue
    return sum(counts) if counts else None


def virtual_machine() -> str:
    """Return the name of the machine's virtualisation, `virtual machine` if it has no name, else an empty string."""
    try:
        if not re.search(r"^flags\s*:.*\bhypervisor\b", Path("/proc/cpuinfo").read_text(errors="replace"), re.M):
            return ""
    except OSError:
        return ""
    try:
        vendor = Path("/sys/class/dmi/id/sys_vendor").read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        vendor = ""
    return f"virtual machine ({vendor})" if vendor else "virtual machine"


def other_servers() -> list[int]:
    """Return the process ids of llama-servers on this machine, less those of runs of ours that are alive."""
    ours = registry.living_servers()
    found = []
    for process in psutil.process_iter(["name"]):
        if (process.info["name"] or "").startswith("llama-server") and process.pid not in ours:
            found.append(process.pid)
    return sorted(found)


def gib(nbytes: int) -> str:
    """Return a size in GiB, or in MiB below one."""
    return f"{nbytes / _GIB:.1f} GiB" if nbytes >= _GIB else f"{nbytes / 2**20:.0f} MiB"
