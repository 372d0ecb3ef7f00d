"""The numbers that decide which tensors a DeepSeek-V4 checkpoint holds, and its `config.json`."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Shape:
    """Sizes of a checkpoint. Fields are counts; `ratios` has the compression ratio of each layer (0, 4 or 128).

    K-quants need `hidden` and `intermediate` to be multiples of 256; `head_dim` must differ from `index_head_dim`,
    or the engine cannot tell the indexer's cache from the others.
    """

    hidden: int
    intermediate: int
    head_dim: int
    heads: int
    q_rank: int
    o_rank: int
    o_groups: int
    experts: int
    experts_used: int
    index_heads: int
    index_top: int
    vocabulary: int
    ratios: tuple[int, ...]
    markov_rank: int
    block_size: int = 5
    drafter_blocks: int = 3
    hash_layers: int = 3
    index_head_dim: int = 128
    rope_dim: int = 64
    streams: int = 4
    window: int = 128

    @property
    def layers(self) -> int:
        """Return the number of the target's layers."""
        return len(self.ratios)

    @property
    def taps(self) -> tuple[int, ...]:
        """Return the target layers whose output the drafter reads: the last ones."""
        return tuple(range(self.layers - self.drafter_blocks, self.layers))


TINY = Shape(
    hidden=256,
    intermediate=256,
    head_dim=256,
    heads=2,
    q_rank=128,
    o_rank=128,
    o_groups=2,
    experts=4,
    experts_used=2,
    index_heads=4,
    index_top=16,
    vocabulary=512,
    ratios=(0, 0, 4, 128, 4),
    markov_rank=64,
)

# As tiny, with experts that make up a checkpoint of 3.3 GB: for measuring the memory of a conversion.
LARGE = Shape(
    hidden=1024,
    intermediate=1024,
    head_dim=256,
    heads=4,
    q_rank=256,
    o_rank=256,
    o_groups=4,
    experts=256,
    experts_used=4,
    index_heads=4,
    index_top=64,
    vocabulary=512,
    ratios=(0, 0, 4, 128, 4),
    markov_rank=64,
)

# DeepSeek-V4-Flash-0731, from its published configuration.
FLASH = Shape(
    hidden=4096,
    intermediate=2048,
    head_dim=512,
    heads=64,
    q_rank=1024,
    o_rank=1024,
    o_groups=8,
    experts=256,
    experts_used=6,
    index_heads=64,
    index_top=512,
    vocabulary=129280,
    ratios=(0, 0, *(4, 128) * 20, 4),
    markov_rank=256,
)


# What a configuration says apart from sizes.
FIXED: dict[str, Any] = {
    "architectures": ["DeepseekV4ForCausalLM"],
    "attention_bias": False,
    "attention_dropout": 0.0,
    "bos_token_id": 0,
    "compress_rope_theta": 160000,
    "eos_token_id": 1,
    "expert_dtype": "fp4",
    "hc_eps": 1e-6,
    "hc_sinkhorn_iters": 20,
    "hidden_act": "silu",
    "initializer_range": 0.02,
    "max_position_embeddings": 1048576,
    "model_type": "deepseek_v4",
    "n_shared_experts": 1,
    "norm_topk_prob": True,
    "num_key_value_heads": 1,
    "num_nextn_predict_layers": 1,  # also with three DSpark blocks; the converter's --mtp stumbles over it
    "quantization_config": {
        "activation_scheme": "dynamic",
        "fmt": "e4m3",
        "quant_method": "fp8",
        "scale_fmt": "ue8m0",
        "weight_block_size": [128, 128],
    },
    "rms_norm_eps": 1e-6,
    "rope_scaling": {
        "beta_fast": 32,
        "beta_slow": 1,
        "factor": 16,
        "original_max_position_embeddings": 65536,
        "type": "yarn",
    },
    "rope_theta": 10000,
    "routed_scaling_factor": 1.5,
    "scoring_func": "sqrtsoftplus",
    "swiglu_limit": 10.0,
    "tie_word_embeddings": False,
    "topk_method": "noaux_tc",
    "torch_dtype": "bfloat16",
    "use_cache": True,
}


def config(shape: Shape, *, noise_token: int) -> dict[str, Any]:
    """Return the `config.json` of a checkpoint with DSpark blocks, with the keys of the 0731 release."""
    sizes = {
        "compress_ratios": [*shape.ratios, *[0] * shape.drafter_blocks],
        "dspark_block_size": shape.block_size,
        "dspark_markov_rank": shape.markov_rank,
        "dspark_noise_token_id": noise_token,
        "dspark_target_layer_ids": list(shape.taps),
        "hc_mult": shape.streams,
        "head_dim": shape.head_dim,
        "hidden_size": shape.hidden,
        "index_head_dim": shape.index_head_dim,
        "index_n_heads": shape.index_heads,
        "index_topk": shape.index_top,
        "moe_intermediate_size": shape.intermediate,
        "n_routed_experts": shape.experts,
        "num_attention_heads": shape.heads,
        "num_experts_per_tok": shape.experts_used,
        "num_hash_layers": shape.hash_layers,
        "num_hidden_layers": shape.layers,
        "o_groups": shape.o_groups,
        "o_lora_rank": shape.o_rank,
        "q_lora_rank": shape.q_rank,
        "qk_rope_head_dim": shape.rope_dim,
        "sliding_window": shape.window,
        "vocab_size": shape.vocabulary,
    }
    return dict(sorted((FIXED | sizes).items()))
