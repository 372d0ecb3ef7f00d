from pathlib import Path

import typer

from analysis import cli
from analysis.cli.listing import listed


def test_the_list_that_imports_nothing_is_the_list_of_all_commands():
    cli.load()
    command = typer.main.get_command(cli.app)
    whole = {name: one.get_short_help_str(200) for name, one in command.commands.items()}
    found = {}
    for file in Path(cli.__file__).parent.glob("*.py"):
        found |= dict(listed(file))
    assert found.keys() == whole.keys()
    stand_ins = typer.Typer()
    for name, text in found.items():
        stand_ins.command(name, help=text)(lambda: None)
    shown = typer.main.get_command(stand_ins).commands
    assert {name: one.get_short_help_str(200) for name, one in shown.items()} == whole
