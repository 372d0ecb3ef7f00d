"""`specbook convert-drafter DIR`: a trained drafter as GGUF files, proved to hold the checkpoint's numbers."""

from pathlib import Path
from typing import Annotated

import typer

from analysis.cli import app
from analysis.cli.show import console, harmless, size
from analysis.convert.converter import set_up_converter
from analysis.convert.fetch import fetch
from analysis.convert.pairs import load_pair
from analysis.drafter.export import load_checkpoint
from analysis.drafter.forms import make_forms, require_equal_tensors, unpack


@app.command()
def convert_drafter(
    directory: Annotated[Path, typer.Argument(help="What `specbook train-drafter` left; gets f16.gguf and q8_0.gguf.")],
    *,
    unpacked: Annotated[
        Path | None, typer.Option("--from", help="Begin with this drafter's GGUF file: unpack it into the directory.")
    ] = None,
    target: Annotated[Path | None, typer.Option(help="The target's GGUF file; default: the local target.")] = None,
) -> None:
    """Make GGUF files of a drafter with llama.cpp's converter, which is set up in the user's cache at first use.

    The checkpoint, the F16 file and the Q8_0 file are compared number by number; with --from also the Q8_0 file with
    the one that was given, byte by byte.
    """
    if unpacked is not None:
        unpack(unpacked, target or fetch(load_pair("smollm2-raw").target), directory)
    load_checkpoint(directory / "hf")  # said now, not after torch was installed
    found = make_forms(directory, set_up_converter())
    for file in (found.f16, found.q8_0):
        console.print(f"{harmless(str(file), 4096)}: {size(file.stat().st_size)}", soft_wrap=True)
    console.print(f"verified: {found.tensors} tensors hold the same numbers in checkpoint, F16 and Q8_0")
    if unpacked is not None:
        count = require_equal_tensors(found.q8_0, unpacked)
        console.print(f"verified: {count} tensors are those of {harmless(str(unpacked), 4096)}, byte by byte")
