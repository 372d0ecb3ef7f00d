"""A checkpoint before its conversion: what it is, which flags the converter needs, and which files of it."""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args

from analysis.convert.dsv4 import Shape, gguf_tensors
from analysis.convert.fetch import fetch
from analysis.convert.safetensors import INDEX, SINGLE, read_weight_map, shards_with
from analysis.records import Problem, Source

Part = Literal["target", "drafter", "mtp"]
PARTS: tuple[Part, ...] = get_args(Part)
DSV4 = "DeepseekV4ForCausalLM"
BESIDE = ("config.json", "tokenizer.json", "tokenizer_config.json")  # what the converter reads beside the weights


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint's configuration and index; its weights may not be here yet."""

    path: Path
    config: dict[str, Any] = field(repr=False)
    weights: dict[str, str] = field(repr=False)

    @property
    def architecture(self) -> str:
        """Return the architecture's name, or an empty string."""
        names = self.config.get("architectures")
        return str(names[0]) if isinstance(names, list) and names else ""

    @property
    def drafter_blocks(self) -> int:
        """Return the number of `mtp.N` blocks."""
        return len({name.split(".")[1] for name in self.weights if name.startswith("mtp.")})

    @property
    def is_dspark(self) -> bool:
        """Return whether those blocks are DSpark's."""
        return "dspark_block_size" in self.config and self.drafter_blocks > 0


@dataclass(frozen=True)
class Plan:
    """How a part of a checkpoint is converted.

    `files` are those that hold its weights, `missing` those of them and of the others needed that are not here.
    `nbytes`, `largest` and `tensors` describe the result where its layout is known: bytes of all tensors, bytes of the
    largest, and their number.
    """

    checkpoint: Checkpoint
    part: Part
    flags: tuple[str, ...]
    files: tuple[str, ...]
    missing: tuple[str, ...]
    nbytes: int | None = None
    largest: int | None = None
    tensors: int | None = None

    def require_files(self) -> None:
        """Refuse to convert while files are missing.

        Raises:
            Problem: it names what to download, and nothing beside it.
        """
        if self.missing:
            raise Problem(
                f"{len(self.missing)} of the files for the {self.part} are not in {self.checkpoint.path}: "
                f"{', '.join(self.missing)}",
                expected=f"{len(self.files)} of {len(set(self.checkpoint.weights.values()))} files with weights",
                remedy="download these alone: hf download REPOSITORY " + " ".join(self.missing),
            )


def read_checkpoint(where: str | Path) -> Checkpoint:
    """Read configuration and index of a checkpoint: a directory, or a repository of the hub (`owner/name`).

    Of a repository only these two files are fetched.

    Raises:
        Problem: there is no checkpoint, or one of the two files is damaged.
    """
    directory = Path(where)
    if not directory.is_dir() and str(where).count("/") == 1 and not str(where).startswith((".", "/", "~")):
        directory = fetch(Source(kind="hub", repo=str(where), file="config.json")).parent
        fetch(Source(kind="hub", repo=str(where), file=INDEX))
    file = directory / "config.json"
    try:
        config = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise Problem(f"no config.json in {directory}", expected="a checkpoint's directory") from None
    except (OSError, ValueError) as error:
        raise Problem(f"{file} cannot be read: {error}", remedy="fetch it again") from None
    if not isinstance(config, dict):
        raise Problem(f"{file} is not a JSON object", remedy="fetch it again")
    return Checkpoint(directory, config, read_weight_map(directory))


def plan_conversion(checkpoint: Checkpoint, part: Part) -> Plan:
    """Choose flags and files for a part of a checkpoint.

    Raises:
        Problem: the checkpoint has no such part, or the converter cannot make it.
    """
    flags = _flags(checkpoint, part)
    prefixes = ["mtp."] if part in ("drafter", "mtp") else _outside_drafter(checkpoint)
    files = tuple(shards_with(checkpoint.weights, prefixes))
    here = checkpoint.path
    missing = tuple(name for name in (*BESIDE, *files) if not (here / name).is_file())
    layout = gguf_tensors(shape_of(checkpoint.config), part) if part != "mtp" and _is_known(checkpoint) else ()
    sizes = [tensor.nbytes for tensor in layout]
    return Plan(
        checkpoint=checkpoint,
        part=part,
        flags=flags,
        files=files,
        missing=missing,
        nbytes=sum(sizes) or None,
        largest=max(sizes, default=None),
        tensors=len(sizes) or None,
    )


def shape_of(config: dict[str, Any]) -> Shape:
    """Return the shape a DeepSeek-V4 configuration describes.

    Raises:
        Problem: a key is missing.
    """
    try:
        return Shape(
            hidden=config["hidden_size"],
            intermediate=config["moe_intermediate_size"],
            head_dim=config["head_dim"],
            heads=config["num_attention_heads"],
            q_rank=config["q_lora_rank"],
            o_rank=config["o_lora_rank"],
            o_groups=config["o_groups"],
            experts=config["n_routed_experts"],
            experts_used=config["num_experts_per_tok"],
            index_heads=config["index_n_heads"],
            index_top=config["index_topk"],
            vocabulary=config["vocab_size"],
            ratios=tuple(config["compress_ratios"][: config["num_hidden_layers"]]),
            markov_rank=config.get("dspark_markov_rank", 0),
            block_size=config.get("dspark_block_size", 0),
            drafter_blocks=len(config.get("dspark_target_layer_ids", ())),
            hash_layers=config["num_hash_layers"],
            index_head_dim=config["index_head_dim"],
            rope_dim=config["qk_rope_head_dim"],
            streams=config["hc_mult"],
            window=config["sliding_window"],
        )
    except KeyError as error:
        raise Problem(f"config.json lacks {error}", expected="a DeepSeek-V4 configuration") from None


def _flags(checkpoint: Checkpoint, part: Part) -> tuple[str, ...]:
    blocks, stated = checkpoint.drafter_blocks, checkpoint.config.get("num_nextn_predict_layers", 0)
    if part == "target":
        return ("--no-nextn",) if checkpoint.architecture == DSV4 else ()
    if blocks == 0:
        raise Problem(
            f"{checkpoint.path} holds no mtp.* tensors ({checkpoint.architecture or 'no architecture named'})",
            expected="a checkpoint that ships a drafter",
            remedy="DeepSeek-V4-Flash-0731 does; the target can be converted from this one",
        )
    if part == "mtp":
        if checkpoint.is_dspark:
            raise Problem(
                f"this checkpoint has {blocks} DSpark blocks and states num_nextn_predict_layers {stated}: with "
                f"--mtp the converter stops with 'Unexpected DeepSeek-V4 MTP layer {stated}'",
                expected="a plain MTP head",
                remedy="convert the drafter (--part drafter), which uses --dspark",
            )
        return ("--mtp",)
    if not checkpoint.is_dspark:
        raise Problem(
            f"{checkpoint.path} has {blocks} mtp.* blocks and no dspark_block_size",
            expected="a DSpark checkpoint",
            remedy="convert its MTP head (--part mtp)",
        )
    return ("--dspark",)


def _outside_drafter(checkpoint: Checkpoint) -> list[str]:
    return sorted({name.split(".")[0] for name in checkpoint.weights if not name.startswith("mtp.")})


def _is_known(checkpoint: Checkpoint) -> bool:
    """Return whether the layout of the result is known: DeepSeek-V4 without a vision tower."""
    return checkpoint.architecture == DSV4 and not any(name.startswith("vision.") for name in checkpoint.weights)


def is_single(checkpoint: Checkpoint) -> bool:
    """Return whether the checkpoint is one file without an index."""
    return set(checkpoint.weights.values()) == {SINGLE}
