"""A model file's tokenizer, without its weights."""

import ctypes
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import llama_cpp

from analysis.records import Problem


@llama_cpp.llama_log_callback  # type: ignore[untyped-decorator]  # the binding has no types
def _say_nothing(level: int, text: bytes, data: object) -> None:
    """Drop what llama.cpp says while it reads a vocabulary: a failure shows in the return value."""


class Vocabulary:
    """Turns text into token ids as the model file says. Calling it tokenizes; it is made by `tokenizer_of`.

    Names of control tokens in the text are read as plain text, and no begin-of-text token is added: `bos` holds
    the one that the model wants in front of a context, or nothing.
    """

    def __init__(self, model: object) -> None:
        self._model = model
        self._vocab = llama_cpp.llama_model_get_vocab(model)
        adds = llama_cpp.llama_vocab_get_add_bos(self._vocab)
        self.bos: tuple[int, ...] = (llama_cpp.llama_vocab_bos(self._vocab),) if adds else ()

    def __call__(self, text: str) -> list[int]:
        """Return the token ids of a text."""
        data = text.encode()
        room = len(data) + 8
        tokens = (llama_cpp.llama_token * room)()
        count = llama_cpp.llama_tokenize(self._vocab, data, len(data), tokens, room, False, False)
        return list(tokens[:count])

    def text(self, tokens: Iterable[int]) -> str:
        """Return the text of token ids; bytes that are no UTF-8 become U+FFFD."""
        return b"".join(self._piece(token) for token in tokens).decode(errors="replace")

    def _piece(self, token: int) -> bytes:
        for room in (32, 4096):
            buffer = ctypes.create_string_buffer(room)
            length = llama_cpp.llama_token_to_piece(self._vocab, token, buffer, room, 0, True)
            if length >= 0:
                return buffer.raw[:length]
        raise ValueError(f"token {token} is longer than {room} bytes")


@cache
def tokenizer_of(path: Path | str) -> Vocabulary:
    """Return the tokenizer of a GGUF file. Only its vocabulary is read; it stays in memory until the process ends.

    Raises:
        Problem: the file is missing, or llama.cpp reads no vocabulary from it.
    """
    file = Path(path)
    if not file.is_file():
        raise Problem(f"no model file {file}", expected="a GGUF file")
    llama_cpp.llama_log_set(_say_nothing, ctypes.c_void_p(0))
    llama_cpp.llama_backend_init()
    options = llama_cpp.llama_model_default_params()
    options.vocab_only = True
    model = llama_cpp.llama_model_load_from_file(str(file).encode(), options)
    if not model:
        raise Problem(
            f"llama.cpp reads no vocabulary from {file}",
            expected="a whole GGUF file",
            remedy="check its hash",
        )
    return Vocabulary(model)
