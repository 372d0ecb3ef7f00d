"""How a llama-server is to run, and the command line that says so to a given build."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Literal

from analysis.records import Problem, SpecType

# What a method drafts at most and at least is named by a flag of its own; a method that is not here has no such
# setting. ngram-cache drafts up to 8 tokens and cannot be told otherwise.
_DRAFTER_FLAGS = ("--spec-draft-n-max", "--spec-draft-n-min")
_LENGTH_FLAGS: dict[str, tuple[str, str | None]] = {
    "draft-simple": _DRAFTER_FLAGS,
    "draft-eagle3": _DRAFTER_FLAGS,
    "draft-dflash": _DRAFTER_FLAGS,
    "draft-dspark": _DRAFTER_FLAGS,
    "draft-mtp": _DRAFTER_FLAGS,
    "ngram-simple": ("--spec-ngram-simple-size-m", None),
    "ngram-map-k": ("--spec-ngram-map-k-size-m", None),
    "ngram-map-k4v": ("--spec-ngram-map-k4v-size-m", None),
    "ngram-mod": ("--spec-ngram-mod-n-max", "--spec-ngram-mod-n-min"),
}
_LOOKUP_FLAG = "--spec-ngram-simple-size-n"
_LOOKUP_DEFAULT = 12
# Settings that keep one measurement like the next. A build that lacks one of them does not do the thing either.
_STEADY: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...] = (
    (("--fit",), ("off",)),  # else context and layers follow what memory is free today
    (("--cache-ram",), ("0",)),  # else idle slots are copied to memory and come back without the drafter's context
    (("--no-context-shift",), ()),  # else a full context is cut and generation goes on at another depth
    (("--offline",), ()),
    (("--no-ui", "--no-webui"), ()),
)


@dataclass(frozen=True, kw_only=True)
class ServerConfig:
    """How to run a llama-server. Lengths are in tokens.

    `context` is what each of the `parallel` slots gets. `gpu_layers` of -1 leaves it to the engine, which then
    puts every layer on the device if there is one. `model` is None only for a server that is already running.
    """

    model: Path | None
    drafter: Path | None = None
    spec_type: SpecType = "none"
    n_max: int = 0
    n_min: int = 0
    p_min: float = 0.0
    context: int = 4096
    batch: int = 2048
    ubatch: int = 512
    threads: int = 1
    parallel: int = 1
    kv_k: str = "f16"
    kv_v: str = "f16"
    flash_attn: Literal["on", "off", "auto"] = "auto"
    gpu_layers: int = -1
    drafter_gpu_layers: int = -1
    slot_save_path: Path | None = None
    extra_args: tuple[str, ...] = ()


def server_argv(
    engine_path: Path, config: ServerConfig, port: int, key_file: Path, options: frozenset[str]
) -> list[str]:
    """Return the command line that starts a server of this configuration on the loopback address.

    Args:
        engine_path: the binary.
        config: how it is to run.
        port: the port to listen on.
        key_file: a file that holds the key a client must give.
        options: the options that this build's `--help` lists (`FoundEngine.options`).

    Raises:
        Problem: the configuration contradicts itself, or needs an option that this build does not have.
    """
    words = list(_words(config, port, key_file))
    for flag, *_ in words:
        if flag not in options:
            raise Problem(
                f"{engine_path} has no option {flag}",
                expected="a llama-server of October 2026 or newer",
                remedy="update it, or unset LLAMA_SERVER to use the bundled build",
            )
    words += _steady(options)
    return [str(engine_path), *(word for group in words for word in group), *config.extra_args]


def user_argv(config: ServerConfig) -> list[str]:
    """Return what a user types to serve a configuration: without address, key and what only measuring needs."""
    kept = {"--model", "--ctx-size", "--flash-attn", "--gpu-layers", "--cache-type-k", "--cache-type-v"}
    groups = [words for words in _words(config, 0, Path()) if words[0] in kept or words[0].startswith("--spec-")]
    defaults = {("--cache-type-k", "f16"), ("--cache-type-v", "f16"), ("--flash-attn", "auto")}
    return ["llama-server", *(word for words in groups if words not in defaults for word in words), *config.extra_args]


def _words(config: ServerConfig, port: int, key_file: Path) -> Iterator[tuple[str, ...]]:
    if config.model is None:
        raise Problem("a server without a model cannot be started", expected="a target")
    yield from (
        ("--model", str(config.model.resolve())),
        ("--host", "127.0.0.1"),
        ("--port", str(port)),
        ("--api-key-file", str(key_file)),
        ("--metrics",),
        ("--slots",),
        ("--ctx-size", str(config.context * config.parallel)),
        ("--batch-size", str(config.batch)),
        ("--ubatch-size", str(config.ubatch)),
        ("--threads", str(config.threads)),
        ("--threads-batch", str(config.threads)),
        ("--parallel", str(config.parallel)),
        ("--cache-type-k", config.kv_k),
        ("--cache-type-v", config.kv_v),
        ("--flash-attn", config.flash_attn),
    )
    yield from _layers("--gpu-layers", config.gpu_layers)
    yield from _speculation(config)
    if config.slot_save_path is not None:
        yield ("--slot-save-path", str(config.slot_save_path.resolve()))


def _layers(flag: str, layers: int) -> Iterator[tuple[str, ...]]:
    if layers != -1:
        yield (flag, "all" if layers < 0 else str(layers))


def _speculation(config: ServerConfig) -> Iterator[tuple[str, ...]]:
    kind = config.spec_type
    if kind == "none":
        if config.drafter or config.n_max:
            raise Problem(
                f"a drafter or n_max {config.n_max} with spec_type none: nothing would draft",
                expected="a spec_type, or neither of them",
            )
        return
    yield ("--spec-type", kind)
    if config.drafter:
        yield ("--spec-draft-model", str(config.drafter.resolve()))
        yield from _layers("--spec-draft-ngl", config.drafter_gpu_layers)
    yield from _draft_lengths(config)
    if config.p_min:
        if not kind.startswith("draft-"):
            raise Problem(f"spec_type {kind} has no p_min", expected="p_min 0")
        yield ("--spec-draft-p-min", f"{config.p_min:g}")


def _draft_lengths(config: ServerConfig) -> Iterator[tuple[str, ...]]:
    kind = config.spec_type
    most, least = _LENGTH_FLAGS.get(kind, (None, None))
    if most:
        if config.n_max < 1:
            raise Problem(f"spec_type {kind} with n_max {config.n_max}", expected="n_max of at least 1")
        if kind == "ngram-simple" and config.n_max < (lookup := _lookup_length(config.extra_args)):
            raise Problem(
                f"ngram-simple with n_max {config.n_max} and n-grams of {lookup} drafts nothing",
                expected="n_max of at least the n-gram's length",
                remedy=f"set {_LOOKUP_FLAG}",
            )
        yield (most, str(config.n_max))
    if config.n_min:
        if not least:
            raise Problem(f"spec_type {kind} has no n_min", expected="n_min 0")
        yield (least, str(config.n_min))


def _lookup_length(extra_args: tuple[str, ...]) -> int:
    """Return the length of the n-gram that ngram-simple looks up; it never drafts fewer tokens than that."""
    given = [value for flag, value in pairwise(extra_args) if flag == _LOOKUP_FLAG]
    return int(given[-1]) if given and given[-1].isdigit() else _LOOKUP_DEFAULT


def _steady(options: frozenset[str]) -> Iterator[tuple[str, ...]]:
    for names, value in _STEADY:
        known = next((name for name in names if name in options), None)
        if known:
            yield (known, *value)
