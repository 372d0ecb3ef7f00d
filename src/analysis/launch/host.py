"""The machine that measures, and what it is doing at one moment."""

import contextlib
import os
import platform
import re
import shutil
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import psutil

from analysis.records import HostState, Machine, Problem
from analysis.records.places import cache_dir

MACHINE_VARIABLE = "SPECBOOK_MACHINE"
_NOISE = re.compile(r"\((?:r|tm)\)|\s*@.*|\b(?:cpu|processor|\d+-core|with radeon.*|w/ radeon.*)\b|[^a-z0-9]+", re.I)

_FDINFO = re.compile(r"^(drm-client-id|amd-evicted-vram):\s*(\d+)", re.MULTILINE)


def read_machine(devices: Sequence[str] = ()) -> Machine:
    """Return the hardware of this machine.

    Its name is made of the processor and its cores (`amd-epyc-7b13-2c`), never of the host's name; the environment
    variable `SPECBOOK_MACHINE` gives another.

    Args:
        devices: the engine's devices (`Engine.devices`).

    Raises:
        Problem: `SPECBOOK_MACHINE` is no name.
    """
    cpu, cores = cpu_model(), usable_cores()
    name = os.environ.get(MACHINE_VARIABLE) or f"{slug(cpu) or platform.machine().lower()}-{cores}c"
    if not re.fullmatch(r"[a-z0-9][a-z0-9._-]{0,79}", name):
        raise Problem(
            f"{MACHINE_VARIABLE} is {name!r}", expected="lower-case letters, digits, dots and dashes, at most 80"
        )
    return Machine(
        name=name,
        cpu=cpu,
        cores=cores,
        memory=psutil.virtual_memory().total,
        os=_distribution(),
        kernel=platform.release(),
        devices=tuple(devices),
    )


def read_host_state(pid: int | None = None) -> HostState:
    """Return what this machine is doing now.

    Args:
        pid: a server whose major page faults (its own and those of its children) and evicted GPU memory are counted.
    """
    swap = psutil.swap_memory()
    return HostState(
        at=datetime.now(UTC).isoformat(timespec="milliseconds"),
        load1=round(os.getloadavg()[0], 2),
        memory_available=psutil.virtual_memory().available,
        swap_used=swap.used,
        swap_in=swap.sin,
        swap_out=swap.sout,
        major_faults=None if pid is None else major_faults(pid),
        gpu_evicted=None if pid is None else gpu_evicted(pid),
        frequency_mhz=frequency_mhz(),
        governor=governor(),
        temperature_c=temperature_c(),
        disk_free=disk_free(),
    )


def cpu_model(cpuinfo: Path = Path("/proc/cpuinfo")) -> str:
    """Return the processor's name as it gives it itself.

    A virtual machine's may be as short as `AMD EPYC` on processors generations apart, and what one of them measured is
    not the other's: family and model then stand behind it.
    """
    with contextlib.suppress(OSError):
        told = _first_processor(cpuinfo.read_text(encoding="utf-8", errors="replace"))
        name = next((told[key] for key in ("model name", "Hardware", "Model") if told.get(key)), "")
        family, model = told.get("cpu family"), told.get("model")
        if name and family and model and not re.search(r"\d", name):
            return f"{name} (family {family}, model {model})"
        if name:
            return name
    return platform.processor() or platform.machine()


def _first_processor(cpuinfo: str) -> dict[str, str]:
    told: dict[str, str] = {}
    for line in cpuinfo.splitlines():
        key, _, value = line.partition(":")
        told.setdefault(key.strip(), " ".join(value.split()))
    return told


def slug(cpu: str) -> str:
    """Return a processor's name as lower-case words joined by dashes, without trademarks, clock and core count."""
    return "-".join(_NOISE.sub(" ", cpu).lower().split())


def usable_cores() -> int:
    """Return the physical cores that this process may use."""
    allowed = len(os.sched_getaffinity(0))
    return min(psutil.cpu_count(logical=False) or allowed, allowed)


def major_faults(pid: int) -> int | None:
    """Return the page faults of a process and its children that had to read a disk; None if it is gone."""
    try:
        family = [pid, *(child.pid for child in psutil.Process(pid).children(recursive=True))]
    except psutil.Error:
        return None
    counts = [count for member in family if (count := _major_faults_of(member)) is not None]
    return sum(counts) if counts else None


def gpu_evicted(pid: int, proc: Path = Path("/proc")) -> int | None:
    """Return the bytes of a process's GPU memory that were moved out of the device; None where no driver says.

    The amdgpu driver tells it in `/proc/PID/fdinfo` (`amd-evicted-vram`); several handles of one client repeat it.
    """
    clients: dict[str, int] = {}
    for file in (proc / str(pid) / "fdinfo").glob("*"):
        with contextlib.suppress(OSError):
            found = dict(_FDINFO.findall(file.read_text(encoding="ascii", errors="replace")))
            if "amd-evicted-vram" in found:
                clients[found.get("drm-client-id", file.name)] = 1024 * int(found["amd-evicted-vram"])
    return sum(clients.values()) if clients else None


def frequency_mhz() -> float | None:
    """Return the mean clock of the cores; None where this system does not say."""
    with contextlib.suppress(OSError, NotImplementedError, RuntimeError):
        found = psutil.cpu_freq()
        if found is not None and found.current:
            return round(float(found.current), 1)
    return None


def governor() -> str | None:
    """Return the frequency governor, several joined by commas; None where there is none to be seen."""
    found = set()
    for path in Path("/sys/devices/system/cpu").glob("cpu[0-9]*/cpufreq/scaling_governor"):
        with contextlib.suppress(OSError):
            found.add(path.read_text(encoding="ascii").strip())
    return ",".join(sorted(found)) or None


def temperature_c() -> float | None:
    """Return the highest temperature of a processor's sensor; None where there is none to be seen."""
    sensors = psutil.sensors_temperatures()
    chips = [name for name in sensors if name in ("coretemp", "k10temp", "zenpower", "cpu_thermal")]
    readings = [reading.current for name in chips or sensors for reading in sensors[name] if reading.current]
    return round(float(max(readings)), 1) if readings else None


def disk_free() -> int | None:
    """Return the free bytes where the user's cache lies."""
    place = cache_dir()
    while not place.exists():
        place = place.parent
    with contextlib.suppress(OSError):
        return shutil.disk_usage(place).free
    return None


def _major_faults_of(pid: int) -> int | None:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    values = stat.rpartition(")")[2].split()
    return int(values[9]) + int(values[10])  # its own, and those of children it has waited for


def _distribution() -> str:
    with contextlib.suppress(OSError):
        return platform.freedesktop_os_release().get("PRETTY_NAME", platform.system())
    return platform.system()
