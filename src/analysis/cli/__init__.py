"""The `specbook` command: one file a command, each a thin face over the rooms below."""

import sys

import typer

from analysis.records import Problem

app = typer.Typer(
    name="specbook",
    help="Does the drafter pay? Measure speculative decoding in llama.cpp, with error bars.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


def main() -> None:
    """Run the command line: 0 done, 1 a problem (said in one line), 2 wrong usage, 130 interrupted."""
    try:
        app()
    except Problem as problem:
        print(f"specbook: {problem}", file=sys.stderr)
        sys.exit(1)
    except KeyboardInterrupt:
        print("specbook: interrupted; what was recorded is whole, run again to resume", file=sys.stderr)
        sys.exit(130)


# Each command registers itself on `app`.
from analysis.cli import audit, corrections, doctor, fetch, fixture, gates, inspect, pairs, runs  # noqa: E402, F401 - they need `app`
