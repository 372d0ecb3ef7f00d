"""What a drafter looks like and how it is trained: two frozen records of plain numbers, and the preset recipes."""

from dataclasses import asdict, dataclass, replace
from typing import Any

from analysis.records import Problem

KINDS = ("code", "prose", "chat", "chat-code", "recall")


@dataclass(frozen=True, kw_only=True)
class Shape:
    """The dimensions of a drafter.

    `taps` are the target's layers, counted from 0, whose outputs the drafter reads. The last layer cannot be
    tapped: the engine reads a tap as the input of the layer after it. `block` is the number of tokens drafted
    at once, the largest useful `--spec-draft-n-max`.
    """

    hidden: int = 576
    ffn: int = 1536
    layers: int = 3
    heads: int = 9
    kv_heads: int = 3
    head_dim: int = 64
    vocabulary: int = 49152
    rank: int = 32
    block: int = 6
    taps: tuple[int, ...] = (4, 12, 20, 28)
    target_layers: int = 30
    mask_token: int = 16
    theta: float = 100_000.0
    eps: float = 1e-5
    context: int = 8192

    def parameters(self) -> int:
        """Return the number of trained weights; embedding and output are the target's and are not counted."""
        attention = self.hidden * self.head_dim * (2 * self.heads + 2 * self.kv_heads) + 2 * self.head_dim
        layer = attention + 3 * self.hidden * self.ffn + 2 * self.hidden
        fusion = (len(self.taps) * self.hidden + 2) * self.hidden
        heads = 2 * self.vocabulary * self.rank + self.hidden + self.rank + 1
        return self.layers * layer + fusion + heads

    def hf_config(self) -> dict[str, Any]:
        """Return `config.json` of the checkpoint, as llama.cpp's converter reads it (`Qwen3DSparkModel`)."""
        return {
            "architectures": ["Qwen3DSparkModel"],
            "model_type": "qwen3",
            "hidden_size": self.hidden,
            "intermediate_size": self.ffn,
            "num_hidden_layers": self.layers,
            "num_attention_heads": self.heads,
            "num_key_value_heads": self.kv_heads,
            "head_dim": self.head_dim,
            "vocab_size": self.vocabulary,
            "rms_norm_eps": self.eps,
            "rope_theta": self.theta,
            "max_position_embeddings": self.context,
            "hidden_act": "silu",
            "attention_bias": False,
            "tie_word_embeddings": False,
            "is_causal": True,
            "block_size": self.block,
            "mask_token_id": self.mask_token,
            "target_layer_ids": list(self.taps),
            "num_target_layers": self.target_layers,
            "markov_rank": self.rank,
            "markov_head_type": "vanilla",
            "enable_confidence_head": True,
            "confidence_head_with_markov": True,
            "bos_token_id": 1,
            "eos_token_id": 2,
            "dtype": "float16",
        }

    @classmethod
    def of_config(cls, config: dict[str, Any]) -> "Shape":
        """Return the shape that `config.json` of a checkpoint describes."""
        return cls(
            hidden=config["hidden_size"],
            ffn=config["intermediate_size"],
            layers=config["num_hidden_layers"],
            heads=config["num_attention_heads"],
            kv_heads=config["num_key_value_heads"],
            head_dim=config["head_dim"],
            vocabulary=config["vocab_size"],
            rank=config["markov_rank"],
            block=config["block_size"],
            taps=tuple(config["target_layer_ids"]),
            target_layers=config["num_target_layers"],
            mask_token=config["mask_token_id"],
            theta=config["rope_theta"],
            eps=config["rms_norm_eps"],
            context=config["max_position_embeddings"],
        )


@dataclass(frozen=True, kw_only=True)
class TextPlan:
    """How much text the target writes.

    `length` and `long_length` are tokens of a sequence with its prompt; `batch` sequences are written at once.
    `greedy` is the share that is written greedily; the rest is sampled at 0.4, 0.7 or 1.0.
    """

    length: int = 640
    batch: int = 2048
    batches: int = 20
    long_length: int = 2048
    long_batch: int = 1024
    long_batches: int = 1
    question_length: int = 96
    greedy: float = 0.6
    held_out: int = 64


@dataclass(frozen=True, kw_only=True)
class Schedule:
    """How long and on what the drafter is trained.

    A step reads `batch` sequences and drafts from `anchors` places in each; every `long_every`-th step reads long
    sequences, of which as many as make the same number of tokens. `frequent` tokens of the vocabulary, and
    `rare` others that change from step to step, enter a step's loss.
    """

    steps: int = 5200
    warmup: int = 300
    batch: int = 64
    anchors: int = 96
    long_every: int = 12
    rate: float = 1.5e-3
    final_rate: float = 0.02
    frequent: int = 14336
    rare: int = 2048
    rows: int = 9216
    sharpness: float = 0.6
    distance: float = 0.5
    confidence: float = 0.2
    floor: float = 0.2
    checkpoint_every: int = 2000


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """Everything that decides what comes out, apart from the device's arithmetic."""

    shape: Shape = Shape()
    text: TextPlan = TextPlan()
    schedule: Schedule = Schedule()
    seed: int = 1

    def plain(self) -> dict[str, Any]:
        """Return the recipe as data that JSON can hold."""
        return asdict(self)


def gpu_recipe() -> Recipe:
    """Return the recipe of the shipped drafter."""
    return Recipe()


def recipe_for(size: str, seed: int, *, layers: int | None = None, block: int | None = None) -> Recipe:
    """Return the recipe of a size (`gpu` or `cpu`) with another seed and, where given, another shape.

    Raises:
        Problem: the target has fewer layers than the drafter is to have; a drafter begins as copies of them.
    """
    recipe = gpu_recipe() if size == "gpu" else cpu_recipe()
    shape = replace(recipe.shape, layers=layers or recipe.shape.layers, block=block or recipe.shape.block)
    if shape.layers > shape.target_layers:
        raise Problem(f"a drafter of {shape.layers} layers", expected=f"at most the target's {shape.target_layers}")
    return replace(recipe, shape=shape, seed=seed)


def cpu_recipe() -> Recipe:
    """Return a recipe for two CPU cores: it shows that every stage works, and its drafter is poor."""
    return Recipe(
        shape=Shape(layers=1, ffn=256, rank=32, block=4, taps=(12, 28)),
        text=TextPlan(
            length=112,
            batch=8,
            batches=1,
            long_length=160,
            long_batch=2,
            long_batches=1,
            question_length=72,
            held_out=1,
        ),
        schedule=Schedule(
            steps=20,
            warmup=4,
            batch=2,
            anchors=8,
            long_every=6,
            frequent=2048,
            rare=256,
            rows=1024,
            checkpoint_every=10,
        ),
    )
