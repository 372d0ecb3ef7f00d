"""What a step of training minimises, and its gradient, a slice of rows at a time.

The logits of a step (tens of thousands of rows over the vocabulary) do not fit in memory as a graph, so the
gradient with respect to hidden states, Markov features and the Markov output is computed here by hand.
"""

from dataclasses import dataclass
from typing import NamedTuple

from analysis.drafter.shapes import Schedule
from analysis.drafter.torchlib import Tensor, product32, torch


@dataclass(frozen=True)
class HeadInput:
    """Rows of drafted places, a whole block of `size` places after another.

    `states` [rows, hidden] and `markov` [rows, rank] are the drafter's, `teacher` [rows, hidden] the target's
    last normed hidden states; `valid` [rows] marks places inside an answer. `embed` [some, hidden] and
    `markov_out` [some, rank] are the rows of the output for the part of the vocabulary that this step looks at.
    """

    states: Tensor
    markov: Tensor
    teacher: Tensor
    valid: Tensor
    embed: Tensor
    markov_out: Tensor
    size: int


@dataclass(frozen=True)
class HeadGradient:
    """The loss, its gradients, and what drafting looked like: `agrees` [rows] and `overlap` [rows]."""

    loss: Tensor
    states: Tensor
    markov: Tensor
    markov_out: Tensor
    agrees: Tensor
    overlap: Tensor
    weights: Tensor


def head_gradient(given: HeadInput, schedule: Schedule) -> HeadGradient:
    """Return loss and gradient of the drafting head.

    With p the target's distribution, sharpened because drafts are picked greedily, and q the drafter's, a
    place costs `(1 - distance) * cross_entropy(p, q) + distance * sum|q - p|`. The second term is twice the total
    variation, one minus which is the chance of acceptance under speculative sampling (Leviathan et al. 2023,
    section 3.2). Places are weighted by `place_weights`, and the weights sum to one.
    """
    rows, hidden = given.states.shape
    dtype = given.embed.dtype
    output = torch.cat([given.embed, given.markov_out.to(dtype)], 1)
    inputs = torch.cat([given.states, given.markov], 1).to(dtype)
    gradient = torch.zeros_like(inputs)
    markov_out = torch.zeros_like(given.markov_out)
    agrees = torch.zeros(rows, dtype=torch.bool, device=inputs.device)
    overlap, weights = (torch.zeros(rows, device=inputs.device) for _ in range(2))
    loss, slice_rows = torch.zeros((), device=inputs.device), schedule.rows // given.size * given.size
    for begin in range(0, rows, slice_rows):
        part = slice(begin, begin + slice_rows)
        drafted = product32(inputs[part], output.t())
        wanted = product32(given.teacher[part].to(dtype), given.embed.t()) / schedule.sharpness
        seen = judged(drafted, wanted)
        agrees[part], overlap[part] = seen.agrees, seen.overlap
        weights[part] = weight = place_weights(seen.overlap, given.valid[part], given.size, schedule.floor)
        cost = (1 - schedule.distance) * seen.entropy + schedule.distance * 2 * (1 - seen.overlap)
        loss += (weight * cost).sum()
        change = slope(drafted, wanted, seen, weight, schedule.distance).to(dtype)
        gradient[part] = change @ output
        markov_out += (change.t() @ inputs[part, hidden:]).to(markov_out.dtype)
    total = weights.sum().clamp_min(1e-6)
    gradient = gradient.float() / total
    return HeadGradient(
        loss=loss / total,
        states=gradient[:, :hidden],
        markov=gradient[:, hidden:],
        markov_out=markov_out / total,
        agrees=agrees,
        overlap=overlap,
        weights=weights / total,
    )


class Judged(NamedTuple):
    """How drafted logits compare with wanted ones, a row each: whether both choose the same token, how much the
    distributions overlap, their cross entropy, and the logarithms of their sums.
    """

    agrees: Tensor
    overlap: Tensor
    entropy: Tensor
    drafted_mass: Tensor
    wanted_mass: Tensor


def judged(drafted: Tensor, wanted: Tensor) -> Judged:
    """Compare logits [rows, some]."""
    drafted_mass, wanted_mass = drafted.logsumexp(-1), wanted.logsumexp(-1)
    p = (wanted - wanted_mass[:, None]).exp()
    q = (drafted - drafted_mass[:, None]).exp()
    return Judged(
        agrees=drafted.argmax(-1) == wanted.argmax(-1),
        overlap=torch.minimum(p, q).sum(-1),
        entropy=drafted_mass - (p * drafted).sum(-1),
        drafted_mass=drafted_mass,
        wanted_mass=wanted_mass,
    )


def slope(drafted: Tensor, wanted: Tensor, seen: Judged, weight: Tensor, distance: float) -> Tensor:
    """Return the gradient of the weighted cost with respect to the drafted logits [rows, some]."""
    p = (wanted - seen.wanted_mass[:, None]).exp()
    q = (drafted - seen.drafted_mass[:, None]).exp()
    sign = (q - p).sign()
    of_distance = (sign - (q * sign).sum(-1, keepdim=True)) * q
    return ((1 - distance) * (q - p) + distance * of_distance) * weight[:, None]


def place_weights(overlap: Tensor, valid: Tensor, size: int, floor: float) -> Tensor:
    """Return how much each place matters to the expected accepted length, not normalised.

    With a_k the chance that place k is accepted, the expected length sum_k a_1..a_k changes with a_j by
    `a_1..a_(j-1) * (1 + a_(j+1) + a_(j+1) a_(j+2) + ...)`. A `floor` keeps later places learning while
    earlier ones are still poor.
    """
    chance = (overlap * valid).reshape(-1, size)
    reach = torch.cat([torch.ones_like(chance[:, :1]), chance[:, :-1].cumprod(1)], 1)
    gain = torch.ones_like(chance)
    for place in range(size - 2, -1, -1):
        gain[:, place] = 1 + chance[:, place + 1] * gain[:, place + 1]
    return ((floor + (1 - floor) * reach * gain).flatten()) * valid
