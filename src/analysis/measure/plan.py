"""What is to be measured: a grid's size, the legs of a pair, and the cells they span."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Annotated

from pydantic import Field

from analysis.convert.named import read_toml
from analysis.launch import FoundEngine, ServerConfig
from analysis.records import Cell, Engine, Known, Machine, Pair, Problem, Regime
from analysis.records.model import REGIMES, Fill, Positive, parse, record
from analysis.records.places import data_dir

Leg = str
RAW: Leg = "raw"
DRAFTED: Leg = "drafted"
CONTROL: Leg = "control"


@record
class Grid:
    """The size of a measurement: which depths (tokens), regimes and how many prompts a cell.

    `local_tokens` is the length of the text that is the same at every depth and ends with the stub; depth is
    added in front of it. `n_predict` is the number of tokens to generate a sample. `control` adds a second raw server:
    between it and the first no factor can act, so that their ratio shows what noise alone does.
    """

    title: str
    depths: Annotated[tuple[Positive, ...], Field(min_length=1)]
    regimes: Annotated[tuple[Regime, ...], Field(min_length=1)] = REGIMES
    prompts: Positive
    n_predict: Annotated[int, Field(ge=2)] = 192
    local_tokens: Positive = 512
    temperature: Annotated[float, Field(ge=0)] = 0.0
    seed: int = 0
    fill: Fill = "reused"
    control: bool = False

    def __post_init__(self) -> None:
        """Refuse a grid that no prompt can satisfy."""
        if self.local_tokens > min(self.depths):
            raise ValueError(
                f"local_tokens is {self.local_tokens}, deeper than the shallowest depth {min(self.depths)}"
            )
        if list(self.depths) != sorted(set(self.depths)):
            raise ValueError(f"depths {list(self.depths)} are not ascending and distinct")


def list_grids() -> list[str]:
    """Return the names of the grids in `data/grids`."""
    return sorted(file.stem for file in (data_dir() / "grids").glob("*.toml"))


def load_grid(name: str, **changes: object) -> Grid:
    """Return a named grid; `changes` replace fields of it, and a change that is None is none.

    A single depth or regime may stand for a list of one, as `papermill -p depths 2048` gives it.

    Raises:
        Problem: the name is unknown, or the grid contradicts itself.
    """
    known = list_grids()
    if name not in known:
        near = get_close_matches(name, known, n=1)
        hint = f"did you mean {near[0]}?" if near else ""
        raise Problem(f"no profile named {name!r}", expected=f"one of {', '.join(known)}", remedy=hint)
    file = data_dir() / "grids" / f"{name}.toml"
    data = read_toml(file)
    data |= {key: value for key, value in changes.items() if value is not None}
    for field in ("depths", "regimes"):
        if isinstance(data.get(field), int | str):
            data[field] = [data[field]]
    named = data.get("regimes")
    for regime in named if isinstance(named, list | tuple) else ():
        if regime not in REGIMES:
            raise Problem(f"no regime named {regime!r}", expected=f"one of {', '.join(REGIMES)}")
    grid = parse(Grid, data | {"local_tokens": 1}, where=f"profile {name}")
    wanted = data.get("local_tokens", Grid.local_tokens)
    if "local_tokens" not in changes and isinstance(wanted, int):
        wanted = min(wanted, *grid.depths)
    return parse(Grid, data | {"local_tokens": wanted}, where=f"profile {name}")


@dataclass(frozen=True)
class LegPlan:
    """One arm of a comparison: how its server is started, and the hashes of its files.

    `found` is the server of this leg alone, where each leg has one that somebody else runs. `at_once` is the number of
    requests that are made at the same time: as many as the server has slots, or one of a server that somebody else
    runs, whose slots may be others' too. Of such a server, `said_alike` says that who measures knows its settings to be
    those of the run, and `method` who says how it drafts.
    """

    leg: Leg
    pair: Pair
    config: ServerConfig
    target_sha256: str = ""
    drafter_sha256: str = ""
    found: FoundEngine | None = None
    at_once: int = 1
    said_alike: bool = False
    method: Known = ""

    def cell(self, grid: Grid, *, depth: int, regime: Regime, machine: Machine, engine: Engine) -> Cell:
        """Return the cell of this leg at one depth and regime."""
        config = self.config
        return Cell(
            machine=machine.name,
            engine=f"{engine.version} {engine.commit}".strip(),
            backend=engine.backend,
            pair=self.pair.name,
            spec_type=config.spec_type,
            n_max=config.n_max,
            n_min=config.n_min,
            p_min=config.p_min,
            depth=depth,
            regime=regime,
            local_tokens=grid.local_tokens,
            fill=grid.fill,
            temperature=grid.temperature,
            n_predict=grid.n_predict,
            kv_k=config.kv_k,
            kv_v=config.kv_v,
            flash_attn=config.flash_attn,
            context=config.context,
            batch=config.batch,
            ubatch=config.ubatch,
            threads=config.threads,
            parallel=config.parallel,
            target_sha256=self.target_sha256,
            drafter_sha256=self.drafter_sha256,
        )

    def cells(self, grid: Grid, *, machine: Machine, engine: Engine) -> list[Cell]:
        """Return this leg's cells, shallow ones first."""
        return [
            self.cell(grid, depth=depth, regime=regime, machine=machine, engine=engine)
            for depth in grid.depths
            for regime in grid.regimes
        ]


def raw_leg(drafted: LegPlan) -> LegPlan:
    """Return the leg that answers "and without it?": the same target, no drafter loaded."""
    config = replace(drafted.config, drafter=None, spec_type="none", n_max=0, n_min=0, p_min=0.0)
    return replace(drafted, leg=RAW, config=config, drafter_sha256="")


def control_leg(raw: LegPlan) -> LegPlan:
    """Return the negative control of a raw leg: another server, served alike, measuring the same cells."""
    return replace(raw, leg=CONTROL)


def check_context(grid: Grid, context: int, parallel: int = 1) -> None:
    """Refuse a grid whose deepest sample does not fit into the server's context.

    Raises:
        Problem: depth plus generation is longer than one slot's context.
    """
    needed = max(grid.depths) + grid.n_predict
    if needed > context // parallel:
        raise Problem(
            f"depth {max(grid.depths)} and {grid.n_predict} generated tokens need {needed} tokens of context",
            expected=f"at most {context // parallel}, which a slot of this server has",
            remedy="choose smaller depths or a larger context",
        )


def check_together(grid: Grid, at_once: int) -> None:
    """Refuse a grid that cannot be measured with several requests at once.

    Raises:
        Problem: another fill than `reused`, since each slot holds its context before its sample begins; or fewer
            prompts than requests at once, so that one would keep itself company.
    """
    if at_once == 1:
        return
    if grid.fill != "reused":
        raise Problem(f"{at_once} requests at once with fill {grid.fill}", expected="fill reused")
    if grid.prompts < at_once:
        raise Problem(
            f"{at_once} requests at once with {grid.prompts} prompts a cell",
            expected=f"at least {at_once} prompts",
            remedy="ask for more prompts (--prompts)",
        )


def balanced_order(legs: Sequence[LegPlan], block: int) -> list[LegPlan]:
    """Return the legs in the order of one block: AB, BA, BA, AB, ... so that no leg is always first."""
    forward = block % 4 in (0, 3)
    return list(legs) if forward else list(reversed(legs))
