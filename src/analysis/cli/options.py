"""Options that several commands share, said once."""

from typing import Annotated

import typer

CorpusOption = Annotated[
    str, typer.Option(help="Directory with text, or a file of `specbook corpus`; default: Python's library.")
]
