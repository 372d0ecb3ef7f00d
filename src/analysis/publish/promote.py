"""From this machine's own book to the committed one: what is checked before a chapter or a run is taken over."""

import filecmp
import json
import re
import shutil
import socket
from collections.abc import Iterable, Mapping
from pathlib import Path
from urllib.parse import unquote

from analysis.gates.prompts import PUBLISHED_PROMPTS
from analysis.publish.build import CHAPTERS, check_executed
from analysis.records import Problem
from analysis.records.places import cache_dir, repo_dir
from analysis.records.store import RunDir

MOST_BYTES = 3_000_000  # of one committed run

_SECRETS = (
    ("an access token", re.compile(r"\b(?:hf_|ghp_|gho_|github_pat_|glpat-|sk-)[A-Za-z0-9_-]{16,}")),
    ("a private key", re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----")),
    ("an API key", re.compile(r"(?:--api-key[ =]|\bBearer\s+)(?!\$KEY)[A-Za-z0-9._~+/-]{8,}")),
)
_HOMES = re.compile(r"/(?:home|Users)/[A-Za-z0-9._-]+/")
_TEMPORARY = re.compile(r"(?<![\w$])/(?:var/)?tmp/[^\s\"]+")


def promote(
    local_book: Path,
    book: Path,
    *,
    local_runs: Path,
    runs: Path,
    names: Iterable[str] | None = None,
    dry_run: bool = False,
) -> list[Path]:
    """Copy local chapters, and the local runs that they name, into the committed book; return what was written.

    Nothing is copied unless everything passes. A run that is committed already is left as it is.

    Args:
        local_book: this machine's book.
        book: the committed book.
        local_runs: where this machine's runs lie.
        runs: where committed runs lie.
        names: the chapters to take; all by default.
        dry_run: check, and return what would be written, without writing it.

    Raises:
        Problem: there is no such chapter; one was not executed or holds an error; one names this machine's folders,
            its host or a key; a run is too large, has a cell with few prompts, or differs from the committed run of
            the same name.
    """
    known = {path.stem: path for path in sorted((local_book / CHAPTERS).glob("*.ipynb"))}
    wanted = list(known if names is None else names)
    absent = [name for name in wanted if name not in known]
    if absent or not wanted:
        raise Problem(
            f"{local_book} has no chapter {absent[0]}" if absent else f"{local_book} has no chapters",
            expected=f"one of {', '.join(known)}" if known else "",
            remedy="make book measures them",
        )
    chapters = [known[name] for name in wanted]
    shown: dict[str, Path] = {}
    for chapter in chapters:
        check_executed(chapter)
        text = chapter.read_text(encoding="utf-8")
        check_anonymous(text, where=chapter.name)
        shown |= {run.name: run for run in named_runs(text, local_runs)}
    new_runs = [run for run in shown.values() if check_run(run, runs / run.name)]
    if not dry_run:
        _write(chapters, book / CHAPTERS, new_runs, runs)
    return [runs / run.name for run in new_runs] + [book / CHAPTERS / chapter.name for chapter in chapters]


def _write(chapters: Iterable[Path], pages: Path, new_runs: Iterable[Path], runs: Path) -> None:
    for run in new_runs:
        _copy_run(run, runs / run.name)
    pages.mkdir(exist_ok=True)
    for chapter in chapters:
        shutil.copy2(chapter, pages / chapter.name)


def named_runs(text: str, folder: Path) -> list[Path]:
    """Return the runs of a folder whose names stand in the text."""
    runs = sorted(path.parent for path in folder.glob("*/run.json"))
    return [run for run in runs if re.search(rf"(?<![\w.-]){re.escape(run.name)}(?![\w-])", text)]


def check_anonymous(text: str, *, where: str) -> None:
    """Check that a text names neither this machine's folders and host nor a secret.

    Raises:
        Problem: it does; the message says what, and does not repeat a secret.
    """
    plain = unquote(text)
    for kind, secret in _SECRETS:
        if secret.search(plain):
            raise Problem(f"{where} holds {kind}", remedy="revoke it, then measure again without it in the parameters")
    home = Path.home()
    folders = [str(path) for path in (repo_dir(), cache_dir(), home) if len(path.parts) > 1]
    found = next((folder for folder in folders if f"{folder}/" in plain), None) or _first(_HOMES, plain)
    if found:
        raise Problem(f"{where} names the folder {found}", expected="paths relative to $REPO or $CACHE")
    host = socket.gethostname()
    if len(host) > 3 and re.search(rf"(?<![\w.-]){re.escape(host)}(?![\w-])", plain):
        raise Problem(f"{where} names this host", expected="no name of host or user")


def check_run(run: Path, committed: Path) -> bool:
    """Return whether a run is to be copied; one that is committed already, the same to the byte, is not.

    Raises:
        Problem: it names the machine, is too large, measured a cell with too few prompts, or differs from the
            committed one.
    """
    files = [path for path in sorted(run.iterdir()) if path.is_file() and not path.name.startswith(".")]
    check_traces(run)
    if committed.exists():
        same = all(
            (committed / path.name).exists() and filecmp.cmp(path, committed / path.name, shallow=False)
            for path in files
        )
        if not same:
            raise Problem(
                f"{run.name} is committed already and differs",
                expected="recorded runs that never change",
                remedy="give the new run another name",
            )
        return False
    size = sum(path.stat().st_size for path in files)
    if size > MOST_BYTES:
        raise Problem(
            f"{run.name} has {size:,} bytes",
            expected=f"at most {MOST_BYTES:,} in a committed run",
            remedy="measure fewer prompts or tokens for the committed book",
        )
    check_journal(run)
    return True


def check_traces(run: Path, *, committed: bool = False) -> None:
    """Check that a run's records name neither the machine's folders and host, nor a temporary file, nor an address.

    Args:
        run: the run's directory.
        committed: it lies among the committed runs, which never change; some name a temporary file, from before this
            was looked at.

    Raises:
        Problem: one does.
    """
    for name in ("run.json", "servers.jsonl"):  # samples hold what the model emitted, which may look like anything
        if (run / name).is_file():
            text = (run / name).read_text(encoding="utf-8", errors="replace")
            check_anonymous(text, where=f"{run.name}/{name}")
            if committed:
                continue
            if temporary := _first(_TEMPORARY, text):
                raise Problem(f"{run.name}/{name} names {temporary}", expected="no temporary file in a committed run")
            if "://" in text:
                raise Problem(f"{run.name}/{name} names an address", expected="$URL in its place")


def check_journal(run: Path) -> None:
    """Check that a run's journal is whole, and that every cell that it began has as many prompts as it needs.

    Raises:
        Problem: one has not, or a line of the journal is no sample: a kill tore it, or the run is being written.
    """
    prompts: dict[str, set[str]] = {}
    journal = run / "samples.jsonl"
    for number, line in enumerate(journal.read_bytes().splitlines() if journal.exists() else (), 1):
        try:
            sample = json.loads(line)
        except (ValueError, RecursionError):
            raise Problem(
                f"{run.name}/{journal.name}:{number} is not JSON", expected="a whole run", remedy="resume the run"
            ) from None
        if "cell" in sample:
            prompts.setdefault(sample["cell"], set()).add(sample["prompt_id"])
    check_prompts(run, prompts)


def check_prompts(run: Path, prompts: Mapping[str, set[str]]) -> None:
    """Check that every cell that a run began was measured with as many prompts as a published one needs.

    Args:
        run: the run's directory.
        prompts: the prompts of each cell, by its id.

    Raises:
        Problem: one was not.
    """
    few = [cell for cell, measured in prompts.items() if len(measured) < PUBLISHED_PROMPTS]
    if few:
        names, count = _names_of_cells(run), len(prompts[few[0]])
        more = f" (and {len(few) - 1} other cells with too few)" if len(few) > 1 else ""
        raise Problem(
            f"{names.get(few[0], f'cell {few[0]}')} of {run.name} was measured with {count} "
            f"prompt{'s' * (count != 1)}{more}",
            expected=f"at least {PUBLISHED_PROMPTS} in a committed run",
            remedy="finish it, or measure a larger profile",
        )


def _names_of_cells(run: Path) -> dict[str, str]:
    """Return what a reader knows the cells by; nothing where the run cannot be read, which other checks say."""
    try:
        cells = RunDir.open(run).run.cells
    except Problem:
        return {}
    return {cell.id: f"{cell.regime} at {cell.depth} ({cell.spec_type}, cell {cell.id})" for cell in cells}


def _copy_run(run: Path, target: Path) -> None:
    partial = target.with_name(f".{target.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    shutil.copytree(run, partial, ignore=shutil.ignore_patterns(".*"))
    partial.rename(target)


def _first(pattern: re.Pattern[str], text: str) -> str:
    found = pattern.search(text)
    return found[0] if found else ""
