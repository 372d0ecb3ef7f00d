"""The exact commands that show a recorded run again, or measure one row of it anew."""

import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path

from analysis.convert.pairs import list_pairs
from analysis.measure.plan import list_grids
from analysis.publish.formats import visible
from analysis.publish.parameters import declared
from analysis.records import Run
from analysis.records.model import REGIMES
from analysis.records.places import repo_dir

# What `specbook decide` chose for itself, its own command chooses again.
DECIDED = "decide"

# What no run records, with the word that stands for it in a command: addresses, and files that hold keys.
PLACEHOLDERS = {
    "--raw-url": "RAW_URL",
    "--drafted-url": "DRAFTED_URL",
    "--api-key-file": "KEYFILE",
    "--drafted-key-file": "DRAFTED_KEYFILE",
}
START_THEM = (
    "Start both servers as before, and put their addresses in place of RAW_URL and DRAFTED_URL; "
    "how they were started, no server tells and no run records."
)
_ONE_CALL = frozenset({"--again", "--same-servers", "--json"})


def pair_name(run: Run) -> str:
    """Return the pair of a run's drafted leg, else that of its only leg."""
    drafted = [cell.pair for cell in run.cells if cell.spec_type != "none"]
    return (drafted or [cell.pair for cell in run.cells] or [Path(run.id).name])[0]


def show_again(run: Run, chapter: str) -> str:
    """Return the command that shows a chapter from a recorded run."""
    return _line(["papermill", f"notebooks/{chapter}.ipynb", "out.ipynb", "-p", "run", run.id])


def measure_again(run: Run, chapter: str) -> str:
    """Return the command that measures a chapter anew; of a run that `specbook decide` made, the one that made it."""
    if _is_decided(run):
        return _decide_again(run)
    return _line(["papermill", f"notebooks/{chapter}.ipynb", "out.ipynb", *_parameters(run)])


def measure_rows(run: Run, chapter: str) -> list[str]:
    """Return one command a row, rows by depth and kind of text.

    A run that `specbook decide` made has one command, and a chapter that takes neither depth nor regime has none.
    """
    if _is_decided(run):
        return [_decide_again(run)]
    known = _names(chapter)
    depth_name = next((name for name in ("depths", "depth") if name in known), "")
    if not depth_name or "regimes" not in known:
        return []
    places = sorted({(cell.depth, REGIMES.index(cell.regime)) for cell in run.cells})
    length = [word for cell in run.cells[:1] for word in ("-p", "n_predict", str(cell.n_predict))]
    start = ["specbook", "chapter", chapter, *_parameters(run)]
    return [
        _line([*start, "-p", depth_name, str(depth), "-p", "regimes", REGIMES[regime], *length])
        for depth, regime in places
    ]


def measure_more(run: Run, chapter: str, prompts: int) -> str:
    """Return the command that measures a chapter with more prompts a cell."""
    return _line(["specbook", "chapter", chapter, *_parameters(run), "-p", "prompts", str(prompts)])


def decide_one(run: Run, regime: str, depth: int) -> str:
    """Return the command that gives an hour to one kind of text at one depth."""
    place = ["--regimes", regime, "--depths", str(depth)]
    return _line(["specbook", "decide", "--pair", _pair(run), *place, "--budget", "1h"])


def needs_servers(run: Run) -> bool:
    """Return whether the command that measures a run anew needs servers that somebody else starts."""
    return run.engine.source == "url" and _is_decided(run)


def _is_decided(run: Run) -> bool:
    by_command = run.argv[:1] == ("specbook",) or run.argv[1:2] == (DECIDED,)
    return run.profile == DECIDED and (by_command or run.engine.source == "url")


def _decide_again(run: Run) -> str:
    """Return the command that made a run, with words in place of what is recorded nowhere."""
    if run.argv[1:2] != (DECIDED,) and run.engine.source == "url":
        return _line(_decide_by_cells(run))
    words: list[str] = []
    for word in ("specbook", *run.argv[1:]):
        option, equals, _ = word.partition("=")
        if words and words[-1] in PLACEHOLDERS:
            words.append(PLACEHOLDERS[words[-1]])
        elif equals and option in PLACEHOLDERS:
            words += [option, PLACEHOLDERS[option]]
        elif word not in _ONE_CALL:
            words.append(word)
    return _line([*words, *_chosen(run, words)])


def _chosen(run: Run, words: Sequence[str]) -> Iterator[str]:
    """Yield the setting that a run of this machine's servers was measured at: the command would choose it anew."""
    cell = next((cell for cell in run.cells if cell.spec_type != "none"), None)
    if run.engine.source != "url" and cell is not None:
        for option, value in (("--n-max", f"{cell.n_max}"), ("--p-min", f"{cell.p_min:g}")):
            if not any(word.partition("=")[0] == option for word in words):
                yield from (option, value)


def _decide_by_cells(run: Run) -> list[str]:
    """Return the command that measures the cells of a run between two addresses; it was made by another program."""
    regimes = sorted({cell.regime for cell in run.cells}, key=REGIMES.index)
    depths = sorted({cell.depth for cell in run.cells})
    addresses = [word for option in ("--raw-url", "--drafted-url") for word in (option, PLACEHOLDERS[option])]
    return ["specbook", DECIDED, *addresses, "--depths", ",".join(map(str, depths)), "--regimes", ",".join(regimes)]


def _names(chapter: str) -> frozenset[str]:
    notebook = repo_dir() / "notebooks" / f"{chapter}.ipynb"
    return frozenset(declared(notebook)) if notebook.is_file() else frozenset()


def _line(words: Sequence[str]) -> str:
    """Return a command on one line; a contributed run may hold anything in what it says it was called with."""
    return visible(shlex.join(words))


def _parameters(run: Run) -> list[str]:
    words = ["-p", "pair", _pair(run)]
    if run.profile and run.profile != "quick":
        words += ["-p", "profile" if run.profile in list_grids() else "serving", run.profile]
    return words


def _pair(run: Run) -> str:
    """Return the pair's name; one that the checkout does not hold was described by a file of whoever measured it."""
    name = pair_name(run)
    return name if name in {pair.name for pair in list_pairs()} else f"{name}.toml"
