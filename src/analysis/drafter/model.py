"""The drafter in torch: a few layers that read the target's hidden states, a Markov head and a confidence head.

DSpark as llama.cpp runs it: the block is the last committed token followed by mask tokens; every place of it
attends to what the target thought of the tokens before, and to the places before it in the block. Embedding and
output are the target's. The logits of a place are biased by the token before it (the Markov head, of low rank).

Weights are a plain mapping from the checkpoint's names to tensors.
"""

from dataclasses import dataclass

from analysis.drafter.shapes import Shape
from analysis.drafter.target import Target
from analysis.drafter.torchlib import Tensor, functional, rms_norm, rotary_table, rotate, torch

Weights = dict[str, Tensor]

MARKOV_IN = "markov_head.markov_w1.weight"
MARKOV_OUT = "markov_head.markov_w2.weight"
CONFIDENCE = "confidence_head.proj.weight"
CONFIDENCE_BIAS = "confidence_head.proj.bias"

# Checkpoint names of a layer's matrices, and what they are called in the target's GGUF file.
MATRICES = {
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}
NORMS = {"input_layernorm": "attn_norm", "post_attention_layernorm": "ffn_norm"}


def initial_weights(shape: Shape, target: Target, seed: int) -> Weights:
    """Return float32 weights to start from: the target's last layers, and a fusion that passes on the last tap.

    A narrower feed-forward keeps the first of the target's neurons. Started at random the drafter learns far
    more slowly.
    """
    torch.manual_seed(seed)
    weights: Weights = {}
    for index in range(shape.layers):
        source = target.layers[len(target.layers) - shape.layers + index]
        for name, origin in MATRICES.items():
            weights[f"layers.{index}.{name}.weight"] = _fitted(source[origin].float().cpu(), name, shape)
        for name, origin in NORMS.items():
            weights[f"layers.{index}.{name}.weight"] = source[origin].float().cpu().clone()
        for name in ("self_attn.q_norm", "self_attn.k_norm"):
            weights[f"layers.{index}.{name}.weight"] = torch.full((shape.head_dim,), 1.5)
    fusion = torch.randn(shape.hidden, len(shape.taps) * shape.hidden) * 0.02
    fusion[:, -shape.hidden :] += torch.eye(shape.hidden)
    weights["fc.weight"] = fusion
    weights["hidden_norm.weight"] = target.layers[-1]["attn_norm"].float().cpu().clone()
    weights["norm.weight"] = target.norm.float().cpu().clone()
    weights[MARKOV_IN] = torch.randn(shape.vocabulary, shape.rank) * 0.05
    weights[MARKOV_OUT] = torch.zeros(shape.vocabulary, shape.rank)
    weights[CONFIDENCE] = torch.zeros(1, shape.hidden + shape.rank)
    weights[CONFIDENCE_BIAS] = torch.zeros(1)
    return {name: value.to(target.device).contiguous() for name, value in weights.items()}


def _fitted(matrix: Tensor, name: str, shape: Shape) -> Tensor:
    if name in ("mlp.gate_proj", "mlp.up_proj"):
        return matrix[: shape.ffn].clone()
    return matrix[:, : shape.ffn].clone() if name == "mlp.down_proj" else matrix.clone()


@dataclass(frozen=True)
class Block:
    """What a batch of drafts sees: rotary angles of queries and keys, and who attends to whom.

    `visible` is [batch, 1, anchors * size, length + anchors * size].
    """

    cos_q: Tensor
    sin_q: Tensor
    cos_k: Tensor
    sin_k: Tensor
    visible: Tensor


def draft_states(
    weights: Weights, shape: Shape, target: Target, ids: Tensor, features: Tensor, anchors: Tensor, size: int
) -> Tensor:
    """Return the normed hidden states from which tokens are drafted.

    Args:
        weights: the drafter.
        shape: its dimensions.
        target: the model whose embedding it borrows.
        ids: texts [batch, length].
        features: what `target.forward` saw in them [batch, length, taps * hidden].
        anchors: places of the last committed tokens [batch, anchors]; a draft from there sees features before it.
        size: number of tokens to draft.

    Returns:
        States [batch, anchors, size, hidden]: place k drafts the token at `anchor + k + 1`.
    """
    batch, count = anchors.shape
    noise = torch.full((batch, count, size), shape.mask_token, device=ids.device, dtype=torch.long)
    noise[:, :, 0] = torch.gather(ids, 1, anchors)
    x = target.embed[noise.flatten(1)].float()
    context = rms_norm(features @ weights["fc.weight"].t(), weights["hidden_norm.weight"], shape.eps)
    block = _block(shape, ids.shape[1], anchors, size)
    for index in range(shape.layers):
        x = _layer(weights, f"layers.{index}.", shape, x, context.to(target.embed.dtype), block)
    return rms_norm(x, weights["norm.weight"], shape.eps).unflatten(1, (count, size))


def _block(shape: Shape, length: int, anchors: Tensor, size: int) -> Block:
    device, count = anchors.device, anchors.shape[1]
    places = torch.arange(length, device=device)
    queries = (anchors[:, :, None] + torch.arange(size, device=device)).flatten(1)
    keys = torch.cat([places.expand(len(anchors), -1), queries], 1)
    cos, sin = rotary_table(length + size, shape.head_dim, shape.theta, str(device))
    owner = torch.arange(count * size, device=device) // size
    turn = torch.arange(count * size, device=device) % size
    own = (owner[:, None] == owner) & (turn[:, None] >= turn)
    before = (places < anchors[:, :, None]).repeat_interleave(size, 1)
    visible = torch.cat([before, own.expand(len(anchors), -1, -1)], -1)[:, None]
    queries, keys = queries[:, :, None], keys[:, :, None]  # one angle for all heads
    return Block(cos[queries], sin[queries], cos[keys], sin[keys], visible)


def _layer(weights: Weights, prefix: str, shape: Shape, x: Tensor, context: Tensor, block: Block) -> Tensor:
    def matrix(name: str) -> Tensor:
        return weights[f"{prefix}{name}.weight"].t()

    def norm(values: Tensor, name: str) -> Tensor:
        return rms_norm(values, weights[f"{prefix}{name}.weight"], shape.eps)

    def heads(values: Tensor, count: int) -> Tensor:
        return values.unflatten(-1, (count, shape.head_dim))

    normed = norm(x, "input_layernorm")
    both = torch.cat([context, normed.to(context.dtype)], 1)
    q = norm(heads(normed @ matrix("self_attn.q_proj"), shape.heads), "self_attn.q_norm")
    k = norm(heads(both @ matrix("self_attn.k_proj"), shape.kv_heads), "self_attn.k_norm")
    v = heads(both @ matrix("self_attn.v_proj"), shape.kv_heads)
    q, k = rotate(q, block.cos_q, block.sin_q), rotate(k, block.cos_k, block.sin_k)
    repeat = shape.heads // shape.kv_heads
    q, k, v = (
        t.transpose(1, 2).to(context.dtype) for t in (q, k.repeat_interleave(repeat, 2), v.repeat_interleave(repeat, 2))
    )
    mixed = functional.scaled_dot_product_attention(q, k, v, attn_mask=block.visible)
    x = x + mixed.transpose(1, 2).flatten(2) @ matrix("self_attn.o_proj")
    normed = norm(x, "post_attention_layernorm")
    gated = functional.silu(normed @ matrix("mlp.gate_proj")) * (normed @ matrix("mlp.up_proj"))
    return x + gated @ matrix("mlp.down_proj")


def chain(weights: Weights, target: Target, states: Tensor, first: Tensor) -> tuple[Tensor, Tensor]:
    """Draft greedily, each token biased by the one drafted before it, as the engine does.

    Args:
        weights: the drafter.
        target: the model whose output matrix it borrows.
        states: [rows, size, hidden] from `draft_states`.
        first: the committed tokens [rows].

    Returns:
        Drafted tokens [rows, size] and the confidence head's probabilities [rows, size].
    """
    drafted, trust, previous = [], [], first
    dtype = target.embed.dtype
    for place in range(states.shape[1]):
        state, markov = states[:, place].to(dtype), weights[MARKOV_IN][previous]
        logits = target.logits(state) + markov @ weights[MARKOV_OUT].t()
        trust.append(torch.sigmoid(confidence(weights, state.float(), markov)))
        previous = logits.argmax(-1)
        drafted.append(previous)
    return torch.stack(drafted, 1), torch.stack(trust, 1)


def confidence(weights: Weights, states: Tensor, markov: Tensor) -> Tensor:
    """Return the confidence head's log odds [rows] that the target will agree."""
    return torch.cat([states, markov], -1) @ weights[CONFIDENCE][0] + weights[CONFIDENCE_BIAS]
