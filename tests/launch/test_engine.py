"""Which llama-server measures, and what it says of itself."""

import os
from pathlib import Path

import pytest

from analysis.launch import FoundEngine, resolve_engine, tool
from analysis.launch.engine import backend_of, engine_environment, parse_devices, parse_options, parse_version
from analysis.records import Engine, Problem

HELP = """----- common params -----

-h,    --help, --usage                  print usage and exit
-t,    --threads N                      number of CPU threads to use during generation (default: -1)
-tb,   --threads-batch N                number of threads; same as --threads-of-old
--perf, --no-perf                       whether to measure (replaces --timings)
--api-key-file FNAME                    path to file containing API keys
"""
DEVICES = """ggml_cuda_init: found 1 ROCm devices:
  Device 0: AMD Radeon Graphics, gfx1151 (0x1151), VMM: no, Wave Size: 32
Available devices:
  ROCm0: AMD Radeon Graphics (131072 MiB, 130000 MiB free)
  Vulkan0: Radeon 8060S Graphics (RADV GFX1151) (98304 MiB, 90000 MiB free)
"""


def script(path: Path, body: str) -> Path:
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return path


@pytest.mark.parametrize(
    ("printed", "expected"),
    [
        ("version: 0.5.0-dev (build 1, commit 0c1e570)\nbuilt with GNU 12.2.0", ("0.5.0-dev", 1, "0c1e570")),
        ("load_backend: loaded CPU\nversion: 6500 (abcdef12)\nbuilt with cc", ("b6500", 6500, "abcdef12")),
        ("GNU bash, version 5.2.15", None),
        ("", None),
    ],
)
def test_versions_of_both_forms_are_read(printed, expected):
    assert parse_version(printed) == expected


def test_devices_are_read_without_their_memory_of_the_day():
    devices = parse_devices(DEVICES)
    assert devices == (("ROCm0", "AMD Radeon Graphics"), ("Vulkan0", "Radeon 8060S Graphics (RADV GFX1151)"))
    assert backend_of(devices) == "ROCm+Vulkan"


def test_no_device_is_the_cpu():
    assert parse_devices("Available devices:\n  (none)\n") == ()
    assert backend_of(()) == "CPU"


def test_options_are_read_from_the_heads_of_entries_only():
    options = parse_options(HELP)
    assert {"-t", "--threads", "-tb", "--threads-batch", "--perf", "--no-perf", "--api-key-file"} <= options
    assert not {"--timings", "--threads-of-old"} & options


def test_a_path_that_does_not_exist(monkeypatch, tmp_path):
    monkeypatch.setenv("LLAMA_SERVER", str(tmp_path / "nowhere"))
    with pytest.raises(Problem, match="LLAMA_SERVER names .*nowhere, which does not exist"):
        resolve_engine()


def test_a_file_that_is_not_executable(monkeypatch, tmp_path):
    (tmp_path / "llama-server").write_text("no program")
    monkeypatch.setenv("LLAMA_SERVER", str(tmp_path / "llama-server"))
    with pytest.raises(Problem, match="not an executable file"):
        resolve_engine()


def test_a_folder(monkeypatch, tmp_path):
    monkeypatch.setenv("LLAMA_SERVER", str(tmp_path))
    with pytest.raises(Problem, match="not an executable file"):
        resolve_engine()


def test_a_text_file_with_the_right_to_run(monkeypatch, tmp_path):
    path = tmp_path / "llama-server"
    path.write_bytes(b"\x00\x01 no program")
    path.chmod(0o755)
    monkeypatch.setenv("LLAMA_SERVER", str(path))
    with pytest.raises(Problem, match="cannot be run"):
        resolve_engine()


def test_another_program(monkeypatch, tmp_path):
    monkeypatch.setenv("LLAMA_SERVER", str(script(tmp_path / "llama-server", "echo GNU bash, version 5.2")))
    with pytest.raises(Problem, match="no program of llama.cpp; expected a llama-server binary"):
        resolve_engine()


def test_another_program_of_llama_cpp(monkeypatch, tmp_path):
    body = 'echo "version: 0.5.0-dev (build 1, commit 0c1e570)" >&2'
    monkeypatch.setenv("LLAMA_SERVER", str(script(tmp_path / "llama-cli", body)))
    with pytest.raises(Problem, match="another program of llama.cpp"):
        resolve_engine()


def test_a_program_that_fails(monkeypatch, tmp_path):
    body = "echo 'error while loading shared libraries: libhip.so' >&2; exit 127"
    monkeypatch.setenv("LLAMA_SERVER", str(script(tmp_path / "llama-server", body)))
    with pytest.raises(Problem, match=r"exit status 127: error while loading shared libraries: libhip\.so"):
        resolve_engine()


def test_the_users_own_build(monkeypatch, tmp_path):
    body = f"""case $1 in
--version) echo "version: 1.2.3 (build 77, commit feedbee)" ;;
--help) printf '%s\\n' '--api-key-file FNAME   keys' ;;
--list-devices) cat <<'END'
{DEVICES}
END
esac"""
    monkeypatch.setenv("LLAMA_SERVER", str(script(tmp_path / "llama-server", body)))
    found = resolve_engine()
    engine = found.engine
    assert (engine.source, engine.version, engine.build, engine.commit) == ("path", "1.2.3", 77, "feedbee")
    assert engine.backend == "ROCm+Vulkan"
    assert engine.devices[0] == "ROCm0: AMD Radeon Graphics"
    assert str(tmp_path) not in engine.path


def test_no_engine_at_all(monkeypatch, tmp_path):
    monkeypatch.delenv("LLAMA_SERVER", raising=False)
    monkeypatch.setattr("sysconfig.get_path", lambda name: str(tmp_path))
    with pytest.raises(Problem, match="no llama-server: nothing at .*; run `make book`"):
        resolve_engine()


def test_a_running_server_by_address(fake_server):
    acts = {
        "/health": lambda c: c.answer({"status": "ok"}),
        "/props": lambda c: c.answer({"build_info": "b6500-abcdef1"}),
    }
    address = str(fake_server(acts)._http.base_url)
    found = resolve_engine(address, "secret")
    assert found.server is None
    assert (found.engine.source, found.engine.build, found.engine.commit) == ("url", 6500, "abcdef1")
    assert "127.0.0.1" not in repr(found.engine)
    assert "secret" not in repr(found)
    with pytest.raises(Problem, match="out of reach"):
        tool(found, "llama-quantize")


def test_a_server_that_is_still_loading(fake_server):
    loading = {"error": {"code": 503, "message": "Loading model", "type": "unavailable_error"}}
    address = str(fake_server({"/health": lambda c: c.answer(loading, status=503)})._http.base_url)
    with pytest.raises(Problem, match="answered 503: Loading model; wait until it has loaded its model"):
        resolve_engine(address)


def test_tools_lie_beside_the_server(tmp_path):
    server = script(tmp_path / "llama-server", "")
    found = FoundEngine(engine=Engine(source="path", version="1"), server=server, url=None)
    with pytest.raises(Problem, match="no llama-quantize beside"):
        tool(found, "llama-quantize")
    assert tool(found, "llama-server") == server
    assert tool(FoundEngine(found.engine, server, None), script(tmp_path / "llama-bench", "").name).is_file()


def test_settings_in_the_environment_do_not_reach_the_engine(monkeypatch):
    monkeypatch.setenv("LLAMA_ARG_CTX_SIZE", "99")
    monkeypatch.setenv("LLAMA_API_KEY", "secret")
    monkeypatch.setenv("HF_TOKEN", "secret")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    kept = engine_environment()
    assert kept["CUDA_VISIBLE_DEVICES"] == "0"
    assert kept["PATH"] == os.environ["PATH"]
    assert not {"LLAMA_ARG_CTX_SIZE", "LLAMA_API_KEY", "HF_TOKEN"} & kept.keys()
