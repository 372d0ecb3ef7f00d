"""`specbook pairs` and `specbook profiles`: what can be measured by name."""

from rich.table import Table

from analysis.cli import app
from analysis.cli.show import console, harmless
from analysis.convert.pairs import list_pairs, list_profiles


@app.command()
def pairs() -> None:
    """List the pairs that can be measured."""
    table = Table("pair", "spec type", "n_max", "what it is", box=None)
    for pair in list_pairs():
        table.add_row(pair.name, pair.spec_type, str(pair.n_max or "–"), harmless(pair.title))
    console.print(table)


@app.command()
def profiles() -> None:
    """List how the rows of the published cards were served."""
    table = Table("profile", "pair", "n_max", "depth", "context", "what it is", box=None)
    for profile in list_profiles():
        numbers = (profile.n_max, profile.depth, profile.context)
        shown = ["–" if number is None else f"{number:,}" for number in numbers]
        table.add_row(profile.name, profile.pair, *shown, harmless(profile.title))
    console.print(table)
    console.print("A dash: the card does not say, or it does not apply.")
