"""What every record is made of: kinds of fields, the decorator, and the way from plain data and back."""

from typing import Annotated, Any, Literal, TypeVar, cast, dataclass_transform, get_args

from pydantic import ConfigDict, Field, TypeAdapter
from pydantic.dataclasses import dataclass as pydantic_dataclass

from analysis.records.errors import Problem

# History of the run directory's format.
# 1: run.json, samples.jsonl (with compact steps), servers.jsonl, steps.parquet.
# 2: blocks.jsonl of duels, evictions of GPU memory in the host's state, contexts filled without the prompt cache.
# 3: runs of several workers: the machines of a run, and the worker, host and machine of a server's life.
# 4: lives of servers that somebody else runs: what such a server counted, whether it is the one of the life before, and
#    who says how it drafts.
SCHEMA = 4

SpecType = Literal[
    "none",
    "ngram-simple",
    "ngram-map-k",
    "ngram-map-k4v",
    "ngram-mod",
    "ngram-cache",
    "draft-simple",
    "draft-eagle3",
    "draft-dflash",
    "draft-dspark",
    "draft-mtp",
]
Regime = Literal["invention", "continuation", "recall", "prose"]
REGIMES: tuple[Regime, ...] = get_args(Regime)
LabelKind = Literal["code", "prose", "recall", "loop", "refusal", "empty", "other"]
# How a sample's context came into the cache: all of it evaluated for this sample, in a slot that was emptied first; a
# prefix reused in a living slot; a slot restored from disk (which loses the drafter's context); or all of it
# evaluated because the request forbade the prompt cache.
Fill = Literal["cold", "reused", "restored", "uncached"]

Count = Annotated[int, Field(ge=0)]
Positive = Annotated[int, Field(gt=0)]
Duration = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Share = Annotated[float, Field(ge=0, le=1)]
Name = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9._-]*$", max_length=80)]

T = TypeVar("T")


@dataclass_transform(frozen_default=True, kw_only_default=True)
def record(cls: type[T]) -> type[T]:
    """Make a class a frozen dataclass that validates its fields and refuses unknown ones."""
    made = pydantic_dataclass(cls, frozen=True, kw_only=True, config=ConfigDict(extra="forbid"))
    return cast("type[T]", made)


def parse(kind: type[T], data: Any, *, where: str) -> T:
    """Return a record read from plain data.

    Args:
        kind: the record's class.
        data: a mapping, as JSON or TOML gives it.
        where: file and place, for the message.

    Raises:
        Problem: a field is missing, unknown or out of range, or the schema is newer than this library's.
    """
    schema = data.get("schema", SCHEMA) if isinstance(data, dict) else SCHEMA
    if isinstance(schema, int) and schema > SCHEMA:
        raise Problem(
            f"{where} has schema {schema}",
            expected=f"at most {SCHEMA}, the newest this version reads",
            remedy="update specbook",
        )
    try:
        return TypeAdapter(kind).validate_python(data, strict=False)
    except ValueError as error:
        raise Problem(f"{where} is not a valid {kind.__name__}: {_first_complaint(error)}") from None


def plain(item: Any) -> Any:
    """Return a record as data that JSON can hold."""
    return TypeAdapter(type(item)).dump_python(item, mode="json")


def _first_complaint(error: ValueError) -> str:
    complaints = getattr(error, "errors", None)
    if complaints is None:
        return str(error)
    first = complaints()[0]
    place = ".".join(str(part) for part in first["loc"])
    return f"{place}: {first['msg']}" if place else str(first["msg"])
