"""`specbook perplexity REFERENCE CHANGED`: does a changed file still predict as well?"""

from pathlib import Path
from typing import Annotated

import typer

from analysis.cli import app
from analysis.cli.options import CorpusOption
from analysis.cli.show import console, harmless
from analysis.measure.access import corpus_of
from analysis.measure.exact.perplexity import TOLERANCE
from analysis.measure.quality import CHUNKS, CONTEXT, load_quality, measure_quality, save_quality


@app.command()
def perplexity(
    reference: Annotated[Path, typer.Argument(help="The GGUF file to compare with.")],
    changed: Annotated[Path, typer.Argument(help="The GGUF file that was quantized or built otherwise.")],
    *,
    context: Annotated[int, typer.Option(min=8, help="Tokens a chunk.")] = CONTEXT,
    chunks: Annotated[int, typer.Option(min=2, help="Chunks at most.")] = CHUNKS,
    corpus: CorpusOption = "",
    write: Annotated[Path | None, typer.Option(help="Also record it in this JSON file.")] = None,
) -> None:
    """Compare the perplexity of two files, token by token over the same text, with the engine's own tool.

    It ends with 1 where the changed file is not shown to keep its quality.
    """
    if write is not None and write.exists():
        load_quality(write)  # a model whose name slipped in here is not written over
    found = measure_quality(reference, changed, corpus_of(corpus), context=context, chunks=chunks)
    quality = found.quality
    low, high = quality.interval
    console.print(f"perplexity {quality.reference[0]:.3f} of {harmless(reference.name)}")
    console.print(f"perplexity {quality.changed[0]:.3f} of {harmless(changed.name)}")
    console.print(
        f"{quality.ratio[0]:.4f} times as high [{low:.4f}, {high:.4f}], paired by token; "
        f"{quality.same_top[0]:.1f} % of favourites are the same: {quality.verdict()}"
    )
    if write is not None:
        save_quality(found, write)
        console.print(f"recorded in {harmless(str(write))}", soft_wrap=True)
    if quality.verdict() != "keeps":
        console.print(f"It is kept where the upper end is at most {1 + TOLERANCE:g}.")
        raise typer.Exit(1)
