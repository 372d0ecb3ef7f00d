"""The locks pin everything, by hash and without an address; the conda file follows pyproject.toml."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

ROOT = Path(__file__).resolve().parents[2]
LOCKS = ("requirements.lock", "requirements-build.lock")


def entries(lock: str) -> dict[str, str]:
    text = (ROOT / lock).read_text()
    blocks = re.split(r"(?m)^(?=[A-Za-z0-9])", text)
    return {block.split("==")[0].split("[")[0]: block for block in blocks if "==" in block}


@pytest.mark.parametrize("lock", LOCKS)
def test_every_entry_has_a_hash_and_no_entry_an_address(lock: str):
    assert "://" not in (ROOT / lock).read_text()
    for name, block in entries(lock).items():
        assert "--hash=sha256:" in block, name


def test_the_lock_satisfies_pyproject():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = [*project["dependencies"], *project["optional-dependencies"]["test"]]
    text = (ROOT / "requirements.lock").read_text()
    for requirement in map(Requirement, wanted):
        name = re.sub(r"[-_.]+", "-", requirement.name).lower()
        versions = re.findall(rf"(?m)^{re.escape(name)}(?:\[[^]]*\])?==([^ ;]+)", text)
        assert versions, f"{name} is not locked: run `make lock`"
        assert all(Version(v) in requirement.specifier for v in versions), f"{name} {versions}: run `make lock`"


def test_one_engine_gives_server_tools_and_binding():
    engine = entries("requirements.lock")["llama-cpp-python"]
    for option in ("LLAMA_BUILD_SERVER=ON", "LLAMA_BUILD_TOOLS=ON", "LLAMA_TOOLS_INSTALL=ON", "LLAVA_BUILD=OFF"):
        assert f'--config-settings="cmake.define.{option}"' in engine


def test_environment_yml_follows_pyproject(tmp_path: Path):
    written = tmp_path / "environment.yml"
    subprocess.run([sys.executable, ROOT / "tools" / "conda.py", written], check=True, capture_output=True)
    assert written.read_text() == (ROOT / "environment.yml").read_text(), "run `make conda`"
