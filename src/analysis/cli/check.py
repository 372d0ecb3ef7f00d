"""`specbook check TARGET [DRAFTER]`: do they fit each other and this machine?"""

from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from analysis.cli import app
from analysis.cli.show import console, harmless
from analysis.convert.fit import check_fit, gib
from analysis.convert.gguf import read_gguf
from analysis.convert.memory import Serving, machine_memory
from analysis.records import Problem
from analysis.records.model import SpecType

MARKS = {"fits": "fits", "note": "[yellow]note[/]", "warned": "[yellow]warned[/]", "refused": "[red]refused[/]"}


@app.command()
def check(
    target: Annotated[Path, typer.Argument(help="The target, a GGUF file.")],
    drafter: Annotated[Path | None, typer.Argument(help="The drafter, a GGUF file.")] = None,
    *,
    spec_type: Annotated[str, typer.Option(help="How it is to draft; default: what the file is made for.")] = "",
    context: Annotated[int, typer.Option("--context", "-c", min=1, help="Tokens a sequence.")] = 4096,
    n_max: Annotated[int, typer.Option(min=0, help="The longest draft; default: the drafter's block size.")] = 0,
    p_min: Annotated[float, typer.Option(min=0, max=1, help="The confidence below which a draft is cut.")] = 0.0,
    kv_k: Annotated[str, typer.Option(help="Type of cached keys.")] = "f16",
    kv_v: Annotated[str, typer.Option(help="Type of cached values.")] = "f16",
    parallel: Annotated[int, typer.Option(min=1, help="Sequences at a time.")] = 1,
    memory: Annotated[float, typer.Option(min=0, help="GiB to stay within; default: what is free here now.")] = 0.0,
) -> None:
    """Check a target and a drafter before anything is started: their headers, and the order of the drafter's heads."""
    models = read_gguf(target), read_gguf(drafter) if drafter else None
    block = models[1].number("{arch}.block_size") if models[1] else None
    serving = Serving(
        context=context, parallel=parallel, kv_k=kv_k, kv_v=kv_v, rollback=n_max or block or (3 if drafter else 0)
    )
    room = int(memory * 2**30) if memory else machine_memory()[1]
    fit = check_fit(*models, spec_type=_known(spec_type), serving=serving, p_min=p_min, room=room)
    table = Table("check", "", "saw", "expected", box=None)
    for finding in fit.findings:
        table.add_row(finding.check, MARKS[finding.verdict], harmless(finding.saw), harmless(finding.expected))
    console.print(table)
    if fit.memory is not None:
        buffers = f"{gib(fit.memory.buffers)} of buffers, an estimate fitted to the CPU build"
        console.print(f"Memory: {gib(fit.memory.total)} of {gib(room)}; {buffers}.")
    fit.require()


def _known(text: str) -> SpecType | None:
    known: tuple[SpecType, ...] = SpecType.__args__  # type: ignore[attr-defined]  # a Literal has them
    if not text:
        return None
    for name in known:
        if name == text:
            return name
    raise Problem(f"unknown speculation type {text!r}", expected=f"one of {', '.join(known)}")
