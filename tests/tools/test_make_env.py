"""What an empty machine lacks is said in one line, before anything is installed."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "tools" / "make_env.py"


def make_env(tmp_path: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run tools/make_env.py towards an environment of its own."""
    variables = {key: value for key, value in os.environ.items() if not key.startswith(("PIP_", "CXX", "CMAKE_ARGS"))}
    variables |= {"SPECBOOK_VENV": str(tmp_path / "venv")} | environment
    return subprocess.run([sys.executable, SCRIPT], env=variables, capture_output=True, text=True, check=False)


def only(tmp_path: Path, *tools: str) -> str:
    """Return a PATH on which nothing but the named tools stands."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for tool in tools:
        (folder / tool).write_text("#!/bin/sh\n")
        (folder / tool).chmod(0o755)
    return str(folder)


@pytest.mark.parametrize(
    ("there", "missing"),
    [
        (("cmake", "git"), r"no C\+\+ compiler .* install g\+\+"),
        (("g++", "git"), "no cmake on the PATH"),
        (("clang++", "cmake"), "no git on the PATH"),
    ],
)
def test_a_missing_tool_is_one_line(tmp_path: Path, there: tuple[str, ...], missing: str):
    done = make_env(tmp_path, PATH=only(tmp_path, *there))
    assert done.returncode == 1
    assert re.fullmatch(f"make env: .*{missing}.*\n", done.stderr)
    assert not (tmp_path / "venv").exists()


def test_a_compiler_that_is_named_but_absent_is_said(tmp_path: Path):
    done = make_env(tmp_path, CXX="icpx-99")
    assert done.returncode == 1
    assert done.stderr.startswith("make env: CXX names icpx-99, which is not there")


def test_no_network_is_one_line_after_pips_own(tmp_path: Path):
    closed = "http://127.0.0.1:9/simple"
    unreachable = {
        "PIP_INDEX_URL": closed,
        "PIP_CONFIG_FILE": os.devnull,
        "PIP_RETRIES": "0",
        "PIP_NO_CACHE_DIR": "1",
    }
    done = make_env(tmp_path, **unreachable)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith("make env: build tools failed")
    assert not (tmp_path / "venv" / "specbook.stamp").exists()


def test_an_environment_that_is_up_to_date_is_left_alone(tmp_path: Path):
    sys.path.insert(0, str(SCRIPT.parent))
    import make_env as script

    (tmp_path / "venv").mkdir()
    (tmp_path / "venv" / "specbook.stamp").write_text(script.fingerprint())
    done = make_env(tmp_path, PATH=only(tmp_path))
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_other_cmake_args_ask_for_another_build(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    sys.path.insert(0, str(SCRIPT.parent))
    import make_env as script

    monkeypatch.delenv("CMAKE_ARGS", raising=False)
    plain = script.fingerprint()
    engine_of = {step[0]: step[1] for step in script.install_steps(tmp_path)}
    monkeypatch.setenv("CMAKE_ARGS", "-DGGML_CUDA=on")
    assert script.fingerprint() != plain
    changed = {step[0]: step[1] for step in script.install_steps(tmp_path)}
    differing = [name for name in changed if changed[name] != engine_of[name]]
    assert [name.partition(",")[0] for name in differing] == ["the engine"]
    assert "--no-cache-dir" in changed[differing[0]]


def test_an_engine_that_pip_kept_from_other_options_is_dropped_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    sys.path.insert(0, str(SCRIPT.parent))
    import make_env as script

    monkeypatch.setenv("PIP_CACHE_DIR", str(tmp_path / "cache"))
    kept = tmp_path / "cache" / "wheels" / "ab" / "llama_cpp_python-0.3.36-py3-none-linux_x86_64.whl"
    kept.parent.mkdir(parents=True)
    kept.touch()
    environment = Path(sys.prefix)
    assert script.drop_engine_built_otherwise(environment)
    assert not kept.exists()
    kept.parent.mkdir(parents=True, exist_ok=True)
    kept.touch()
    assert not script.drop_engine_built_otherwise(environment)
    assert kept.exists()
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "tools").mkdir()
    (tmp_path / "other" / "tools" / "engine.cmake").write_text("# other options")
    monkeypatch.setattr(script, "ROOT", tmp_path / "other")
    assert script.drop_engine_built_otherwise(environment)
    assert not kept.exists()
