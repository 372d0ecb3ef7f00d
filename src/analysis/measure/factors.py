"""Any factor of a cell, changed by name: what a sweep varies and what tells two sides of a duel apart."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from itertools import product
from pathlib import Path
from typing import Any

from analysis.convert.pairs import with_files
from analysis.measure.serving import Serving
from analysis.records import Problem

KV_TYPES = ("f32", "f16", "bf16", "q8_0", "q5_0", "q5_1", "q4_0", "q4_1", "iq4_nl")


def _one_of(*known: str) -> Callable[[str], str]:
    def check(text: str) -> str:
        if text not in known:
            raise ValueError(f"one of {', '.join(known)}")
        return text

    return check


def _file(text: str) -> Path:
    path = Path(text).expanduser().resolve()
    if not path.is_file():
        raise ValueError("the path of a file")
    return path


def _at_least(least: int) -> Callable[[str], int]:
    def check(text: str) -> int:
        if not text.isascii() or not text.isdigit() or int(text) < least:
            raise ValueError(f"a whole number of at least {least}")
        return int(text)

    return check


def _number(least: float, most: float) -> Callable[[str], float]:
    def check(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = float("nan")
        if not least <= value <= most:
            raise ValueError(f"a number from {least:g} to {most:g}")
        return value

    return check


# Where a factor is set: in the pair, in its server's configuration, in the grid, among the files, or as the engine.
PAIR: Mapping[str, Callable[[str], Any]] = {
    "n_max": _at_least(0),
    "n_min": _at_least(0),
    "p_min": _number(0, 1),
    "context": _at_least(1),
}
CONFIG: Mapping[str, Callable[[str], Any]] = {
    "kv_k": _one_of(*KV_TYPES),
    "kv_v": _one_of(*KV_TYPES),
    "flash_attn": _one_of("on", "off", "auto"),
    "threads": _at_least(1),
    "parallel": _at_least(1),
    "batch": _at_least(1),
    "ubatch": _at_least(1),
    "gpu_layers": _at_least(0),
    "drafter_gpu_layers": _at_least(0),
}
GRID: Mapping[str, Callable[[str], Any]] = {
    "n_predict": _at_least(2),
    "temperature": _number(0, 10),
    "local_tokens": _at_least(1),
    "fill": _one_of("cold", "reused", "restored", "uncached"),
    "depth": _at_least(1),
    "regime": str,
}
FILES: Mapping[str, Callable[[str], Any]] = {"target": _file, "drafter": _file}
FACTORS: Mapping[str, Callable[[str], Any]] = {
    **PAIR,
    **CONFIG,
    **GRID,
    **FILES,
    "kv": _one_of(*KV_TYPES),
    "engine": _file,
}


@dataclass(frozen=True)
class Variant:
    """One setting of the varied factors: as it was written, and what it changes.

    `served` is the pair with the changes that concern its server, `size` the changed fields of the grid, `engine` the
    path of another llama-server.
    """

    settings: tuple[tuple[str, str], ...]
    served: Serving
    size: Mapping[str, Any] = field(default_factory=dict)
    engine: Path | None = None

    @property
    def title(self) -> str:
        """Return the settings as text: `n_max=2, kv=q8_0`."""
        return ", ".join(
            f"{name}={Path(text).name if name in (*FILES, 'engine') else text}" for name, text in self.settings
        )


def read_factor(text: str) -> tuple[str, tuple[str, ...]]:
    """Return name and values of a factor written as `n_max=1,2,3`.

    Raises:
        Problem: there is no such factor, no value, a value twice, or one that the factor cannot have.
    """
    name, equals, listed = text.partition("=")
    name = name.strip().replace("-", "_")
    values = tuple(value.strip() for value in listed.split(","))
    if name not in FACTORS:
        near = get_close_matches(name, FACTORS, n=1)
        hint = f"did you mean {near[0]}?" if near else ""
        raise Problem(f"no factor named {name!r}", expected=f"one of {', '.join(sorted(FACTORS))}", remedy=hint)
    if not equals or not all(values):
        raise Problem(f"{text!r} names no values", expected=f"{name}=VALUE,VALUE,...")
    if len(set(values)) < len(values):
        raise Problem(f"{text!r} names a value twice", expected="distinct values")
    for value in values:
        _value(name, value)
    return name, values


def variants(served: Serving, factors: Sequence[str]) -> list[Variant]:
    """Return every combination of the values of factors, the last factor varying fastest.

    Args:
        served: the pair as it is served otherwise.
        factors: as `read_factor` takes them.

    Raises:
        Problem: see `read_factor`; or a factor is named twice.
    """
    read = [read_factor(text) for text in factors]
    names = [name for name, _ in read]
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise Problem(f"the factor {twice[0]} is named twice", expected="each factor once, with all its values")
    combinations = product(*(values for _, values in read))
    return [variant(served, dict(zip(names, values, strict=True))) for values in combinations]


def variant(served: Serving, settings: Mapping[str, str]) -> Variant:
    """Return a pair with the given settings of factors.

    Raises:
        Problem: a factor cannot have a value, or the pair contradicts itself with it.
    """
    values = {name: _value(name, text) for name, text in settings.items()}
    pair = {name: value for name, value in values.items() if name in PAIR}
    config = {name: value for name, value in values.items() if name in CONFIG}
    if "kv" in values:
        config |= {"kv_k": values["kv"], "kv_v": values["kv"]}
    changed = with_files(served.pair, target=values.get("target"), drafter=values.get("drafter"))
    size = {name: value for name, value in values.items() if name in GRID}
    for single, many in (("depth", "depths"), ("regime", "regimes")):
        if single in size:
            size[many] = [size.pop(single)]
    try:
        serving = replace(served, pair=replace(changed, **pair), changes={**served.changes, **config})
    except ValueError as error:
        raise Problem(f"{', '.join(f'{n}={t}' for n, t in settings.items())}: {error}") from None
    return Variant(tuple(settings.items()), serving, size, values.get("engine"))


def _value(name: str, text: str) -> Any:
    try:
        return FACTORS[name](text)
    except ValueError as error:
        raise Problem(f"{name} cannot be {text!r}", expected=str(error)) from None
