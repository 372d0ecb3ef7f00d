"""How a pair's server is started: by the pair's own settings, or as a published row was served."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from analysis.convert.pairs import load_pair, load_profile
from analysis.launch import ServerConfig
from analysis.launch.host import usable_cores
from analysis.records import Pair, Profile

_PAIR_FIELDS = ("n_max", "n_min", "p_min", "context")
_CONFIG_FIELDS = ("kv_k", "kv_v", "flash_attn", "gpu_layers", "drafter_gpu_layers")


@dataclass(frozen=True)
class Serving:
    """A pair as it is to be served, the fields of the grid that a published row fixes, and the row's profile.

    `changes` replace fields of `ServerConfig` that neither pair nor profile sets, or that they set otherwise.
    """

    pair: Pair
    size: Mapping[str, Any]
    profile: Profile | None = None
    changes: Mapping[str, Any] = field(default_factory=dict)

    def config(self, target: Path, drafter: Path | None) -> ServerConfig:
        """Return how the server of the pair's drafted leg is started."""
        pair = self.pair
        settings: dict[str, Any] = {"flash_attn": pair.flash_attn}
        if self.profile:
            settings = {name: getattr(self.profile, name) for name in _CONFIG_FIELDS}
        config = ServerConfig(
            model=target,
            drafter=drafter,
            spec_type=pair.spec_type,
            n_max=pair.n_max,
            n_min=pair.n_min,
            p_min=pair.p_min,
            context=pair.context,
            threads=usable_cores(),
            extra_args=pair.extra_args + (self.profile.extra_args if self.profile else ()),
            **settings,
        )
        return replace(config, **self.changes)


def serving_of(pair: str) -> Serving:
    """Return a pair as its own file says.

    Raises:
        Problem: no such pair.
    """
    return Serving(load_pair(pair), {})


def serving_as_published(profile: str) -> Serving:
    """Return the pair of a published row with the settings that the row states.

    What the row leaves open keeps the pair's setting. A row that was measured from a restored slot is filled here,
    because a restored slot has lost its drafter's context.

    Raises:
        Problem: no such profile, or no such pair.
    """
    row = load_profile(profile)
    pair = load_pair(row.pair)
    stated = {name: getattr(row, name) for name in _PAIR_FIELDS if getattr(row, name) is not None}
    size: dict[str, Any] = {"temperature": row.temperature, "n_predict": row.n_predict}
    if row.depth is not None:
        size["depths"] = [row.depth]
    if row.regime is not None:
        size["regimes"] = [row.regime]
    return Serving(replace(pair, **stated), {key: value for key, value in size.items() if value is not None}, row)
