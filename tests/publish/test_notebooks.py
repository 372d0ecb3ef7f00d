"""The driver: real kernels; a notebook that fails, in any way, leaves the page that was there."""

import asyncio
import gc
import logging
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import nbformat
import pytest
from nbclient.exceptions import DeadKernelError

from analysis.publish.notebooks import find_notebook, run_all, run_notebook
from analysis.records import Problem

OLD_PAGE = "the page that was there"


@pytest.fixture
def target(tmp_path: Path) -> Path:
    page = tmp_path / "chapters" / "page.ipynb"
    page.parent.mkdir()
    page.write_text(OLD_PAGE)
    return page


def failure(notebook: Path, target: Path, *, timeout: float = 60) -> str:
    with pytest.raises(Problem) as problem:
        run_notebook(notebook, target, {}, timeout=timeout)
    assert target.read_text() == OLD_PAGE
    assert [path.name for path in target.parent.iterdir()] == [target.name]
    return str(problem.value)


def test_a_good_notebook_takes_its_place(notebooks: Path, target: Path, local: Path) -> None:
    run_notebook(notebooks / "01_good.ipynb", target, {"depth": "2048", "regime": "recall"})
    page = nbformat.read(target, 4)
    parameters, injected, first, second = page.cells[1:]
    assert parameters.metadata.tags == ["parameters"]
    assert injected.metadata.tags == ["injected-parameters", "hide-input"]
    assert first.outputs[0].text == "2048 recall [256] 1.0 True None\n"
    assert second.outputs[0].data["text/plain"] == "2049"
    assert [cell.execution_count for cell in page.cells[1:]] == [1, 2, 3, 4]
    assert list((local / "failed").iterdir()) == []


def test_two_runs_are_the_same_to_the_byte(notebooks: Path, tmp_path: Path) -> None:
    pages = [run_notebook(notebooks / "06_messy.ipynb", tmp_path / f"{i}.ipynb", {}) for i in range(2)]
    assert pages[0].read_bytes() == pages[1].read_bytes()


def test_noise_of_the_machine_is_not_kept(notebooks: Path, tmp_path: Path) -> None:
    page = nbformat.read(run_notebook(notebooks / "06_messy.ipynb", tmp_path / "a.ipynb", {}), 4)
    _, _, _, streams, shown, places = page.cells
    assert [(output.name, output.text) for output in streams.outputs] == [("stderr", "a warning that stays\n")]
    plain, rich, own, twice = [output.data for output in shown.outputs]
    assert plain["text/plain"] == "<object at 0x…>"
    assert rich["text/html"] == "<b>rich</b>"
    assert dict(own) == {"text/html": "<i>shown</i>"}
    assert dict(twice) == {"text/markdown": "kept once"}
    assert places.outputs[0].text == "$HOME/models $TMP/x\n"
    assert [cell.id for cell in page.cells] == [f"cell-{i:02d}" for i in range(6)]
    assert set(page.metadata) == {"kernelspec", "language_info"}


def test_the_last_line_of_the_traceback_becomes_the_problem(notebooks: Path, target: Path, local: Path) -> None:
    kept = local / "failed" / "02_raises.failed.ipynb"
    assert failure(notebooks / "02_raises.ipynb", target) == (
        f"02_raises failed in cell 3: ValueError: second line: no such regime; the partly executed notebook is {kept}"
    )
    outputs = [cell.outputs for cell in nbformat.read(kept, 4).cells if cell.cell_type == "code"]
    assert outputs[1][0].text == "before\n"


def test_a_problem_is_said_as_it_is(notebooks: Path, target: Path) -> None:
    assert failure(notebooks / "03_raises_problem.ipynb", target).startswith(
        "03_raises_problem failed in cell 2: depth 9000; expected at most 4096; choose a smaller depth; "
    )


def test_a_killed_kernel_is_noticed(notebooks: Path, target: Path, local: Path) -> None:
    assert failure(notebooks / "04_kills_its_kernel.ipynb", target).startswith("the kernel of 04_kills_its_kernel died")
    assert (local / "failed" / "04_kills_its_kernel.kernel.log").exists()


def test_a_cell_that_hangs_is_stopped(notebooks: Path, target: Path) -> None:
    assert failure(notebooks / "05_hangs.ipynb", target, timeout=1).startswith("a cell of 05_hangs took more than 1 s")


def test_a_misspelt_parameter_starts_no_kernel(notebooks: Path, target: Path, local: Path) -> None:
    with pytest.raises(Problem, match="did you mean depth"):
        run_notebook(notebooks / "01_good.ipynb", target, {"dept": 1})
    assert target.read_text() == OLD_PAGE
    assert not local.exists()


def test_progress_of_a_notebook_is_seen_while_it_runs(
    notebooks: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    run_all(["06_messy"], {}, tmp_path / "out", folder=notebooks)
    seen = capfd.readouterr().err
    assert "1/1 06_messy: 100%" in seen  # cells of the notebook
    assert "3/3 [" in seen  # steps of the loop in one of them
    assert "\x1b" not in seen


def test_each_notebook_gets_the_parameters_it_declares(notebooks: Path, tmp_path: Path) -> None:
    common = {"regime": "recall", "profile": "declared by none of them"}
    names = ["08_no_parameters_cell", "01"]
    written = run_all(names, {"depth": 7}, tmp_path / "out", common=common, folder=notebooks)
    assert [path.name for path in written] == ["08_no_parameters_cell.ipynb", "01_good.ipynb"]
    assert nbformat.read(written[1], 4).cells[3].outputs[0].text.startswith("7 recall ")


def reader(folder: Path, name: str, code: str) -> None:
    parameters = nbformat.v4.new_code_cell('data: str = ""  # folder with tables', metadata={"tags": ["parameters"]})
    cells = [parameters, nbformat.v4.new_code_cell(code)]
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3"}, "language_info": {"name": "python"}}
    nbformat.write(nbformat.v4.new_notebook(cells=cells, metadata=kernel), folder / f"{name}.ipynb")


def test_chapters_that_only_read_run_side_by_side_and_last(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    meet = "import pathlib, time\nme, other = {!r}\npathlib.Path(me).touch()\nend = time.monotonic() + 60\n"
    meet += "while not pathlib.Path(other).exists() and time.monotonic() < end: time.sleep(0.1)\n"
    meet += "assert pathlib.Path(other).exists(), 'nobody ran beside me'"
    first, second = (str(tmp_path / name) for name in ("first", "second"))
    reader(tmp_path, "10_first", meet.format((first, second)))
    reader(tmp_path, "11_second", meet.format((second, first)))
    written = run_all(["10_first", "11_second"], {}, tmp_path / "out", folder=tmp_path)
    assert [path.name for path in written] == ["10_first.ipynb", "11_second.ipynb"]
    assert all(path.exists() for path in written)
    assert "chapters that only read: 100%" in capfd.readouterr().err


def test_a_reading_chapter_that_fails_says_so(tmp_path: Path) -> None:
    reader(tmp_path, "10_broken", "1 / 0")
    with pytest.raises(Problem, match="10_broken failed in cell 2: ZeroDivisionError"):
        run_all(["10_broken"], {}, tmp_path / "out", folder=tmp_path)
    assert not (tmp_path / "out" / "10_broken.ipynb").exists()


def test_a_parameter_that_no_notebook_declares_stops_before_the_first(notebooks: Path, tmp_path: Path) -> None:
    with pytest.raises(Problem, match="no chapter has a parameter dpeth; .*; did you mean depth"):
        run_all(["01_good"], {"dpeth": 7}, tmp_path / "out", folder=notebooks)
    assert not (tmp_path / "out").exists()


def test_an_unknown_chapter_is_named_with_the_closest(notebooks: Path) -> None:
    with pytest.raises(Problem, match=r"no chapter 02_raise; expected one of 01_good, .*; did you mean 02_raises\?"):
        find_notebook("02_raise", notebooks)


def test_an_interrupt_ends_the_kernel_and_leaves_the_page(notebooks: Path, target: Path, local: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from analysis.publish.notebooks import run_notebook\n"
        "try: run_notebook(Path(sys.argv[1]), Path(sys.argv[2]), {})\n"
        "except KeyboardInterrupt: sys.exit(130)"
    )
    argv = [sys.executable, "-c", code, str(notebooks / "05_hangs.ipynb"), str(target)]
    with subprocess.Popen(argv, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}) as driver:
        partial = local / "failed" / "05_hangs.failed.ipynb"
        while not (
            partial.exists() and "time.sleep" in partial.read_text() and '"execution_count": 1' in partial.read_text()
        ):
            assert driver.poll() is None
            time.sleep(0.1)
        driver.send_signal(signal.SIGINT)
        assert driver.wait(timeout=60) == 130
    assert target.read_text() == OLD_PAGE
    assert not partial.exists()


def test_what_an_interrupt_left_unread_is_not_reported_after_it(
    notebooks: Path, target: Path, local: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def answer() -> None:
        raise DeadKernelError("Kernel died")

    def interrupted(*_: object, **__: object) -> None:
        task = asyncio.new_event_loop().create_task(answer())
        task.get_loop().run_until_complete(asyncio.wait([task]))
        left.append(task)
        raise KeyboardInterrupt

    left: list[object] = []
    monkeypatch.setattr("analysis.publish.notebooks._execute", interrupted)
    monkeypatch.setattr(logging.getLogger("asyncio"), "disabled", False)
    with pytest.raises(KeyboardInterrupt):
        run_notebook(notebooks / "01_good.ipynb", target, {})
    left.clear()
    gc.collect()
    assert not caplog.records
