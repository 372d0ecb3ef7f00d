"""Do target and drafter fit each other, and this machine? From their headers, before anything is started.

One check reads weights too: in which order the drafter's heads stand is in no header.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Literal

from analysis.convert.gguf import GGUFFile
from analysis.convert.memory import Memory, Serving, estimate_memory
from analysis.convert.rotary import rotary_votes
from analysis.records import Problem, SpecType

Verdict = Literal["fits", "note", "warned", "refused"]

# Architectures whose graph also gives the output of the last layer; of the others only inputs of layers can be read.
GIVES_LAST_OUTPUT = ("deepseek4", "mimo2", "nemotron_h", "nemotron_h_moe")
DSV4_BLOCK, DSV4_OUTSIDE = 24, 9  # tensors of a DSpark drafter with DeepSeek-V4's blocks
# Parts of a drafter that decide what it proposes and are small: fewer than eight bits save little and cost acceptance.
CRITICAL = ("markov_w", "conf_proj", "fc.", "hc_", "ffn_gate_inp", "attn_sinks")
COARSE = ("Q2", "Q3", "Q4", "Q5", "Q6", "IQ", "TQ", "MXFP4", "NVFP4", "Q1")


@dataclass(frozen=True)
class Finding:
    """What one check saw, and what it expected where that is not what it saw."""

    check: str
    verdict: Verdict
    saw: str
    expected: str = ""


@dataclass(frozen=True)
class Fit:
    """A target, what drafts for it, how they are to be served, and what the checks found."""

    target: GGUFFile
    drafter: GGUFFile | None
    spec_type: SpecType
    serving: Serving
    p_min: float
    findings: tuple[Finding, ...] = field(default=(), repr=False)
    memory: Memory | None = None

    @property
    def refused(self) -> tuple[Finding, ...]:
        """Return the findings that say that this will not work."""
        return tuple(finding for finding in self.findings if finding.verdict == "refused")

    @property
    def warned(self) -> tuple[Finding, ...]:
        """Return the findings that say that this will hardly work, on evidence that may mislead."""
        return tuple(finding for finding in self.findings if finding.verdict == "warned")

    def require(self) -> None:
        """Refuse to go on with a pair that does not fit.

        Raises:
            Problem: at least one check refused; the message names the first and counts the others.
        """
        if self.refused:
            first, *others = self.refused
            more = f" (and {len(others)} more)" if others else ""
            raise Problem(f"{first.check}: {first.saw}{more}", expected=first.expected)


Check = Callable[[Fit], Iterator[Finding]]


def check_fit(
    target: GGUFFile,
    drafter: GGUFFile | None = None,
    *,
    spec_type: SpecType | None = None,
    serving: Serving | None = None,
    p_min: float = 0.0,
    room: int | None = None,
) -> Fit:
    """Run every check on a target and a drafter.

    Args:
        target: its header.
        drafter: the drafter's header; None for a target alone.
        spec_type: how the server is to use the drafter; by default what the file is made for.
        serving: context and batch sizes, cache types; `rollback` is the longest draft.
        p_min: the confidence below which a draft is cut.
        room: bytes of memory to stay within; None leaves memory unchecked.
    """
    serving = serving or Serving()
    fit = Fit(target, drafter, spec_type or made_for(drafter), serving, p_min)
    memory = estimate_memory(target, serving)
    if drafter is not None:
        memory += estimate_memory(drafter, serving, "drafter")
    findings = [finding for check in CHECKS for finding in check(fit)]
    if room is not None:
        findings.append(_check_memory(memory, room))
    return Fit(target, drafter, fit.spec_type, serving, p_min, tuple(findings), memory)


def made_for(drafter: GGUFFile | None) -> SpecType:
    """Return the speculation type a drafter's file is made for."""
    if drafter is None:
        return "none"
    if drafter.architecture == "dflash":
        return "draft-dspark" if _has(drafter, "markov_w1.weight") else "draft-dflash"
    return "draft-eagle3" if drafter.architecture == "eagle3" else "draft-simple"


def _check_target(fit: Fit) -> Iterator[Finding]:
    if fit.target.architecture in ("dflash", "eagle3"):
        yield Finding("target", "refused", f"the target is a drafter ({fit.target.architecture})", "a whole model")
        return
    yield Finding("target", "fits", f"{fit.target.architecture}, {fit.target.block_count} layers")
    if not fit.target.has_chat_template:
        yield Finding("chat template", "note", "the target embeds none", "a template, or --chat-template-file")


def _check_spec_type(fit: Fit) -> Iterator[Finding]:
    """DSpark and DFlash files have one architecture; the wrong type does not crash and drafts almost nothing."""
    if fit.drafter is None:
        if fit.spec_type.startswith("draft-") and fit.spec_type != "draft-mtp":
            yield Finding("speculation type", "refused", f"{fit.spec_type} without a drafter", "a drafter")
        return
    expected = made_for(fit.drafter)
    if fit.spec_type == expected:
        yield Finding("speculation type", "fits", fit.spec_type)
    else:
        heads = "with a Markov head" if expected == "draft-dspark" else "without a Markov head"
        what = (
            f"{fit.drafter.architecture} {heads}" if fit.drafter.architecture == "dflash" else fit.drafter.architecture
        )
        yield Finding("speculation type", "refused", f"{fit.spec_type} for a drafter of type {what}", expected)


def _check_vocabulary(fit: Fit) -> Iterator[Finding]:
    if fit.drafter is None:
        return
    sizes = (fit.target.vocabulary_size, fit.drafter.vocabulary_size)
    hashes = (fit.target.tokens_sha256[:12], fit.drafter.tokens_sha256[:12])
    if None in sizes:
        yield Finding("vocabulary", "refused", f"target {sizes[0]}, drafter {sizes[1]} tokens", "token lists in both")
    elif sizes[0] != sizes[1]:
        yield Finding("vocabulary", "refused", f"the drafter has {sizes[1]} tokens", f"the target's {sizes[0]}")
    elif hashes[0] != hashes[1]:
        saw = f"the drafter's tokens hash to {hashes[1]}"
        yield Finding("vocabulary", "refused", saw, f"{hashes[0]} as the target's: a drafter of this target")
    else:
        yield Finding("vocabulary", "fits", f"{sizes[0]} tokens, SHA-256 {hashes[0]}")


def _check_width(fit: Fit) -> Iterator[Finding]:
    if (drafter := _block_drafter(fit)) is None:
        return
    widths = (fit.target.number("{arch}.embedding_length"), drafter.number("{arch}.embedding_length"))
    taps = _taps(drafter)
    projection = _shape(drafter, "fc.weight")
    if widths[0] != widths[1]:
        yield Finding("hidden width", "refused", f"the drafter's is {widths[1]}", f"the target's {widths[0]}")
    elif widths[0] is not None and projection != (len(taps) * widths[0], widths[0]):
        expected = f"({len(taps) * widths[0]}, {widths[0]}) for {len(taps)} target layers"
        yield Finding("hidden width", "refused", f"fc.weight is {projection}", expected)
    else:
        yield Finding("hidden width", "fits", f"{widths[0]}")


def _check_taps(fit: Fit) -> Iterator[Finding]:
    if (drafter := _block_drafter(fit)) is None:
        return
    layers, taps = fit.target.block_count or 0, _taps(drafter)
    last = layers if fit.target.architecture in GIVES_LAST_OUTPUT else layers - 1
    if not taps:
        yield Finding("target layers", "refused", "the drafter names none", "dflash.target_layers")
    elif max(taps) > last or min(taps) < 0:
        expected = f"at most {last}: the target has {layers} layers"
        yield Finding("target layers", "refused", f"the drafter reads the inputs of layers {list(taps)}", expected)
    else:
        yield Finding("target layers", "fits", f"{list(taps)} of {layers}")


def _check_block(fit: Fit) -> Iterator[Finding]:
    if (drafter := _block_drafter(fit)) is None:
        return
    block, mask = drafter.number("dflash.block_size"), drafter.number("tokenizer.ggml.mask_token_id")
    if mask is None or not 0 <= mask < (drafter.vocabulary_size or 0):
        saw = "none" if mask is None else str(mask)
        yield Finding("mask token", "refused", saw, f"an id below {drafter.vocabulary_size}")
    else:
        yield Finding("mask token", "fits", str(mask))
    if block is None or block < 1:
        yield Finding("block size", "refused", "the drafter states none", "dflash.block_size")
        return
    dspark = fit.spec_type == "draft-dspark" and drafter.metadata.get("dflash.sample_from_anchor", True)
    longest = block if dspark else block - 1
    if fit.serving.rollback > longest:
        saw = f"a draft of {fit.serving.rollback} tokens is asked for"
        yield Finding("block size", "note", saw, f"at most {longest}: the server will draft that many")
    else:
        yield Finding("block size", "fits", f"{block}")


def _check_heads(fit: Fit) -> Iterator[Finding]:
    drafter = fit.drafter
    if drafter is None or fit.spec_type != "draft-dspark" or drafter.architecture != "dflash":
        return
    first, second = _shape(drafter, "markov_w1.weight"), _shape(drafter, "markov_w2.weight")
    rows = _shape(drafter, "d2t") or (drafter.vocabulary_size,)  # a drafter may propose from fewer tokens
    if first is None or first[1:] != (drafter.vocabulary_size,) or second != (first[0], *rows):
        expected = f"(rank, {drafter.vocabulary_size}) and (rank, {rows[0]})"
        yield Finding("Markov head", "refused", f"markov_w1 is {first}, markov_w2 {second}", expected)
        return
    yield Finding("Markov head", "fits", f"rank {first[0]}")
    confidence = _shape(drafter, "conf_proj.weight")
    width = (drafter.number("dflash.embedding_length") or 0) + first[0]
    if confidence is None and fit.p_min > 0:
        yield Finding("confidence head", "refused", f"none, with p_min {fit.p_min}", "a confidence head, or p_min 0")
    elif confidence is not None and confidence[:1] != (width,):
        yield Finding("confidence head", "refused", f"conf_proj is {confidence}", f"({width}, 1)")
    else:
        yield Finding("confidence head", "fits" if confidence else "note", "there" if confidence else "none")


def _check_tensors(fit: Fit) -> Iterator[Finding]:
    """A conversion that lost a block loads in some engines and drafts nonsense."""
    if (drafter := _block_drafter(fit)) is None:
        return
    blocks = drafter.block_count or 0
    names = [tensor.name.split(".") for tensor in drafter.tensors]
    counted = Counter(parts[1] for parts in names if parts[0] == "blk")
    outside = len(names) - sum(counted.values())
    saw = f"{len(names)} tensors: {outside} and {sorted(counted.values())} in blocks"
    whole = set(counted) == {str(block) for block in range(blocks)} and len(set(counted.values())) == 1
    if _is_dsv4(drafter):
        expected = f"{blocks} x {DSV4_BLOCK} + {DSV4_OUTSIDE}"
        sound = whole and set(counted.values()) == {DSV4_BLOCK} and outside == DSV4_OUTSIDE
    else:
        expected, sound = f"{blocks} blocks of equally many", whole
    yield Finding("tensors", "fits", saw) if sound else Finding("tensors", "refused", saw, expected)


def _check_rotary(fit: Fit) -> Iterator[Finding]:
    """A drafter must rotate like its target: else position 1 stays right and the deeper ones repeat it."""
    if (drafter := _block_drafter(fit)) is None:
        return
    style = "interleaved pairs (as DeepSeek)" if _is_dsv4(drafter) else "halves (NeoX)"
    if fit.target.architecture == "deepseek4" and not _is_dsv4(drafter):
        expected = "interleaved pairs: a drafter with DeepSeek-V4's blocks"
        yield Finding("rotary style", "refused", f"the drafter rotates {style}", expected)
    elif fit.target.architecture != "deepseek4" and _is_dsv4(drafter):
        expected = f"a drafter for {fit.target.architecture}"
        yield Finding("rotary style", "refused", f"the drafter rotates {style}", expected)
    else:
        yield Finding("rotary style", "fits", style)
    yield _check_yarn(drafter)


def _check_rotary_order(fit: Fit) -> Iterator[Finding]:
    """Heads reordered for the other rotary style have the same header; acceptance falls and nothing says why."""
    drafter = _block_drafter(fit)
    if drafter is None or _is_dsv4(drafter):
        return
    try:
        votes = rotary_votes(drafter)
    except Problem as problem:
        yield Finding("order of heads", "note", str(problem))
        return
    if votes is None:
        return
    if votes.order == "halves":
        yield Finding("order of heads", "fits", f"halves, say {votes.by_order['halves']} of {votes.heads} heads")
    elif votes.order:
        saw = f"the weights stand in {votes.order}, say {votes.by_order[votes.order]} of {votes.heads} heads"
        yield Finding("order of heads", "warned", saw, "halves (NeoX), as the engine turns them: convert it again")
    else:
        yield Finding("order of heads", "note", f"{votes.heads} heads do not agree", "a trained drafter's would")


def _check_yarn(drafter: GGUFFile) -> Finding:
    """Every layer of the released drafter slides and carries no YaRN, as in the reference implementation."""
    arch = drafter.architecture
    if drafter.text(f"{arch}.rope.scaling.type") != "yarn":
        return Finding("YaRN", "fits", "none")
    ratios = drafter.metadata.get(f"{arch}.attention.compress_ratios")
    if _is_dsv4(drafter) and isinstance(ratios, tuple) and not any(ratios):
        return Finding("YaRN", "fits", "stated, and not applied to layers that only slide")
    if drafter.number("{arch}.attention.sliding_window"):
        return Finding("YaRN", "refused", "YaRN on a drafter with sliding windows", "none")
    return Finding("YaRN", "note", "the drafter carries YaRN")


def _check_types(fit: Fit) -> Iterator[Finding]:
    for name, file in (("target", fit.target), ("drafter", fit.drafter)):
        if file is None:
            continue
        yield Finding(f"types of the {name}", "fits", ", ".join(file.bytes_by_type))
    if fit.drafter is not None and fit.drafter.architecture == "dflash":
        coarse = [
            t for t in fit.drafter.tensors if any(word in t.name for word in CRITICAL) and t.type.startswith(COARSE)
        ]
        if coarse:
            saw = ", ".join(f"{tensor.name} {tensor.type}" for tensor in coarse[:3])
            yield Finding("precision", "note", saw, "8 bits or more: small tensors that decide what is proposed")


def _check_memory(memory: Memory, room: int) -> Finding:
    saw = f"about {gib(memory.total)} ({gib(memory.weights)} weights, {gib(memory.cache)} cache)"
    if memory.total > room:
        return Finding("memory", "refused", saw, f"at most {gib(room)}: a shorter context or smaller files")
    return Finding("memory", "fits", saw)


CHECKS: tuple[Check, ...] = (
    _check_target,
    _check_spec_type,
    _check_vocabulary,
    _check_width,
    _check_taps,
    _check_block,
    _check_heads,
    _check_tensors,
    _check_rotary,
    _check_rotary_order,
    _check_types,
)


def gib(nbytes: int) -> str:
    """Return bytes in GiB as text."""
    return f"{nbytes / 2**30:.2f} GiB"


def _block_drafter(fit: Fit) -> GGUFFile | None:
    """Return the drafter where it is one that drafts blocks from the target's layers."""
    return fit.drafter if fit.drafter is not None and fit.drafter.architecture == "dflash" else None


def _is_dsv4(drafter: GGUFFile) -> bool:
    return bool(drafter.number("{arch}.hyper_connection.count"))


def _taps(drafter: GGUFFile) -> tuple[int, ...]:
    taps = drafter.metadata.get("dflash.target_layers")
    return tuple(int(tap) for tap in taps) if isinstance(taps, tuple) else ()


def _has(file: GGUFFile, name: str) -> bool:
    return _shape(file, name) is not None


def _shape(file: GGUFFile, name: str) -> tuple[int, ...] | None:
    return next((tensor.shape for tensor in file.tensors if tensor.name == name), None)
