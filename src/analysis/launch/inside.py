"""The bundled engine in this process: models, and contexts whose logits can be read and whose cache can be handled.

For what a server does not show. Computed on the CPU, with few threads and without flash attention, so that two
contexts that see the same batches compute the same numbers.
"""

import ctypes
import os
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import llama_cpp
import numpy as np
from numpy.typing import NDArray

from analysis.launch.server import check_magic
from analysis.records import Problem

Floats = NDArray[np.float32]
SEQUENCE, ASIDE = 0, 1
BATCH = 512
CACHE_TYPES = {"f32": 0, "f16": 1, "q8_0": 8}  # ggml's numbers


class Model:
    """A model in this process, as a context manager.

    Raises:
        Problem: the file is no GGUF, or the engine cannot load it.
    """

    def __init__(self, path: Path) -> None:
        check_magic(path)
        _initialise()
        parameters = llama_cpp.llama_model_default_params()
        parameters.n_gpu_layers = 0
        self.path = path
        self.handle: Any = llama_cpp.llama_model_load_from_file(os.fsencode(path), parameters)
        if not self.handle:
            raise Problem(f"the engine cannot load {path}", expected="a model this build knows")
        self.vocabulary = int(llama_cpp.llama_vocab_n_tokens(llama_cpp.llama_model_get_vocab(self.handle)))

    def __enter__(self) -> Self:
        """Return the model."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Free the model."""
        self.close()

    def close(self) -> None:
        """Free the model; its contexts must be closed before."""
        if self.handle:
            llama_cpp.llama_model_free(self.handle)
            self.handle = None


class Context:
    """A cache over a model, with one sequence, as a context manager.

    Args:
        model: the model; it must outlive the context.
        size: tokens the cache can hold.
        rollback: tokens that may be taken back after a batch where the cache keeps a state (`n_rs_seq`).
        threads: of a batch.
        cache_type: of keys and values: f32, f16 or q8_0.
        target: the context a drafter reads its embedding and output from.
        spare: with room for a second sequence, where `set_aside` puts tokens.

    Raises:
        Problem: the engine cannot make such a context.
    """

    def __init__(
        self,
        model: Model,
        *,
        size: int = 1024,
        rollback: int = 0,
        threads: int = 1,
        cache_type: str = "f16",
        target: "Context | None" = None,
        spare: bool = False,
    ) -> None:
        parameters = llama_cpp.llama_context_default_params()
        parameters.n_ctx, parameters.n_batch, parameters.n_ubatch = size, BATCH, BATCH
        parameters.n_seq_max = 2 if spare else 1
        parameters.kv_unified = spare
        parameters.n_rs_seq = rollback
        parameters.n_threads = parameters.n_threads_batch = threads
        parameters.flash_attn_type = llama_cpp.LLAMA_FLASH_ATTN_TYPE_DISABLED
        parameters.type_k = parameters.type_v = CACHE_TYPES[cache_type]
        if target is not None:
            parameters.ctx_other = target.handle
        self.model = model
        self.size = size
        self.handle: Any = llama_cpp.llama_init_from_model(model.handle, parameters)
        if not self.handle:
            raise Problem(f"the engine makes no context of {size} tokens for {model.path}")
        self._memory = llama_cpp.llama_get_memory(self.handle)
        self._batch = llama_cpp.llama_batch_init(BATCH, 0, 1)

    def __enter__(self) -> Self:
        """Return the context."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Free the context."""
        self.close()

    def close(self) -> None:
        """Free the context."""
        if self.handle:
            llama_cpp.llama_batch_free(self._batch)
            llama_cpp.llama_free(self.handle)
            self.handle = None

    @property
    def length(self) -> int:
        """Return the number of tokens in the cache."""
        return int(llama_cpp.llama_memory_seq_pos_max(self._memory, SEQUENCE)) + 1

    def decode(self, tokens: Sequence[int], at: int | None = None) -> Floats:
        """Evaluate tokens as one batch and return the logits of every row: float32 [len(tokens), vocabulary].

        Args:
            tokens: at most 512.
            at: the position of the first; by default after what the cache holds.

        Raises:
            Problem: the engine refuses the batch.
        """
        first = self.length if at is None else at
        batch = self._filled(len(tokens), first)
        for row, token in enumerate(tokens):
            batch.token[row] = token
            batch.logits[row] = 1
        self._run(batch, f"{len(tokens)} tokens at {first}")
        found = llama_cpp.llama_get_logits(self.handle)
        return np.ctypeslib.as_array(found, (len(tokens), self.model.vocabulary)).copy()

    def fill(self, tokens: Sequence[int], width: int = 64) -> Floats:
        """Evaluate tokens in batches of `width` and return the logits of the last row: float32 [vocabulary]."""
        last = np.zeros(0, np.float32)
        for start in range(0, len(tokens), width):
            last = self.decode(tokens[start : start + width])[-1]
        return last

    def roll_back(self, length: int) -> bool:
        """Take back all tokens but the first `length`; return whether the cache can do that."""
        return bool(llama_cpp.llama_memory_seq_rm(self._memory, SEQUENCE, length, -1))

    def cut_out(self, start: int, end: int) -> bool:
        """Take out the tokens from `start` to before `end`; return whether the cache can do that."""
        return bool(llama_cpp.llama_memory_seq_rm(self._memory, SEQUENCE, start, end))

    def set_aside(self, start: int) -> None:
        """Move the tokens from `start` on out of the sequence, without forgetting them."""
        llama_cpp.llama_memory_seq_cp(self._memory, SEQUENCE, ASIDE, start, -1)
        self.roll_back(start)

    def bring_back(self, length: int) -> None:
        """Put what was set aside back beside what came in its place, but no more than the first `length` positions."""
        llama_cpp.llama_memory_seq_cp(self._memory, ASIDE, SEQUENCE, -1, -1)
        llama_cpp.llama_memory_seq_rm(self._memory, ASIDE, -1, -1)
        self.roll_back(length)

    def clear(self) -> None:
        """Empty the cache."""
        llama_cpp.llama_memory_clear(self._memory, True)

    def state(self, *, partial: bool = False) -> bytes:
        """Return the sequence's state.

        Args:
            partial: only what cannot be cut, as the server's checkpoints hold it.
        """
        flags = llama_cpp.LLAMA_STATE_SEQ_FLAGS_PARTIAL_ONLY if partial else 0
        size = llama_cpp.llama_state_seq_get_size_ext(self.handle, SEQUENCE, flags)
        held = (ctypes.c_uint8 * size)()
        written = llama_cpp.llama_state_seq_get_data_ext(self.handle, held, size, SEQUENCE, flags)
        return bytes(memoryview(held)[:written])

    def set_state(self, state: bytes, *, partial: bool = False) -> None:
        """Bring back a state.

        Raises:
            Problem: it does not belong to this kind of context.
        """
        flags = llama_cpp.LLAMA_STATE_SEQ_FLAGS_PARTIAL_ONLY if partial else 0
        held = (ctypes.c_uint8 * len(state)).from_buffer_copy(state)
        read = llama_cpp.llama_state_seq_set_data_ext(self.handle, held, len(state), SEQUENCE, flags)
        if read != len(state):
            raise Problem(f"the engine read {read} of {len(state)} bytes of state", expected="a state of this context")

    def run_rows(self, rows: Floats, at: int) -> None:
        """Evaluate rows of features in place of tokens: float32 [rows, width of the model's input]."""
        batch = self._filled(len(rows), at)
        held = np.ascontiguousarray(rows, np.float32)
        plain = llama_cpp.llama_batch(
            n_tokens=len(rows),
            token=None,
            embd=held.ctypes.data_as(ctypes.POINTER(ctypes.c_float)),
            pos=batch.pos,
            n_seq_id=batch.n_seq_id,
            seq_id=batch.seq_id,
            logits=batch.logits,
        )
        self._run(plain, f"{len(rows)} rows of features at {at}")

    def _filled(self, count: int, at: int) -> Any:
        # The engine ends the process where a batch is longer than it was told; so nothing of the kind may reach it.
        if not 0 < count <= min(BATCH, self.size):
            raise Problem(f"a batch of {count} rows", expected=f"1 to {min(BATCH, self.size)}")
        if at + count > self.size:
            raise Problem(f"{count} rows at position {at}", expected=f"room for them in a context of {self.size}")
        batch = self._batch
        batch.n_tokens = count
        for row in range(count):
            batch.pos[row] = at + row
            batch.n_seq_id[row] = 1
            batch.seq_id[row][0] = SEQUENCE
            batch.logits[row] = 0
        return batch

    def _run(self, batch: Any, what: str) -> None:
        status = llama_cpp.llama_decode(self.handle, batch)
        if status:
            raise Problem(f"the engine refuses {what} (status {status})", expected="positions that follow each other")


@llama_cpp.llama_log_callback  # type: ignore[untyped-decorator]  # the binding has no types
def _say_nothing(level: int, text: bytes, data: object) -> None:
    """Drop what the engine says while it works: a failure shows in what it returns."""


def _initialise() -> None:
    llama_cpp.llama_log_set(_say_nothing, ctypes.c_void_p(0))
    llama_cpp.llama_backend_init()
