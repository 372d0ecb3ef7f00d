"""`specbook inspect FILE.gguf`: what a model file says of itself."""

from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from analysis.cli import app
from analysis.cli.show import console, harmless, size
from analysis.convert.gguf import GGUFFile, LongArray, Value, read_gguf
from analysis.convert.summary import summarise


@app.command()
def inspect(
    file: Annotated[Path, typer.Argument(help="A GGUF file.")],
    metadata: Annotated[bool, typer.Option("--metadata", help="Also list every metadata entry.")] = False,
    tensors: Annotated[bool, typer.Option("--tensors", help="Also list every tensor.")] = False,
) -> None:
    """Show architecture, vocabulary, context length and tensors of a GGUF file; refuse a damaged one."""
    model = read_gguf(file)
    for name, value in _facts(model):
        console.print(f"{name:20} {value}", soft_wrap=True)
    console.print(_groups(model))
    if metadata:
        for key, entry in model.metadata.items():
            console.print(f"{harmless(key)} = {_shown(entry)}", soft_wrap=True)
    if tensors:
        for tensor in model.tensors:
            shape = " x ".join(map(str, tensor.shape))
            console.print(
                f"{harmless(tensor.name):48} {tensor.type:8} {size(tensor.nbytes):>9}  {shape}", soft_wrap=True
            )


def _facts(model: GGUFFile) -> list[tuple[str, str]]:
    def number(value: int | None) -> str:
        return "not stated" if value is None else f"{value:,}"

    return [
        ("file", f"{harmless(str(model.path), 4096)} ({size(model.size)})"),
        ("architecture", harmless(model.architecture) or "not stated"),
        ("blocks", number(model.block_count)),
        ("context length", f"{number(model.context_length)} tokens"),
        ("vocabulary", f"{number(model.vocabulary_size)} tokens, SHA-256 {model.tokens_sha256[:16] or '–'}"),
        ("chat template", "embedded" if model.has_chat_template else "none"),
        ("parameters", f"{model.parameters:,}"),
        ("types", ", ".join(f"{kind} {size(count)}" for kind, count in model.bytes_by_type.items())),
    ]


def _groups(model: GGUFFile) -> Table:
    table = Table("tensors of", "count", "types", "parameters", "size", "bits per weight", box=None)
    for group in summarise(model):
        table.add_row(
            group.name,
            str(group.tensors),
            " ".join(group.types),
            f"{group.parameters:,}",
            size(group.nbytes),
            f"{group.bits_per_weight:.2f}",
        )
    return table


def _shown(value: Value) -> str:
    if isinstance(value, LongArray):
        first = ", ".join(harmless(str(item), 20) for item in value.first)
        return f"{value.length:,} x {value.type}: {first}, … (SHA-256 {value.sha256[:16]})"
    if isinstance(value, tuple):
        return harmless(", ".join(map(str, value)))
    return harmless(str(value))
