"""Published figures of other models that pages set beside their own, as records: `data/references`."""

from pathlib import Path
from typing import Literal

from pydantic import Field

from analysis.convert.named import load_named
from analysis.records.base import Name, Positive, record

Quantity = Literal["mean accepted length", "conditional acceptance at position 1"]


@record
class ReferenceValue:
    """One printed figure: of what text, and where in the publication. `value` keeps the digits as printed."""

    quantity: Quantity
    kind: str
    text: str
    value: str = Field(pattern=r"^\d+\.\d+$")
    place: str


@record
class Reference:
    """A publication and what it prints of one target and drafter. `drafted` is the length of a draft in tokens."""

    name: Name
    title: str
    authors: str
    year: int
    identifier: str
    target: str
    drafter: str
    drafted: Positive
    temperature: float = Field(ge=0)
    values: tuple[ReferenceValue, ...]
    note: str = ""

    def of(self, quantity: Quantity) -> tuple[ReferenceValue, ...]:
        """Return the figures of one quantity, in the order of the file."""
        return tuple(value for value in self.values if value.quantity == quantity)


def load_reference(name_or_path: str | Path) -> Reference:
    """Return a publication's figures by name, or from a TOML file.

    Raises:
        Problem: there is no such file, or it is not valid.
    """
    return load_named(Reference, name_or_path, "references", "reference")
