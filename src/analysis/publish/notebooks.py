"""Running notebooks with papermill so that a failed one never replaces a good page.

A notebook runs in a kernel of its own, spoken to over sockets in a private folder: nothing listens on the network,
and kernels that run side by side cannot take each other's ports.
"""

import logging
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import papermill
from jupyter_client.manager import AsyncKernelManager
from nbclient.exceptions import CellTimeoutError, DeadKernelError
from papermill.exceptions import PapermillExecutionError
from tqdm import tqdm
from traitlets.config import Config

from analysis.publish.ipynb import write_notebook
from analysis.publish.normalize import normalized
from analysis.publish.parameters import declared, values_for
from analysis.records import Problem
from analysis.records.places import local_dir, repo_dir

CELL_TIMEOUT = 3600.0
START_TIMEOUT = 120
READS = frozenset({"data", "first", "result", "sweep"})
"""Parameters that name published tables or what is recorded: a notebook with one of them measures nothing."""
READERS = 2


def notebook_names(folder: Path | None = None) -> list[str]:
    """Return the names of the notebooks, in the order of the chapters: `01_convert`, ..."""
    return sorted(path.stem for path in (folder or repo_dir() / "notebooks").glob("[0-9][0-9]_*.ipynb"))


def find_notebook(name: str, folder: Path | None = None) -> Path:
    """Return the notebook of a chapter; its number alone will do.

    Raises:
        Problem: there is none of that name.
    """
    folder = folder or repo_dir() / "notebooks"
    names = notebook_names(folder)
    found = [known for known in names if name.removesuffix(".ipynb") in (known, known[:2])]
    if not found:
        close = get_close_matches(name, names, n=1)
        raise Problem(
            f"no chapter {name}",
            expected=f"one of {', '.join(names) or 'none'}",
            remedy=f"did you mean {close[0]}?" if close else "",
        )
    return folder / f"{found[0]}.ipynb"


def run_notebook(
    source: Path,
    target: Path,
    parameters: Mapping[str, Any],
    *,
    timeout: float = CELL_TIMEOUT,
    failed: Path | None = None,
    progress: str = "",
) -> Path:
    """Execute a notebook and put it, normalized, in its place; return that place.

    Args:
        source: the notebook with its parameters cell.
        target: where the executed notebook goes. What is there stays there unless this run succeeds.
        parameters: values by name; text is read as the declared type.
        timeout: seconds that one cell may take.
        failed: folder for a partly executed notebook and its kernel's log; `local/failed` by default.
        progress: the name of a progress bar, one step a cell, on stderr; the notebook's own bars show beside it. None
            is drawn without a name.

    Raises:
        Problem: a parameter is unknown or of the wrong type; a cell failed or took too long; the kernel died.
            The partly executed notebook is then `NAME.failed.ipynb`.
    """
    values = values_for(source, parameters)
    failed = failed or local_dir() / "failed"
    failed.mkdir(parents=True, exist_ok=True)
    target.parent.mkdir(parents=True, exist_ok=True)
    partial, log = failed / f"{source.stem}.failed.ipynb", failed / f"{source.stem}.kernel.log"
    try:
        with _failures_said(source, partial, log, timeout):
            executed = _execute(source, partial, values, log=log, timeout=timeout, progress=progress)
    except KeyboardInterrupt:
        partial.unlink(missing_ok=True)
        log.unlink(missing_ok=True)
        # The kernel took the same Ctrl-C. The task that waited for its answer fails with nobody left to read that, and
        # asyncio would report it after the last line of whoever is told of the interruption.
        logging.getLogger("asyncio").disabled = True
        raise
    write_notebook(target, normalized(executed))
    partial.unlink(missing_ok=True)
    log.unlink(missing_ok=True)
    return target


def run_all(
    names: Sequence[str],
    parameters: Mapping[str, Any],
    out_dir: Path,
    *,
    common: Mapping[str, Any] | None = None,
    folder: Path | None = None,
    timeout: float = CELL_TIMEOUT,
) -> list[Path]:
    """Execute notebooks one after the other, each with those parameters that it declares; return their places.

    Those with a parameter of `READS` measure nothing: they come last, two at a time, so that
    nothing runs beside a measurement. A progress bar for each notebook (one for all that only read), and the bars of
    its own, are drawn on stderr.

    Args:
        names: the chapters, in order.
        parameters: values by name; each must be declared by at least one of the notebooks.
        out_dir: where the executed notebooks go.
        common: values for whichever notebooks declare them, if any; `parameters` go before them.
        folder: where the notebooks lie; the checkout's by default.
        timeout: seconds that one cell may take.

    Raises:
        Problem: as `run_notebook`, or no notebook declares one of the parameters. Notebooks that ran before stay.
    """
    sources = [find_notebook(name, folder) for name in names]
    known = {source: declared(source) for source in sources}
    for name in parameters:
        if not any(name in names_of for names_of in known.values()):
            every = sorted({name for names_of in known.values() for name in names_of})
            close = get_close_matches(name, every, n=1)
            raise Problem(
                f"no chapter has a parameter {name}",
                expected=f"one of {', '.join(every) or 'none'}",
                remedy=f"did you mean {close[0]}?" if close else "",
            )
    given = {**(common or {}), **parameters}
    own = {source: {name: value for name, value in given.items() if name in known[source]} for source in sources}
    readers = [source for source in sources if READS & set(known[source])]
    measuring = [source for source in sources if source not in readers]
    for number, source in enumerate(measuring, 1):
        bar = f"{number}/{len(sources)} {source.stem}"
        run_notebook(source, out_dir / source.name, own[source], timeout=timeout, progress=bar)

    def read(source: Path) -> Path:
        return run_notebook(source, out_dir / source.name, own[source], timeout=timeout)

    with _quiet("papermill"), ThreadPoolExecutor(READERS) as pool:
        try:
            done = pool.map(read, readers)
            list(tqdm(done, "chapters that only read", len(readers), unit="chapter", disable=not readers))
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return [out_dir / source.name for source in sources]


class _Terminal:
    """What a notebook prints on stderr, shown while it runs: its progress bars, without control sequences.

    Left out is tqdm's advice to install widgets, which a notebook without a browser cannot show.
    """

    def write(self, text: str) -> None:
        if "IProgress not found" in text:
            return
        sys.stderr.write("".join(char for char in text if char.isprintable() or char in "\r\n"))

    def flush(self) -> None:
        sys.stderr.flush()


class _LoggedKernelManager(AsyncKernelManager):
    """A kernel whose own stderr goes to a file: it says why a kernel died, and is noise otherwise."""

    log_file = ""

    async def start_kernel(self, **kwargs: Any) -> None:  # type: ignore[override]  # the manager's own is async too
        with Path(self.log_file).open("wb") as log:
            await super().start_kernel(**kwargs, stderr=log)


def _execute(source: Path, partial: Path, values: dict[str, Any], *, log: Path, timeout: float, progress: str) -> Any:
    manager = type("_KernelManager", (_LoggedKernelManager,), {"log_file": str(log)})
    with tempfile.TemporaryDirectory(prefix="specbook-") as sockets, _quiet("papermill"):
        return papermill.execute_notebook(
            str(source),
            str(partial),
            values,
            kernel_name="python3",
            cwd=str(source.parent),
            progress_bar={"desc": progress, "dynamic_ncols": True} if progress else False,
            stderr_file=_Terminal() if progress else None,
            start_timeout=START_TIMEOUT,
            execution_timeout=timeout,
            kernel_manager_class=manager,
            config=Config({"KernelManager": {"transport": "ipc", "ip": f"{sockets}/kernel"}}),
        )


@contextmanager
def _failures_said(source: Path, partial: Path, log: Path, timeout: float) -> Iterator[None]:
    """Turn the ways in which a notebook can fail into one line each."""
    kept = f"the partly executed notebook is {partial}"
    try:
        yield
    except PapermillExecutionError as error:
        said = str(error.evalue).strip() or "no message"
        cause = said if error.ename == "Problem" else f"{error.ename}: {said.splitlines()[-1]}"
        log.unlink(missing_ok=True)
        raise Problem(f"{source.stem} failed in cell {error.exec_count}: {cause}", remedy=kept) from None
    except CellTimeoutError:
        log.unlink(missing_ok=True)
        raise Problem(
            f"a cell of {source.stem} took more than {timeout:g} s", remedy=f"{kept}; the kernel was stopped"
        ) from None
    except DeadKernelError:
        last = _last_line(log)
        raise Problem(
            f"the kernel of {source.stem} died" + (f": {last}" if last else ", perhaps for lack of memory"),
            remedy=f"{kept}; its log is {log}",
        ) from None


def _last_line(log: Path) -> str:
    lines = [line for line in log.read_text(errors="replace").splitlines() if line.strip()] if log.exists() else []
    return lines[-1][:200] if lines else ""


@contextmanager
def _quiet(name: str) -> Iterator[None]:
    logger = logging.getLogger(name)
    before, logger.disabled = logger.disabled, True
    try:
        yield
    finally:
        logger.disabled = before
