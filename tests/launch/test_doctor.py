"""Each thing that can be wrong is found, and nothing is found where all is well."""

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from analysis.launch import FoundEngine, check_engine, check_host, doctor, examine
from analysis.launch.check_host import Sight
from analysis.records import Engine, HostState, Machine, Problem

QUIET = Sight(busy=0.01, steal=0.0, steal_since_boot=0.0)
MACHINE = Machine(name="test-4c", cpu="Test CPU", cores=4, memory=16 * 2**30, os="Test OS")
HOST = HostState(
    at="2026-01-01T00:00:00+00:00",
    load1=0.1,
    memory_available=12 * 2**30,
    swap_used=0,
    frequency_mhz=3000.0,
    governor="performance",
    temperature_c=50.0,
    disk_free=100 * 2**30,
)


def engine(tmp_path: Path, *, options=(), server="llama-server", **said) -> FoundEngine:
    fields = {"source": "path", "version": "1.0", "build": 11000, "commit": "feedbee", "backend": "CPU"} | said
    return FoundEngine(
        engine=Engine(**fields),
        server=tmp_path / server if fields["source"] != "url" else None,
        url="http://somewhere" if fields["source"] == "url" else None,
        options=frozenset({*check_engine.NEEDED_OPTIONS, *options}),
    )


@pytest.fixture
def calm(monkeypatch, cache):
    """A bare machine on which nothing else runs."""
    for name in [name for name in os.environ if name.startswith(("LLAMA_", "GGML_", "OMP_", "GOMP_", "KMP_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setattr(check_host, "other_servers", list)
    monkeypatch.setattr(check_host, "cpu_quota", lambda: None)
    monkeypatch.setattr(check_host, "throttle_count", lambda: 0)
    monkeypatch.setattr(check_host, "virtual_machine", lambda: "")


def levels(findings) -> dict[str, str]:
    return {finding.topic: finding.level for finding in findings if finding.level != "ok"}


def host_levels(sight=QUIET, target=None, machine=MACHINE, **state) -> dict[str, str]:
    return levels(check_host.examine_host(machine, replace(HOST, **state), sight, target))


def test_a_good_engine_on_a_quiet_machine_gives_nothing_to_say(calm, tmp_path):
    assert host_levels() == {}
    assert levels(check_engine.examine_engine(engine(tmp_path))) == {}


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        ({"swap_used": 1}, {"swap": "warning"}),
        ({"governor": "powersave"}, {"clock": "warning"}),
        ({"governor": None}, {"clock": "note"}),
        ({"temperature_c": 95.0}, {"temperature": "warning"}),
        ({"load1": 3.0}, {"load": "note"}),
        ({"load1": 3.0, "sight": Sight(0.5, 0.0, 0.0)}, {"load": "warning"}),
        ({"disk_free": 2**30}, {"disk": "warning"}),
        ({"disk_free": None}, {"disk": "note"}),
        ({"sight": Sight(0.5, 0.0, 0.0)}, {"load": "warning"}),
        ({"sight": Sight(0.0, 0.05, 0.0)}, {"virtualisation": "warning"}),
        ({"sight": Sight(0.0, 0.0, 0.02)}, {"virtualisation": "warning"}),
    ],
    ids=str,
)
def test_what_a_machine_can_do_to_a_measurement(calm, state, expected):
    assert host_levels(**state) == expected


def test_a_guest_that_loses_no_time_is_only_noted(calm, monkeypatch):
    monkeypatch.setattr(check_host, "virtual_machine", lambda: "virtual machine (QEMU)")
    assert host_levels() == {"virtualisation": "note"}


def test_a_processor_that_was_slowed_for_its_heat(calm, monkeypatch):
    monkeypatch.setattr(check_host, "throttle_count", lambda: 7)
    assert host_levels() == {"temperature": "warning"}
    monkeypatch.setattr(check_host, "throttle_count", lambda: None)
    assert host_levels(temperature_c=None) == {"temperature": "note"}


def test_an_allowance_of_less_than_the_cores(calm, monkeypatch):
    monkeypatch.setattr(check_host, "cpu_quota", lambda: 1.5)
    assert host_levels() == {"processor": "warning"}


def test_other_servers(calm, monkeypatch):
    monkeypatch.setattr(check_host, "other_servers", lambda: [12, 34])
    assert host_levels() == {"other servers": "warning"}


def test_a_target_that_does_not_fit(calm, tmp_path):
    target = tmp_path / "model.gguf"
    target.write_bytes(b"x" * 1000)
    assert host_levels(target=target) == {}
    assert host_levels(target=target, memory_available=999) == {"memory": "bad"}
    assert host_levels(target=tmp_path / "nowhere") == {"target": "bad"}


def test_variables_that_an_engine_reads(calm, monkeypatch):
    monkeypatch.setenv("LLAMA_ARG_CTX_SIZE", "9")
    assert host_levels() == {"environment": "note"}
    monkeypatch.delenv("LLAMA_ARG_CTX_SIZE")
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    assert host_levels() == {"environment": "note"}


def test_processor_times_are_read():
    times = check_host.read_cpu_times("cpu  100 10 20 800 5 1 2 62 7 0\ncpu0 1 1 1 1 1 1 1 1 1 1\n")
    assert (times.busy, times.steal, times.total) == (133, 62, 1000)


def test_a_look_at_this_machine():
    sight = check_host.look()
    assert 0 <= sight.busy <= 1
    assert 0 <= sight.steal <= 1


@pytest.mark.parametrize(
    ("said", "options", "level"),
    [
        ({"build": 1, "commit": "0c1e570"}, (), None),
        ({"build": 10210, "commit": "000547513"}, (), None),
        ({"build": 10209, "commit": "abcdef0"}, (), "bad"),
        ({"build": 1, "commit": "abcdef0"}, ("--spec-synth-rates",), None),
        ({"build": 1, "commit": "abcdef0"}, (), "warning"),
        ({"build": None, "commit": "abcdef0"}, (), "warning"),
    ],
    ids=["the bundled commit", "the first repaired build", "the last faulty build", "newer by its options",
         "a build without history", "a build without a number"],
)  # fmt: skip
def test_counter_faults_are_decided_from_what_a_build_says(calm, tmp_path, said, options, level):
    found = engine(tmp_path, options=options, **said)
    assert levels(check_engine.examine_engine(found)).get("counters") == level


def test_an_engine_without_a_commit(calm, tmp_path):
    assert levels(check_engine.examine_engine(engine(tmp_path, commit="")))["engine"] == "warning"


def test_an_engine_too_old_to_measure(calm, tmp_path):
    found = replace(engine(tmp_path), options=frozenset({"--metrics"}))
    assert levels(check_engine.examine_engine(found))["options"] == "bad"


def attached(client, tmp_path) -> FoundEngine:
    return replace(engine(tmp_path, source="url", backend="unknown"), url=str(client._http.base_url))


METRICS = "llamacpp:spec_decode_num_drafts_total 0\n"


def test_of_a_running_server_less_is_known_and_that_is_said(calm, tmp_path, fake_server):
    client = fake_server(
        {"/slots": lambda c: c.answer([{"is_processing": False}]), "/metrics": lambda c: c.answer(METRICS)}
    )
    found = levels(check_engine.examine_engine(attached(client, tmp_path)))
    assert found == {"devices": "note", "fast-math": "note"}


def test_a_running_server_that_others_use(calm, tmp_path, fake_server):
    client = fake_server(
        {"/slots": lambda c: c.answer([{"is_processing": True}]), "/metrics": lambda c: c.answer(METRICS)}
    )
    assert levels(check_engine.examine_engine(attached(client, tmp_path)))["use"] == "warning"


def test_a_running_server_that_tells_little(calm, tmp_path, fake_server):
    quiet = fake_server({"/slots": lambda c: c.answer([])})
    assert levels(check_engine.examine_engine(attached(quiet, tmp_path)))["use"] == "note"
    silent = fake_server({})
    assert levels(check_engine.examine_engine(attached(silent, tmp_path)))["use"] == "note"


ROCM = {"backend": "ROCm", "devices": ("ROCm0: AMD Radeon Graphics",)}


def fast_math(tmp_path, **said) -> str | None:
    return levels(check_engine.examine_engine(engine(tmp_path, server="build/bin/llama-server", **said))).get(
        "fast-math"
    )


@pytest.fixture
def build(tmp_path) -> Path:
    """The folder of a ROCm build whose flags nobody recorded."""
    folder = tmp_path / "build"
    (folder / "bin").mkdir(parents=True)
    (folder / "bin" / "llama-server").write_bytes(b"\x7fELF program")
    (folder / "bin" / "libggml-hip.so").write_bytes(b"\x7fELF library")
    return folder


def commands(folder: Path, flags: str) -> None:
    entry = {"file": "/src/ggml-cuda/argsort.cu", "command": f"hipcc -O3 {flags} -c argsort.cu"}
    other = {"file": "/src/ggml-cuda/other.cu", "command": "hipcc -O3 -ffast-math -c other.cu"}
    (folder / "compile_commands.json").write_text(json.dumps([entry, other]))


def test_a_rocm_build_that_kept_no_record_cannot_be_told(build, tmp_path):
    assert fast_math(tmp_path, **ROCM) == "warning"


@pytest.mark.parametrize(
    ("flags", "level"), [("-ffast-math", "bad"), ("-ffast-math -fno-fast-math", None), ("-funsafe-math", None)]
)
def test_the_commands_of_the_sort_decide(build, tmp_path, flags, level):
    commands(build, flags)
    assert fast_math(tmp_path, **ROCM) == level


def test_flags_of_a_makefile_build_decide(build, tmp_path):
    flags = build / "ggml/src/ggml-hip/CMakeFiles/ggml-hip.dir/flags.make"
    flags.parent.mkdir(parents=True)
    flags.write_text("HIP_FLAGS = -O3 -fPIC\n")
    assert fast_math(tmp_path, **ROCM) is None
    flags.write_text("HIP_FLAGS = -O3 -ffast-math -fPIC\n")
    assert fast_math(tmp_path, **ROCM) == "bad"


def test_a_cache_of_cmake_tells_only_one_way(build, tmp_path):
    (build / "CMakeCache.txt").write_text("CMAKE_HIP_FLAGS:STRING=-O3\n")
    assert fast_math(tmp_path, **ROCM) == "warning"
    (build / "CMakeCache.txt").write_text("CMAKE_HIP_FLAGS:STRING=-O3 -ffast-math\n")
    assert fast_math(tmp_path, **ROCM) == "bad"


def test_a_compiler_that_recorded_its_command_line(build, tmp_path):
    (build / "bin" / "libggml-hip.so").write_bytes(b"\x7fELF\0clang -O3 -ffast-math -x hip\0")
    assert fast_math(tmp_path, **ROCM) == "bad"


def test_damaged_records_of_a_build_are_no_evidence(build, tmp_path):
    for content in ("", "{", "[1]", '[{"file": "argsort.cu"}]', '{"file": 1}'):
        (build / "compile_commands.json").write_text(content)
        assert fast_math(tmp_path, **ROCM) == "warning"


def test_without_an_engine_nothing_is_trusted(calm):
    report = examine(Problem("no llama-server: nothing there"))
    assert not report.trusted
    assert report.at("bad")[0].seen == "no llama-server: nothing there"
    assert report.plain()["engine"] is None


def test_a_report_is_data(calm, tmp_path):
    report = examine(engine(tmp_path))
    data = json.loads(json.dumps(report.plain()))
    assert data["trusted"] is True
    assert data["engine"]["commit"] == "feedbee"
    assert {"level", "topic", "seen", "matters", "remedy"} == data["findings"][0].keys()
    assert doctor.Report(report.engine, report.machine, report.host, ()).trusted
