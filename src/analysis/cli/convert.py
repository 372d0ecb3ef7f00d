"""`specbook convert CHECKPOINT OUT`: a checkpoint's target or drafter as GGUF."""

from pathlib import Path
from typing import Annotated

import typer

from analysis.cli import app
from analysis.cli.show import console, harmless, size
from analysis.convert.checkpoint import PARTS, Part, Plan, plan_conversion, read_checkpoint
from analysis.convert.converter import convert as run_convert
from analysis.convert.converter import set_up_converter
from analysis.convert.verify import verify_conversion
from analysis.records import Problem


@app.command()
def convert(
    checkpoint: Annotated[
        str, typer.Argument(help="A checkpoint's directory; with --plan also owner/name of the hub.")
    ],
    out: Annotated[Path | None, typer.Argument(help="The GGUF file to write.")] = None,
    *,
    part: Annotated[str, typer.Option(help="target, drafter, or mtp for a plain MTP head.")] = "target",
    plan: Annotated[bool, typer.Option("--plan", help="Say which files and flags are needed, and stop.")] = False,
    verify: Annotated[bool, typer.Option(help="Compare the result with the checkpoint, bit by bit.")] = True,
) -> None:
    """Convert a part of a checkpoint with llama.cpp's converter, which is set up in the user's cache at first use."""
    chosen = plan_conversion(read_checkpoint(checkpoint), _part(part))
    _show(chosen)
    if plan:
        return
    if out is None:
        raise Problem("no file to write was named", expected="specbook convert CHECKPOINT OUT.gguf")
    chosen.require_files()
    done = run_convert(chosen, out, set_up_converter())
    console.print(
        f"{harmless(str(out), 4096)}: {size(done.file.size)}, {len(done.file.tensors)} tensors", soft_wrap=True
    )
    if done.seconds:
        console.print(f"took {done.seconds:.0f} s and {size(done.peak_memory)} of memory")
    if verify and chosen.tensors is not None:
        found = verify_conversion(chosen, done.file)
        console.print(f"verified: {found.tensors} tensors are the checkpoint's, bit by bit")


def _show(plan: Plan) -> None:
    files = set(plan.checkpoint.weights.values())
    console.print(f"{plan.part}: {harmless(plan.checkpoint.architecture)}, flags {' '.join(plan.flags) or 'none'}")
    console.print(
        f"weights in {len(plan.files)} of {len(files)} files: {harmless(', '.join(plan.files), 4096)}", soft_wrap=True
    )
    if plan.missing:
        console.print(f"not here: {harmless(' '.join(plan.missing), 4096)}", soft_wrap=True)
    if plan.nbytes is not None and plan.largest is not None:
        console.print(f"result: {plan.tensors} tensors, {size(plan.nbytes)}, the largest {size(plan.largest)}")


def _part(text: str) -> Part:
    for part in PARTS:
        if text == part:
            return part
    raise Problem(f"unknown part {text!r}", expected=f"one of {', '.join(PARTS)}")
