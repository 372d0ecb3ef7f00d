"""Measuring a server that somebody else runs: what it must say of itself first, and what stays unknown."""

from dataclasses import replace
from pathlib import Path

from analysis.convert.fetch import models_dir
from analysis.convert.gguf import read_gguf
from analysis.launch import (
    Attached,
    Client,
    FoundEngine,
    ServerConfig,
    describe,
    is_local,
    read_machine,
    resolve_engine,
)
from analysis.measure.access import ServerAccess
from analysis.measure.plan import DRAFTED, RAW, Grid, LegPlan, check_context
from analysis.records import Machine, Pair, Problem, Source
from analysis.records.places import repo_dir

NOT_TOLD = frozenset({"kv_k", "kv_v", "flash_attn", "batch", "ubatch", "threads", "target_sha256", "drafter_sha256"})
"""Fields of a cell that a server tells nobody. They keep the engine's defaults, which no page shows as measured."""

UNKNOWN_MACHINE = Machine(name="remote", cpu="a machine that is not known", cores=1, memory=0, os="not known")


def attach_to(access: ServerAccess) -> tuple[FoundEngine, Attached]:
    """Return a running server and what it says of itself.

    Raises:
        Problem: it cannot be reached, wants a key, or is no llama-server.
    """
    key = access.key()
    found = resolve_engine(access.url, api_key=key)
    with Client(access.url, key) as client:
        return found, describe(client)


def attached_leg(pair: Pair, seen: Attached, grid: Grid) -> LegPlan:
    """Return the leg of a running server, after holding what it says against the pair and the grid.

    The settings that no server tells (`NOT_TOLD`) keep the engine's defaults in the cells.

    Raises:
        Problem: it does not say how long its context is, its context is too short, it holds another model than the
            pair's target, or it drafts where the pair does not or the other way round.
    """
    if seen.context is None:
        raise Problem(
            f"the server (build {seen.build or 'not told'}) does not say how long its context is",
            expected="n_ctx in /props or /slots",
            remedy="start it with --slots, or update it",
        )
    check_context(grid, seen.context)
    _check_drafting(pair, seen)
    check_model(pair, seen)
    config = ServerConfig(
        model=None,
        spec_type=pair.spec_type,
        n_max=pair.n_max,
        n_min=pair.n_min,
        p_min=pair.p_min,
        context=seen.context,
        parallel=seen.slots or 1,
    )
    return LegPlan(leg=RAW if pair.spec_type == "none" else DRAFTED, pair=pair, config=config)


def check_model(pair: Pair, seen: Attached) -> None:
    """Hold the model that a server counted when it loaded it against the pair's target, where that is here.

    A name is no proof: what is compared is the size of the vocabulary and the number of parameters.

    Raises:
        Problem: they differ.
    """
    file = target_here(pair.target)
    if file is None:
        return
    header = read_gguf(file)
    known = {"tokens in its vocabulary": header.vocabulary_size, "parameters": header.parameters}
    said = {"tokens in its vocabulary": seen.vocabulary, "parameters": seen.parameters}
    for what, count in known.items():
        if said[what] is not None and count is not None and said[what] != count:
            raise Problem(
                f"the server calls its model {seen.model or seen.alias!r} and counts {said[what]:,} {what}",
                expected=f"{count:,}, as the target of the pair {pair.name} has",
                remedy="name the pair that this server serves (-p pair ...), or ask who runs it",
            )


def target_here(source: Source) -> Path | None:
    """Return a target's file if it is on this machine already; nothing is fetched."""
    if source.kind == "wheel":
        found = sorted(models_dir().glob(f"{source.sha256[:16]}-*")) if source.sha256 else []
        return found[0] if found else None
    path = repo_dir() / source.file if source.kind == "repo" else Path(source.file).expanduser()
    return path if source.kind != "hub" and path.is_file() else None


def machine_of(access: ServerAccess) -> Machine:
    """Return the machine that measures: this one, unless the server runs elsewhere and does not say on what."""
    machine = read_machine()
    if not access.url or is_local(access.url):
        return machine
    return replace(UNKNOWN_MACHINE, name=f"remote-to-{machine.name}"[:60])


def _check_drafting(pair: Pair, seen: Attached) -> None:
    drafts = pair.spec_type != "none"
    if seen.speculative is None or seen.speculative == drafts:
        return
    start = "with --spec-type and its drafter" if drafts else "without a drafter"
    raise Problem(
        f"the server says that it {'drafts' if seen.speculative else 'drafts nothing'}",
        expected=f"a server that {'drafts' if drafts else 'does not'}, as the pair {pair.name} says",
        remedy=f"name the pair that this server serves, or start it {start}",
    )
