"""The `specbook` command: one file a command, each a thin face over the rooms below."""

import codecs
import errno
import io
import json
import signal
import sys
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import Any

import typer
from typer.core import TyperGroup

from analysis.cli.listing import listed
from analysis.records import Problem

INTERRUPTED = 128 + signal.SIGINT
"""The exit status after Ctrl-C, as shells have it."""

ENDED = {128 + signal.SIGTERM: "ended", 128 + signal.SIGHUP: "the terminal was closed", INTERRUPTED: "interrupted"}

_REMEDIES = {
    errno.EEXIST: "name another path, or move what is there",
    errno.EISDIR: "name a file in it",
    errno.ENOTDIR: "name a folder where there is a file",
    errno.ENAMETOOLONG: "name a shorter path",
    errno.ENOSPC: "free some space and run again",
    errno.EDQUOT: "free some space and run again",
}


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


def load(command: str | None = None) -> None:
    """Let commands register themselves on `app`.

    Only the module that has the command's name is imported, where there is one: some commands bring libraries that
    take seconds to import, and no other command should wait for them. Else all are.

    Args:
        command: what stands first on the command line; without anything, or `--help`, commands are only listed.
    """
    modules = [module.name for module in iter_modules(__path__) if module.name not in ("__main__", "show", "listing")]
    asked = (command or "").replace("-", "_")
    if command in ("", "--help"):
        for name in modules:
            _list(Path(__path__[0]) / f"{name}.py")
        return
    for name in [asked] if asked in modules else modules:
        import_module(f"{__name__}.{name}")


def _list(module: Path) -> None:
    """Register what a module registers by name and help alone."""
    for name, text in listed(module):
        app.command(name, help=text)(lambda: None)


def _end(sign: int, _frame: object) -> None:
    """End as after Ctrl-C, so that servers are stopped, their lives recorded and unfinished files removed."""
    signal.signal(sign, signal.SIG_IGN)  # timeout(1) signals the group, and the program again
    sys.exit(128 + sign)


def _escaped(error: UnicodeError) -> tuple[str, int]:
    """Return what an output cannot encode as JSON would escape it: `--json` stays whole, and no text is lost."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return json.dumps(error.object[error.start : error.end])[1:-1], error.end


def main() -> None:
    """Run the command line: 0 done, 1 a problem (said in one line), 2 wrong usage, 130 interrupted, 143 ended."""
    for sign in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(sign) == signal.SIG_DFL:  # nohup's stays
            signal.signal(sign, _end)
    codecs.register_error("json", _escaped)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="json")
    try:
        load(sys.argv[1] if len(sys.argv) > 1 else "")
        app()
    except Problem as problem:
        print(f"specbook: {problem}", file=sys.stderr)
        sys.exit(1)
    except OSError as error:
        # Of a rename that failed, the second name is the one that the user gave.
        saw = f"{error.filename2 or error.filename or 'a file, or the output'}: {error.strerror or error}"
        remedy = _REMEDIES.get(error.errno or 0, "check that it exists and may be written")
        print(f"specbook: {Problem(saw, remedy=remedy)}", file=sys.stderr)
        sys.exit(1)
    except (KeyboardInterrupt, SystemExit) as ended:
        status = ended.code if isinstance(ended, SystemExit) else INTERRUPTED
        if status not in ENDED:
            raise
        # typer ends quietly
        print(f"specbook: {ENDED[status]}; what was recorded is whole, run again to resume", file=sys.stderr)
        sys.exit(status)
