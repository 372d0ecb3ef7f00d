"""The machine and its state, as far as a system tells."""

import os
import socket

import pytest

from analysis.launch import host, read_host_state, read_machine
from analysis.records import Problem
from analysis.records.model import plain


@pytest.mark.parametrize(
    ("cpu", "expected"),
    [
        ("AMD EPYC", "amd-epyc"),
        ("AMD EPYC (family 26, model 2)", "amd-epyc-family-26-model-2"),
        ("AMD EPYC 7B13 64-Core Processor", "amd-epyc-7b13"),
        ("Intel(R) Xeon(R) Platinum 8481C CPU @ 2.70GHz", "intel-xeon-platinum-8481c"),
        ("AMD RYZEN AI MAX+ 395 w/ Radeon 8060S", "amd-ryzen-ai-max-395"),
        ("Apple M2", "apple-m2"),
        ("", ""),
    ],
)
def test_a_machine_is_named_for_its_processor(cpu, expected):
    assert host.slug(cpu) == expected


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        (
            "cpu family\t: 26\nmodel\t\t: 2\nmodel name\t: AMD EPYC\n\ncpu family\t: 6\n",
            "AMD EPYC (family 26, model 2)",
        ),
        (
            "cpu family : 25\nmodel : 1\nmodel name : AMD EPYC 7B13  64-Core Processor\n",
            "AMD EPYC 7B13 64-Core Processor",
        ),
        ("model name : AMD EPYC\n", "AMD EPYC"),
        ("processor : 0\nModel : Raspberry Pi 5 Model B\n", "Raspberry Pi 5 Model B"),
    ],
)
def test_processors_of_one_name_are_told_apart(tmp_path, told, expected):
    (tmp_path / "cpuinfo").write_text(told)
    assert host.cpu_model(tmp_path / "cpuinfo") == expected


def test_a_processor_that_tells_nothing(tmp_path):
    assert host.cpu_model(tmp_path / "none")


def test_this_machine(monkeypatch):
    monkeypatch.delenv("SPECBOOK_MACHINE", raising=False)
    machine = read_machine(("ROCm0: AMD Radeon Graphics",))
    assert machine.name.endswith(f"-{machine.cores}c")
    assert 1 <= machine.cores <= os.cpu_count()
    assert machine.memory > 2**28
    assert machine.devices == ("ROCm0: AMD Radeon Graphics",)
    assert machine.os


def test_the_host_is_never_named(monkeypatch):
    monkeypatch.setattr(socket, "gethostname", lambda: "cellar-box")
    assert "cellar-box" not in str(plain(read_machine()))


def test_a_name_of_ones_own(monkeypatch):
    monkeypatch.setenv("SPECBOOK_MACHINE", "strix-halo-128g")
    assert read_machine().name == "strix-halo-128g"


def test_a_name_that_is_none_is_refused(monkeypatch):
    monkeypatch.setenv("SPECBOOK_MACHINE", "My Machine!")
    with pytest.raises(Problem, match="SPECBOOK_MACHINE is 'My Machine!'"):
        read_machine()


def test_the_state_of_this_host():
    state = read_host_state(os.getpid())
    assert state.at.endswith("+00:00")
    assert state.load1 >= 0
    assert state.memory_available > 0
    assert state.disk_free > 0
    assert state.major_faults >= 0


def test_major_faults_are_of_a_process_and_its_children():
    assert read_host_state().major_faults is None
    assert host.major_faults(2**22 + 1) is None


def test_what_a_system_does_not_say_is_none(monkeypatch):
    monkeypatch.setattr("psutil.cpu_freq", lambda: None)
    monkeypatch.setattr("psutil.sensors_temperatures", dict, raising=False)
    state = read_host_state()
    assert state.frequency_mhz is None
    assert state.temperature_c is None


def test_the_hottest_sensor_of_the_processor_counts(monkeypatch):
    from types import SimpleNamespace as Reading

    sensors = {"k10temp": [Reading(current=61.25), Reading(current=55.0)], "nvme": [Reading(current=80.0)]}
    monkeypatch.setattr("psutil.sensors_temperatures", lambda: sensors, raising=False)
    assert host.temperature_c() == 61.2


def test_evicted_gpu_memory_is_added_over_clients_and_not_over_their_handles(tmp_path):
    folder = tmp_path / "7" / "fdinfo"
    folder.mkdir(parents=True)
    for handle, client, evicted in ((3, 11, 2048), (4, 11, 2048), (5, 12, 1)):
        (folder / str(handle)).write_text(
            f"pos:\t0\ndrm-driver:\tamdgpu\ndrm-client-id:\t{client}\namd-evicted-vram:\t{evicted} KiB\n"
        )
    (folder / "6").write_text("pos:\t0\nflags:\t02\n")
    assert host.gpu_evicted(7, tmp_path) == 2049 * 1024


def test_without_such_a_driver_evictions_are_not_known(tmp_path):
    (tmp_path / "7" / "fdinfo").mkdir(parents=True)
    (tmp_path / "7" / "fdinfo" / "0").write_text("pos:\t0\nflags:\t02\n")
    assert host.gpu_evicted(7, tmp_path) is None
    assert host.gpu_evicted(8, tmp_path) is None
