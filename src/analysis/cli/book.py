"""`specbook book`: run the notebooks and build this machine's own copy of the book."""

from pathlib import Path
from typing import Annotated

import typer

from analysis.cli import app
from analysis.cli.show import console
from analysis.convert.pairs import load_pair
from analysis.publish.build import CHAPTERS, build_book, committed_book, copy_book, local_book
from analysis.publish.notebooks import find_notebook, notebook_names, run_all

BOTH_LEGS = "05_economics"
BY_NAME = frozenset({"06_exactness"})
"""Chapters that measure a pair of their own for a minute and more: the published ones stay until they are asked for."""
# What follows as `-p NAME VALUE` belongs to the notebooks.
PASSED_ON = {"allow_extra_args": True, "ignore_unknown_options": True}
Profile = Annotated[str, typer.Option(help="How much to measure: a name from data/grids.")]
Pair = Annotated[str, typer.Option(help="What to measure: a name from data/pairs, or a TOML file.")]


@app.command("book", context_settings=PASSED_ON)
def book(
    context: typer.Context,
    *,
    profile: Profile = "quick",
    pair: Pair = "",
    only: Annotated[list[str] | None, typer.Option(help="Run this chapter alone; may be given several times.")] = None,
    every: Annotated[
        bool, typer.Option("--all", help=f"Run {', '.join(sorted(BY_NAME))} too, which takes a minute.")
    ] = False,
) -> None:
    """Run the notebooks against a real llama-server, build local/book and print the page to open.

    Notebook parameters may follow as papermill takes them: `-p NAME VALUE`, several times.
    """
    if pair:
        load_pair(pair)  # said now, not after the first notebook has begun
    common = {"profile": profile} | ({"pair": from_here(pair)} if pair else {})
    chapters = [name for name in notebook_names() if every or name not in BY_NAME]
    run_and_build(only or chapters, notebook_parameters(context.args), common)


def _measured_before(name: str) -> tuple[bool, str]:
    """Return what to order chapters by: first the one that measures both legs, from whose run others take theirs."""
    return (find_notebook(name).stem != BOTH_LEGS, name)


def notebook_parameters(words: list[str]) -> dict[str, str]:
    """Return the parameters of `-p NAME VALUE -p NAME VALUE`.

    Raises:
        BadParameter: the words are something else.
    """
    if len(words) % 3 or any(option not in ("-p", "--parameters") for option in words[::3]):
        raise typer.BadParameter(f"cannot read {' '.join(words)!r}; expected -p NAME VALUE, several times")
    return dict(zip(words[1::3], map(from_here, words[2::3]), strict=True))


def from_here(value: str) -> str:
    """Return a parameter's value, whole where it is a path: notebooks run in a folder of their own."""
    path = Path(value)
    return str(path.resolve()) if (path.suffix == ".toml" or "/" in value) and path.exists() else value


def run_and_build(names: list[str], parameters: dict[str, str], common: dict[str, str]) -> None:
    """Run chapters into the local book, build it, and print its first page or that of the one chapter."""
    sources = [find_notebook(name) for name in names]
    target = copy_book(committed_book(), local_book())
    run_all(sorted(names, key=_measured_before), parameters, target / CHAPTERS, common=common)
    with console.status("building the pages"):
        first = build_book(target)
    page = first.parent / CHAPTERS / f"{sources[0].stem}.html" if len(sources) == 1 else first
    console.print(f"open {page}", markup=False, soft_wrap=True)
