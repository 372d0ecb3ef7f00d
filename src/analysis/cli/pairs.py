"""`specbook pairs` and `specbook profiles`: what can be measured by name."""

from analysis.cli import app
from analysis.cli.show import console, harmless, size, table_with_whole
from analysis.convert.pairs import DEFAULT_PAIR, fetched, list_pairs, list_profiles
from analysis.records import Pair


@app.command()
def pairs() -> None:
    """List the pairs that can be measured."""
    found = list_pairs()
    names = [pair.name for pair in found]
    table = table_with_whole("pair", names, (), ("spec type", "n_max", "to fetch", "what it is"))
    for pair in found:
        title = f"the default: {pair.title}" if pair.name == DEFAULT_PAIR else pair.title
        table.add_row(pair.name, pair.spec_type, str(pair.n_max or "–"), _to_fetch(pair), harmless(title))
    console.print(table, crop=False)
    console.print("A dash: nothing to fetch, or no drafts. `specbook fetch PAIR` fetches; what is here already stays.")


def _to_fetch(pair: Pair) -> str:
    known, stated = fetched(pair)
    return " + ".join([*([size(known)] if known else []), *map(harmless, stated)]) or "–"


@app.command()
def profiles() -> None:
    """List how the rows of the published cards were served."""
    found = list_profiles()
    names = [profile.name for profile in found]
    table = table_with_whole("profile", names, (), ("pair", "n_max", "depth", "context", "what it is"))
    for profile in found:
        numbers = (profile.n_max, profile.depth, profile.context)
        shown = ["–" if number is None else f"{number:,}" for number in numbers]
        table.add_row(profile.name, profile.pair, *shown, harmless(profile.title))
    console.print(table)
    console.print("A dash: the card does not say, or it does not apply.")
