"""Recipes of quantization as data: one type for most tensors, and types of their own for some."""

import re
from pathlib import Path
from typing import Literal

from gguf import GGMLQuantizationType, LlamaFileType
from pydantic import Field

from analysis.convert.named import list_named, load_named
from analysis.records import Problem
from analysis.records.model import Name, record

MOSTLY = "MOSTLY_"
FILE_TYPES = tuple(kind.name.removeprefix(MOSTLY) for kind in LlamaFileType if kind.name.startswith(MOSTLY))


@record
class QuantRecipe:
    """How a model is quantized.

    Attributes:
        name: what it is asked for by.
        title: what it is, in a line.
        base: the type of tensors that no pattern names, or the engine's mixture of types (`Q8_0`, `Q4_K_M`).
        types: regular expressions over tensors' names with a type each; the first that is found in a name decides.
        importance: `equal` gives every value the same weight where a type asks for weights and no file gives them.
        published_size: the size of a published file of this recipe, rounded and with its unit.
        note: what else there is to know.
    """

    name: Name
    title: str
    base: str
    types: dict[str, str] = Field(default_factory=dict)
    importance: Literal["", "equal"] = ""
    published_size: str = ""
    note: str = ""


def load_recipe(name_or_path: str | Path) -> QuantRecipe:
    """Return a recipe by its name in `data/recipes`, or from a TOML file of the user's.

    Raises:
        Problem: there is no such recipe or file, it is not valid, or it names an unknown type or no pattern.
    """
    recipe = load_named(QuantRecipe, name_or_path, "recipes", "recipe")
    if recipe.base.upper() not in FILE_TYPES:
        raise Problem(f"unknown file type {recipe.base!r}", expected=f"one of {', '.join(FILE_TYPES)}")
    for pattern, kind in recipe.types.items():
        tensor_type(kind)
        try:
            re.compile(pattern)
        except re.error as error:
            raise Problem(
                f"{pattern!r} of recipe {recipe.name}: {error}", expected="a regular expression over tensors' names"
            ) from None
    return recipe


def list_recipes() -> tuple[QuantRecipe, ...]:
    """Return every recipe of `data/recipes`, by name."""
    return list_named(QuantRecipe, "recipes")


def tensor_type(name: str) -> GGMLQuantizationType:
    """Return the type of a name such as `Q2_K`.

    Raises:
        Problem: there is no such type.
    """
    try:
        return GGMLQuantizationType[name.upper()]
    except KeyError:
        known = ", ".join(kind.name for kind in GGMLQuantizationType)
        raise Problem(f"unknown tensor type {name!r}", expected=f"one of {known}") from None
