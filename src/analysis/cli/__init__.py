"""The `specbook` command: one file a command, each a thin face over the rooms below."""

import sys
from importlib import import_module
from pkgutil import iter_modules
from typing import Any

import typer
from typer.core import TyperGroup

from analysis.records import Problem

INTERRUPTED = 130
"""The exit status after Ctrl-C, as shells have it."""


class ByName(TyperGroup):
    """Lists its commands by name, groups of commands among them."""

    def list_commands(self, ctx: Any) -> list[str]:  # of click's type or typer's own, by typer's version
        """Return the names in order."""
        return sorted(super().list_commands(ctx))


app = typer.Typer(
    name="specbook",
    cls=ByName,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


@app.callback()
def specbook() -> None:
    """Does the drafter pay? Measure speculative decoding in llama.cpp, with error bars."""


def load(command: str = "") -> None:
    """Let commands register themselves on `app`.

    Only the module that has the command's name is imported, where there is one: some commands bring libraries that
    take seconds to import, and no other command should wait for them. Else all are.
    """
    modules = [module.name for module in iter_modules(__path__) if module.name not in ("__main__", "show")]
    asked = command.replace("-", "_")
    for name in [asked] if asked in modules else modules:
        import_module(f"{__name__}.{name}")


def main() -> None:
    """Run the command line: 0 done, 1 a problem (said in one line), 2 wrong usage, 130 interrupted."""
    try:
        load(sys.argv[1] if len(sys.argv) > 1 else "")
        app()
    except Problem as problem:
        print(f"specbook: {problem}", file=sys.stderr)
        sys.exit(1)
    except OSError as error:
        saw = f"{error.filename or 'a file'}: {error.strerror or error}"
        print(f"specbook: {Problem(saw, remedy='check that it exists and may be written')}", file=sys.stderr)
        sys.exit(1)
    except (KeyboardInterrupt, SystemExit) as ended:
        if isinstance(ended, SystemExit) and ended.code != INTERRUPTED:
            raise
        # typer ends quietly
        print("specbook: interrupted; what was recorded is whole, run again to resume", file=sys.stderr)
        sys.exit(INTERRUPTED)
