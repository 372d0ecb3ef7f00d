"""The notebooks as they are, on the smallest grid: measured, built into a book, shown again from the recorded run."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import nbformat
import psutil
import pytest

from analysis.measure.study import open_study
from analysis.publish.build import committed_book
from analysis.publish.notebooks import run_all
from analysis.records.places import repo_dir

pytestmark = pytest.mark.engine
BIN = Path(sys.executable).parent
CHAPTERS = [
    "01_convert",
    "02_launch",
    "03_acceptance",
    "04_depth_regime",
    "05_economics",
    "06_exactness",
    "07_failures",
    "08_two_machines",
    "09_sweeps",
]
# The cells of the second chapter that show times, memory or the state of the host.
MEASURED = {
    "page.doctor_table()",
    "page.server_table()",
    "page.steps_chart()",
    "page.steps_table()",
    "page.sentence()",
}


def run(local: Path, *command: str) -> subprocess.CompletedProcess[str]:
    """Run a command of the environment with runs and pages in a folder of its own."""
    environment = os.environ | {"SPECBOOK_LOCAL": str(local), "PYTHONPATH": str(repo_dir() / "src")}
    return subprocess.run(
        [str(BIN / command[0]), *command[1:]],
        cwd=repo_dir(),
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A local book, measured with the profile `smoke`."""
    folder = tmp_path_factory.mktemp("local")
    done = run(folder, "specbook", "book", "--profile", "smoke")
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.split()[-1].endswith("intro.html")
    return folder


def chapter(local: Path, name: str) -> nbformat.NotebookNode:
    return nbformat.read(local / "book" / "chapters" / f"{name}.ipynb", as_version=4)


def shown(notebook: nbformat.NotebookNode) -> str:
    """Everything that the cells of a chapter show, as one text."""
    data = [output.get("data", {}) for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]
    return "\n".join(str(part) for bundle in data for part in bundle.values())


def tables(notebook: nbformat.NotebookNode) -> list[str]:
    """The tables and sentences of a chapter, in order."""
    outputs = [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]
    return [output.data["text/markdown"] for output in outputs if "text/markdown" in output.get("data", {})]


@pytest.mark.parametrize("name", CHAPTERS)
def test_every_chapter_ran_to_its_end_and_became_a_page(local: Path, name: str):
    cells = [cell for cell in chapter(local, name).cells if cell.cell_type == "code"]
    assert all(cell.execution_count for cell in cells)
    assert not [output for cell in cells for output in cell.outputs if output.output_type == "error"]
    page = local / "book" / "_build" / "html" / "chapters" / f"{name}.html"
    assert page.stat().st_size > 10_000


@pytest.mark.parametrize("name", CHAPTERS)
def test_no_chapter_names_this_machine(local: Path, name: str):
    text = nbformat.writes(chapter(local, name))
    for word in (str(Path.home()) + "/", str(repo_dir()), str(local)):
        assert word not in text


def test_a_measured_chapter_names_the_run_its_numbers_come_from(local: Path):
    text = shown(chapter(local, "05_economics"))
    runs = [folder.name for folder in (local / "runs").iterdir() if folder.name in text]
    assert len(runs) == 1
    study = open_study(str(local / "runs" / runs[0]))
    assert f"{len(study.samples)} samples" in text
    assert {sample.leg for sample in study.samples} == {"raw", "drafted"}


def test_the_acceptance_chapters_share_one_run(local: Path):
    named = [
        {folder.name for folder in (local / "runs").iterdir() if folder.name in shown(chapter(local, name))}
        for name in ("03_acceptance", "04_depth_regime")
    ]
    assert named[0] == named[1]
    assert len(named[0]) == 1


def test_papermill_alone_shows_a_recorded_run(local: Path, tmp_path: Path):
    (recorded,) = [f for f in (local / "runs").iterdir() if f.name in shown(chapter(local, "04_depth_regime"))]
    out = tmp_path / "out.ipynb"
    before = (recorded / "samples.jsonl").read_bytes()
    done = run(local, "papermill", "notebooks/04_depth_regime.ipynb", str(out), "-p", "run", str(recorded))
    assert done.returncode == 0, done.stderr[-2000:]
    assert tables(nbformat.read(out, as_version=4)) == tables(chapter(local, "04_depth_regime"))
    assert (recorded / "samples.jsonl").read_bytes() == before


@pytest.mark.parametrize(("name", "measured"), [("01_convert", set()), ("02_launch", MEASURED)])
def test_two_runs_differ_only_in_what_was_measured(
    local: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, measured: set[str]
):
    monkeypatch.setenv("SPECBOOK_LOCAL", str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", str(repo_dir() / "src"))
    (again,) = run_all([name], {}, tmp_path, common={"profile": "smoke"})
    pages = [chapter(local, name), nbformat.read(again, as_version=4)]
    assert pages[0].metadata == pages[1].metadata
    for before, after in zip(*(page.cells for page in pages), strict=True):
        if before.source in measured:
            assert before.outputs
            before.outputs = after.outputs = []
        assert before == after


def test_an_unknown_pair_is_one_clear_line_and_the_old_page_stays(local: Path):
    before = (local / "book" / "chapters" / "01_convert.ipynb").read_bytes()
    done = run(local, "specbook", "chapter", "01_convert", "-p", "pair", "smollm2-ngrm")
    assert done.returncode == 1
    assert "smollm2-ngrm" in done.stderr.splitlines()[-1]
    assert "smollm2-ngram" in done.stderr.splitlines()[-1]
    assert (local / "book" / "chapters" / "01_convert.ipynb").read_bytes() == before


def test_ctrl_c_in_the_middle_of_a_grid_stops_the_server_and_keeps_the_journal_and_the_page(tmp_path: Path):
    environment = os.environ | {"SPECBOOK_LOCAL": str(tmp_path), "PYTHONPATH": str(repo_dir() / "src")}
    process = subprocess.Popen(
        [str(BIN / "specbook"), "chapter", "04_depth_regime", "--profile", "smoke"],
        cwd=repo_dir(),
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    while sum(journal.read_bytes().count(b"\n") for journal in tmp_path.glob("runs/*/samples.jsonl")) < 2:
        assert process.poll() is None, process.stderr.read()
        time.sleep(0.05)
    servers = [child for child in psutil.Process(process.pid).children(recursive=True) if "llama" in child.name()]
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does
    said = process.communicate(timeout=180)[1]
    assert process.returncode == 130
    assert said.splitlines()[-1] == "specbook: interrupted; what was recorded is whole, run again to resume"
    psutil.wait_procs(servers, timeout=60)
    assert servers
    assert not any(server.is_running() and server.status() != psutil.STATUS_ZOMBIE for server in servers)
    (run,) = (tmp_path / "runs").iterdir()
    assert len(open_study(str(run)).samples) >= 2
    page = Path("chapters") / "04_depth_regime.ipynb"
    assert (tmp_path / "book" / page).read_bytes() == (committed_book() / page).read_bytes()
