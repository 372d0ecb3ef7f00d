"""In which order the dimensions of a drafter's heads stand, seen in its weights: no header tells of that.

A rotary embedding turns two dimensions of a head by one angle. Rows of queries and keys that turn together can be mixed
by any common angle without a change of q·k, so training favours neither of them, and how much a head uses a frequency
is a smooth curve over frequencies. Plotted in the right order, the energies (sums of squares) of a head's rows follow
such a curve; in a wrong order they jump. Each head votes for the order whose curve explains most of its energies.

Found on the drafter of the shipped one's first training (34 of 36 heads vote for its order) and tried on others: the
shipped drafter (33 of 36), an earlier one of another training (31 of 36), and the 360 heads of their target, which
stands in the other order (330). Copies in a wrong order get 0 to 2 votes of 36 for the order they claim. All of these
are one family of models, so a contrary vote warns and does not refuse. Weights that learnt nothing do not agree on an
order, and those of the synthetic DeepSeek-V4 drafter did not learn.
"""

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from analysis.convert.compare import read_rows
from analysis.convert.gguf import GGUFFile, Tensor, read_gguf

ENOUGH_HEADS = 12
"""Heads of queries and keys below which no vote is counted: by chance alone 9 of 12 agree once in 2,500 times."""

MAJORITY = 0.75
"""Share of the heads that must vote for one order before it is believed."""

DEGREE = 4
"""Degree of the curve over frequencies; from 2 to 6 the votes named above move by at most five."""

Direction = Literal["to pairs", "to halves"]
_HEADS = re.compile(r"^blk\.\d+\.attn_[qk]\.weight$")
Order = NDArray[np.int64]


@dataclass(frozen=True)
class Votes:
    """How many heads of queries and keys favour each order of their dimensions."""

    heads: int
    by_order: Mapping[str, int]

    @property
    def order(self) -> str:
        """Return the order that enough heads agree on, or an empty string."""
        name = max(self.by_order, key=lambda name: self.by_order[name])
        return name if self.heads >= ENOUGH_HEADS and self.by_order[name] >= MAJORITY * self.heads else ""


def rotary_order(width: int, direction: Direction) -> list[int]:
    """Return which dimension of a head of `width` comes to stand at each place when a converter reorders it."""
    pairs = [place // 2 + (place % 2) * (width // 2) for place in range(width)]
    return pairs if direction == "to pairs" else [pairs.index(place) for place in range(width)]


def orders(width: int) -> dict[str, Order]:
    """Return the orders a head of `width` rotated dimensions is found in: the frequency at each place.

    `halves` turns dimension i with i + width/2 (NeoX), `pairs` neighbours. The others are what becomes of a head that
    is converted from one to the other though it stood in the other already.
    """
    halves, pairs = np.arange(width) % (width // 2), np.arange(width) // 2
    return {
        "halves": halves,
        "pairs": pairs,
        "halves, reordered once more": halves[rotary_order(width, "to halves")],
        "pairs, reordered once more": pairs[rotary_order(width, "to pairs")],
    }


def rotary_votes(file: GGUFFile) -> Votes | None:
    """Return how the heads of a drafter vote; None where it has no separate queries and keys of known head width.

    Raises:
        Problem: a tensor's type cannot be read back.
    """
    stamp = file.path.stat()
    return _votes(file.path, (stamp.st_ino, stamp.st_size, stamp.st_mtime_ns))


@lru_cache(maxsize=16)
def _votes(path: Path, _stamp: tuple[int, ...]) -> Votes | None:
    file = read_gguf(path)
    hidden, heads = file.number("{arch}.embedding_length"), file.number("{arch}.attention.head_count")
    head = file.number("{arch}.attention.key_length") or (hidden // heads if hidden and heads else None)
    width = file.number("{arch}.rope.dimension_count") or head
    tensors = [tensor for tensor in file.tensors if _HEADS.match(tensor.name)]
    if not head or not width or not 4 * DEGREE <= width <= head or width % 2 or not tensors:
        return None
    if any(tensor.parameters // tensor.shape[0] % head for tensor in tensors):
        return None
    found = np.concatenate([_energies(path, tensor, head)[:, :width] for tensor in tensors])
    explained = {name: _explained(found, frequency) for name, frequency in orders(width).items()}
    names = list(explained)
    best = Counter(names[place] for place in np.stack([explained[name] for name in names]).argmax(axis=0))
    return Votes(len(found), {name: best[name] for name in names})


def _energies(path: Path, tensor: Tensor, head: int) -> NDArray[np.float64]:
    """Return the logarithms of the energies of a tensor's rows, one line a head."""
    with path.open("rb") as source:
        rows = np.concatenate([np.einsum("ij,ij->i", part, part) for part in read_rows(source, tensor)])
    return np.asarray(np.log(rows.astype(np.float64) + 1e-30).reshape(-1, head), np.float64)


def _explained(energies: NDArray[np.float64], frequency: Order) -> NDArray[np.float64]:
    """Return the share of each head's variance that a smooth curve over frequencies explains."""
    centred = energies - energies.mean(axis=1, keepdims=True)
    place = 2 * (frequency + 0.5) / (frequency.max() + 1) - 1
    curve, _ = np.linalg.qr(np.polynomial.legendre.legvander(place, DEGREE))
    whole = np.maximum((centred**2).sum(axis=1), 1e-30)
    return np.asarray(((centred @ curve) ** 2).sum(axis=1) / whole, np.float64)
