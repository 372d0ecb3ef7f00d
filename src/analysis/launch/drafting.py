"""Drafting with a DSpark drafter in this process, step by step as the server does it, and with its faults on request.

What a server keeps to itself can be broken here on purpose: the keys and values of the placeholders, the positions,
the drafter's context.
"""

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from time import perf_counter
from typing import Any

import llama_cpp
import numpy as np

from analysis.convert.gguf import read_gguf
from analysis.launch.inside import Context, Floats
from analysis.records import Problem


@dataclass(frozen=True)
class Fault:
    """What is done wrong while drafting.

    Attributes:
        keep_noise: the placeholders' keys and values stay in the drafter's cache, whose context must be `spare`.
        late: at each position stands what the target computed for the token before.
        forget: the drafter has seen nothing of the prompt, as after the restore of a slot.
    """

    keep_noise: bool = False
    late: bool = False
    forget: bool = False


@dataclass(frozen=True)
class Generation:
    """What was emitted, and one entry a verification step: drafted, accepted, milliseconds.

    The first token comes from the fill. The last step may have accepted more than was asked for; it is cut.
    """

    tokens: tuple[int, ...]
    drafted: tuple[int, ...]
    accepted: tuple[int, ...]
    step_ms: tuple[float, ...]
    fill_ms: float


class Drafter:
    """A drafter's context beside its target's, which must outlive it.

    Raises:
        Problem: the drafter's file names no target layers, mask token or block size.
    """

    def __init__(self, target: Context, context: Context) -> None:
        header = read_gguf(context.model.path)
        taps, mask = header.metadata.get("dflash.target_layers"), header.number("tokenizer.ggml.mask_token_id")
        block = header.number("dflash.block_size")
        if not isinstance(taps, tuple) or mask is None or block is None:
            raise Problem(f"{context.model.path} is no block drafter", expected="target layers, mask token, block size")
        self.taps = tuple(int(tap) for tap in taps)
        self.block, self.mask = block, mask
        self.context, self._target = context, target
        self._width = read_gguf(target.model.path).number("{arch}.embedding_length") or 0
        for tap in self.taps:
            _extension("set_embeddings_layer_inp")(target.handle, tap, True)
        self._last: Floats | None = None
        self.clear()
        llama_cpp.llama_set_causal_attn(context.handle, header.metadata.get("dflash.attention.causal") is True)

    def follow(self, rows: int, at: int, fault: Fault) -> None:
        """Take over what the target just computed for the first `rows` tokens of a batch at position `at`."""
        found = np.concatenate([self._tapped(tap, rows) for tap in self.taps], axis=1)
        if fault.late:
            before = found[:1] if self._last is None else self._last
            self._last, found = found[-1:], np.concatenate([before, found[:-1]])
        self.context.run_rows(found, at)
        if fault.keep_noise:
            self.context.bring_back(at + rows)

    def draft(self, token: int, at: int, count: int, fault: Fault) -> list[int]:
        """Return `count` tokens that are to follow `token`, which stands at position `at`."""
        logits = self.context.decode([token, *[self.mask] * (count - 1)], at)
        if fault.keep_noise:
            self.context.set_aside(at)
        else:
            self.context.roll_back(at)
        return [int(best) for best in logits.argmax(axis=1)]

    def clear(self) -> None:
        """Forget everything."""
        self.context.clear()
        self._last = None

    def _tapped(self, tap: int, rows: int) -> Floats:
        found = _extension("get_embeddings_layer_inp")(self._target.handle, tap)
        return np.ctypeslib.as_array(found, (rows, self._width)).copy()


def generate_raw(target: Context, prompt: Sequence[int], count: int) -> tuple[list[int], Floats]:
    """Return `count` greedy tokens of a target alone, and the logits each was chosen from: [count, vocabulary]."""
    target.clear()
    rows = [target.fill(prompt)]
    tokens = [int(rows[0].argmax())]
    while len(tokens) < count:
        rows.append(target.decode(tokens[-1:])[0])
        tokens.append(int(rows[-1].argmax()))
    return tokens, np.stack(rows)


def leads(logits: Floats) -> Floats:
    """Return by how much the best logit of each row leads the second best."""
    best = np.partition(logits, -2, axis=1)[:, -2:]
    return np.asarray(best[:, 1] - best[:, 0])


def generate(
    target: Context,
    drafter: Drafter,
    prompt: Sequence[int],
    count: int,
    *,
    n_max: int,
    fault: Fault | None = None,
) -> Generation:
    """Generate `count` tokens greedily, drafting at most `n_max` a step.

    Raises:
        Problem: the cache cannot take back a rejected draft: its context needs `rollback` of at least `n_max`.
    """
    fault = fault or Fault()
    began = perf_counter()
    emitted = [_fill(target, drafter, prompt, fault)]
    fill_ms = 1e3 * (perf_counter() - began)
    columns: dict[str, list[Any]] = {"drafted": [], "accepted": [], "step_ms": []}
    at = len(prompt)
    while len(emitted) < count:
        began = perf_counter()
        room = min(n_max, drafter.block, count - len(emitted) - 1)
        draft = drafter.draft(emitted[-1], at, room, fault) if room > 0 else []
        right = target.decode([emitted[-1], *draft], at).argmax(axis=1)
        kept = next((place for place, token in enumerate(draft) if token != right[place]), len(draft))
        drafter.follow(kept + 1, at, fault if draft else replace(fault, keep_noise=False))
        at += kept + 1
        if kept < len(draft) and not target.roll_back(at):
            raise Problem(
                f"the cache cannot take back {len(draft) - kept} tokens", expected=f"rollback of at least {n_max}"
            )
        emitted += [int(token) for token in right[: kept + 1]]
        for name, value in (("drafted", len(draft)), ("accepted", kept), ("step_ms", 1e3 * (perf_counter() - began))):
            columns[name].append(value)
    return Generation(tuple(emitted), **{name: tuple(values) for name, values in columns.items()}, fill_ms=fill_ms)


def _fill(target: Context, drafter: Drafter, prompt: Sequence[int], fault: Fault, width: int = 64) -> int:
    """Fill both caches and return the first token that follows."""
    target.clear()
    drafter.clear()
    best = 0
    for start in range(0, len(prompt), width):
        part = prompt[start : start + width]
        best = int(target.decode(part)[-1].argmax())
        if not fault.forget:
            drafter.follow(len(part), start, replace(fault, keep_noise=False))
    return best


# Functions the engine exports without a C name yet, as its compiler mangles them.
_MANGLED = {
    "set_embeddings_layer_inp": ("_Z30llama_set_embeddings_layer_inpP13llama_contextjb", [ctypes.c_bool], None),
    "get_embeddings_layer_inp": (
        "_Z30llama_get_embeddings_layer_inpP13llama_contextj",
        [],
        ctypes.POINTER(ctypes.c_float),
    ),
}


@cache
def _extension(name: str) -> Any:
    symbol, more, result = _MANGLED[name]
    library = llama_cpp.llama_cpp._lib
    found = getattr(library, f"llama_{name}", None) or getattr(library, symbol, None)
    if found is None:
        raise Problem(f"this engine has no llama_{name}", expected="the bundled build")
    found.argtypes = [llama_cpp.llama_context_p_ctypes, ctypes.c_uint32, *more]
    found.restype = result
    return found
