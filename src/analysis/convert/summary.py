"""A model file in a few rows: its tensors by what they are for."""

import re
from dataclasses import dataclass

from analysis.convert.gguf import GGUFFile

# First match wins. Names are those of llama.cpp's architectures; a drafter's own parts come first, because a
# drafter also has blocks of attention and feed-forward layers.
GROUPS: tuple[tuple[str, str], ...] = (
    ("drafter: Markov head", r"markov_w[12]"),
    ("drafter: confidence head", r"conf_proj"),
    ("drafter: input projection", r"(fc|enc\.|d2t|.*nextn\.)"),
    ("hyper-connections", r"(blk\.\d+\.hc_|output_hc_)"),
    ("norms", r".*_norm(\.|$)"),
    ("embedding", r"(token_embd|per_layer_token_embd|position_embd)"),
    ("output", r"output(\.|$)"),
    ("experts", r"blk\.\d+\.ffn_(gate|up|down|gate_up)_exps"),
    ("router", r"blk\.\d+\.(ffn_gate_inp|ffn_gate_tid2eid|exp_probs_b)"),
    ("feed-forward", r"blk\.\d+\.ffn_"),
    ("attention: compressor and indexer", r"blk\.\d+\.(attn_compressor|indexer)"),
    ("attention", r"blk\.\d+\.attn_"),
)


@dataclass(frozen=True)
class Group:
    """Tensors with one purpose: how many, their types, values and bytes."""

    name: str
    tensors: int
    types: tuple[str, ...]
    parameters: int
    nbytes: int

    @property
    def bits_per_weight(self) -> float:
        """Return the stored bits a value, scales included."""
        return 8 * self.nbytes / self.parameters


def group_of(tensor: str) -> str:
    """Return the name of the group a tensor belongs to, `other` where no pattern fits."""
    return next((name for name, pattern in GROUPS if re.match(pattern, tensor)), "other")


def summarise(file: GGUFFile) -> tuple[Group, ...]:
    """Return the groups of a file that hold tensors, largest first."""
    rows = []
    for name in {group_of(tensor.name) for tensor in file.tensors}:
        members = [tensor for tensor in file.tensors if group_of(tensor.name) == name]
        rows.append(
            Group(
                name=name,
                tensors=len(members),
                types=tuple(sorted({tensor.type for tensor in members})),
                parameters=sum(tensor.parameters for tensor in members),
                nbytes=sum(tensor.nbytes for tensor in members),
            )
        )
    return tuple(sorted(rows, key=lambda group: (-group.nbytes, group.name)))
