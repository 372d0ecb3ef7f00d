"""`specbook fetch PAIR...`: bring a pair's files to this machine."""

from typing import Annotated

import typer

from analysis.cli import app
from analysis.cli.show import console, harmless, size
from analysis.convert.fetch import fetch as fetch_source
from analysis.convert.pairs import load_pair


@app.command()
def fetch(
    pairs: Annotated[list[str], typer.Argument(help="Names from `specbook pairs`, or TOML files of your own.")],
    verify: Annotated[
        bool, typer.Option(help="Read files that are here already again and compare their hash.")
    ] = False,
) -> None:
    """Bring the files of pairs to this machine, check their hashes, and print where they lie."""
    for pair in [load_pair(name) for name in pairs]:
        for role, source in (("target", pair.target), ("drafter", pair.drafter)):
            if source is not None:
                path = fetch_source(source, verify=verify)
                console.print(
                    f"{pair.name} {role}: {harmless(str(path), 4096)} ({size(path.stat().st_size)})", soft_wrap=True
                )
