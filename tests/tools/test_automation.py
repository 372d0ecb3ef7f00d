"""What runs elsewhere (GitHub Actions, Binder) names only commands, files and parameters that are here."""

import os
import re
import shlex
from pathlib import Path

import pytest
import yaml

from analysis.publish.parameters import values_for
from analysis.records.places import repo_dir

ROOT = repo_dir()
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def steps(workflow: Path) -> list[dict]:
    jobs = yaml.safe_load(workflow.read_text())["jobs"].values()
    return [step for job in jobs for step in job["steps"]]


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.stem)
def test_a_workflow_pins_its_actions_and_may_do_no_more_than_it_needs(workflow):
    data = yaml.safe_load(workflow.read_text())
    assert data["permissions"] == {"contents": "read"}
    uses = [step["uses"] for step in steps(workflow) if "uses" in step]
    assert uses
    assert all(re.fullmatch(r"actions/[\w-]+@v\d+", name) for name in uses), "actions of GitHub itself, with a version"
    assert all(job["timeout-minutes"] for job in data["jobs"].values())


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.stem)
def test_a_workflow_names_targets_that_the_makefile_has(workflow):
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = set(re.findall(r"\bmake ([a-z]+)", " ".join(step.get("run", "") for step in steps(workflow))))
    assert named
    assert named <= targets


def test_the_pipelines_papermill_line_is_one_that_the_notebook_takes():
    runs = [
        step["run"] for step in steps(ROOT / ".github/workflows/pipeline.yml") if "papermill" in step.get("run", "")
    ]
    (words,) = map(shlex.split, runs)
    assert words[0] == ".venv/bin/papermill"
    given = {words[i + 1]: words[i + 2] for i, word in enumerate(words) if word == "-p"}
    assert values_for(ROOT / words[1], given) == given
    assert f"papermill {' '.join(words[1:])}" in (ROOT / "book/rerun.md").read_text(), "the page shows the same line"


def test_the_site_is_built_from_what_is_committed():
    said = " ".join(step.get("run", "") for step in steps(ROOT / ".github/workflows/site.yml"))
    assert "jupyter-book build -W" in said
    assert "specbook" not in said, "nothing is measured"


def test_binder_makes_the_environment_that_make_env_makes():
    build = ROOT / ".binder" / "postBuild"
    assert os.access(build, os.X_OK)
    assert "tools/make_env.py" in build.read_text()
    assert (ROOT / ".binder" / "runtime.txt").read_text().strip() == "python-3.11"
    assert {"cmake", "git"} <= set((ROOT / ".binder" / "apt.txt").read_text().split())
