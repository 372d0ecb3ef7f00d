"""What can be measured, and how it is served: model files, pairs, serving profiles.

The files of `data/pairs` and `data/profiles` are these records.
"""

from typing import Annotated, Literal

from pydantic import Field

from analysis.records.base import Count, Fill, Name, Positive, Regime, Share, SpecType, record


@record
class Source:
    """Where a model file comes from: a wheel, a hub repository, the checkout, a path, or a recipe of the book's own.

    `package` is `distribution==version` for wheels; `repo` and `revision` are a hub repository. A `fixture` is made
    on this machine: `package` is its kind (`dsv4`), `revision` its settings (`seed=1 agree=0.8`). So is a file of
    kind `quantized`, from the source `made_from` by a recipe of `data/recipes`; `file` is the name it gets. An empty
    `sha256` means that nobody published one; it is then recorded when the file is first read. An empty `file` or
    `repo` of the hub means that the publication does not name it. `stated_size` is a size as it was published,
    rounded and with its unit, where the exact `size` in bytes is not known.
    """

    kind: Literal["wheel", "hub", "repo", "path", "fixture", "quantized"]
    file: str
    package: str = ""
    repo: str = ""
    revision: str = ""
    sha256: Annotated[str, Field(pattern=r"^([0-9a-f]{64})?$")] = ""
    size: Count | None = None
    stated_size: str = ""
    licence: str = ""
    recipe: str = ""
    made_from: "Source | None" = None

    def __post_init__(self) -> None:
        """Refuse a source that does not say what it is made of, or says so and is not made."""
        made = self.kind == "quantized"
        if made != bool(self.recipe) or made != (self.made_from is not None):
            raise ValueError(f"{self.file}: kind 'quantized' goes with a recipe and [made_from], and only that kind")


@record
class Pair:
    """A target with what drafts for it: a drafter, a draft-free method, or nothing.

    `not_stated` names what the publication a pair was taken from leaves open, as dotted fields.
    """

    name: Name
    title: str
    target: Source
    spec_type: SpecType = "none"
    drafter: Source | None = None
    n_max: Count = 0
    n_min: Count = 0
    p_min: Share = 0.0
    context: Positive = 4096
    flash_attn: Literal["on", "off", "auto"] = "auto"
    extra_args: tuple[str, ...] = ()
    not_stated: tuple[str, ...] = ()
    note: str = ""

    def __post_init__(self) -> None:
        """Refuse a pair whose parts contradict each other."""
        needs_drafter = self.spec_type.startswith("draft-") and self.spec_type != "draft-mtp"
        if needs_drafter and self.drafter is None:
            raise ValueError(f"pair {self.name}: spec_type {self.spec_type} needs a [drafter]")
        if self.spec_type == "none" and (self.drafter is not None or self.n_max):
            raise ValueError(f"pair {self.name}: spec_type none drafts nothing; drop drafter and n_max")


@record
class Profile:
    """How a published row was served, so that an owner of that hardware can rerun it by name.

    `not_stated` names the fields the card leaves open; they hold the engine's defaults. Fields that no flag
    sets (`fill`, `temperature`, `n_predict`, `regime`, `prompt`) say what was asked of the server.
    """

    name: Name
    title: str
    card: Literal["A", "B", ""]
    section: str
    pair: Name
    machine: str
    engine: str
    n_max: Count | None = None
    n_min: Count | None = None
    p_min: Share | None = None
    context: Positive | None = None
    depth: Count | None = None
    kv_k: str = "f16"
    kv_v: str = "f16"
    flash_attn: Literal["on", "off", "auto"] = "auto"
    gpu_layers: int = -1
    drafter_gpu_layers: int = -1
    fill: Fill | None = None
    temperature: Annotated[float, Field(ge=0)] | None = None
    n_predict: Positive | None = None
    regime: Regime | None = None
    prompt: str = ""
    extra_args: tuple[str, ...] = ()
    not_stated: tuple[str, ...] = ()
    note: str = ""
