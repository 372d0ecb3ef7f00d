"""The target writes the training text itself: batched decoding, questions it asks itself, loops cut off."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np

from analysis.drafter.prompts import Prompts
from analysis.drafter.shapes import TextPlan
from analysis.drafter.target import Target, run_layer
from analysis.drafter.torchlib import Tensor, rms_norm, rotary_table, rotate, torch

TEMPERATURES = (0.4, 0.7, 1.0)
END_TOKENS = (0, 2)
LONGEST_PERIOD = 48
LOOP_TOKENS = 30
SHORTEST_ANSWER = 12


@dataclass(frozen=True)
class Texts:
    """Written texts: `ids` [texts, length]; each answer is `ids[start:end]`, what stands before is its prompt.

    `kind` indexes `shapes.KINDS`; `greedy` says that no token was sampled.
    """

    ids: Any
    start: Any
    end: Any
    kind: Any
    greedy: Any

    def __len__(self) -> int:
        """Return the number of texts."""
        return len(self.start)

    @property
    def answer_tokens(self) -> int:
        """Return the number of tokens that the target wrote."""
        return int((self.end - self.start).sum())

    @classmethod
    def joined(cls, parts: Sequence["Texts"]) -> Self:
        """Return the texts of all parts, in order; all parts have one length."""
        names = ("ids", "start", "end", "kind", "greedy")
        return cls(**{name: np.concatenate([getattr(part, name) for part in parts]) for name in names})

    def of_kind(self, kind: int) -> "Texts":
        """Return the texts of one kind."""
        keep = self.kind == kind
        return Texts(self.ids[keep], self.start[keep], self.end[keep], self.kind[keep], self.greedy[keep])

    def save(self, path: Path) -> None:
        """Write the texts as one `.npz`."""
        np.savez(path, ids=self.ids, start=self.start, end=self.end, kind=self.kind, greedy=self.greedy)

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read texts that `save` wrote."""
        with np.load(path) as stored:
            return cls(**{name: stored[name] for name in ("ids", "start", "end", "kind", "greedy")})


class Writer:
    """Decodes many texts at once from position 0; prompts are forced token by token.

    On a GPU a step is captured as a CUDA graph for each width of the attended cache, so that thirty layers of
    small kernels cost no launches.
    """

    def __init__(self, target: Target, batch: int, length: int, width: int = 64) -> None:
        self.target, self.batch, self.length, self.width = target, batch, length, width
        device, dtype = target.device, target.embed.dtype
        shape = (len(target.layers), batch, target.kv_heads, length, target.head_dim)
        self.keys = torch.zeros(shape, device=device, dtype=dtype)
        self.values = torch.zeros(shape, device=device, dtype=dtype)
        self.ids = torch.zeros(batch, length, device=device, dtype=torch.long)
        self.prompt = torch.zeros(batch, device=device, dtype=torch.long)
        self.heat = torch.zeros(batch, 1, device=device)
        self.at = torch.zeros(1, device=device, dtype=torch.long)
        cos, sin = rotary_table(length, target.head_dim, target.theta, device)
        self.cos, self.sin = cos.to(dtype), sin.to(dtype)
        self.graphs: dict[int, Callable[[], None]] = {}
        # The graphs run one after another, so they may share their scratch memory.
        self.pool = torch.cuda.graph_pool_handle() if device == "cuda" else None

    def write(self, prompts: Sequence[Sequence[int]], temperatures: Sequence[float]) -> Tensor:
        """Return tokens [batch, length]: the prompts, cut to leave one token, and what the target says next."""
        lengths = [min(len(prompt), self.length - 1) for prompt in prompts]
        ids = np.zeros((self.batch, self.length), np.int64)
        for row, (prompt, count) in enumerate(zip(prompts, lengths, strict=True)):
            ids[row, :count] = prompt[:count]
        self.ids.copy_(torch.from_numpy(ids))
        self.prompt.copy_(torch.tensor(lengths))
        self.heat.copy_(torch.tensor(temperatures)[:, None])
        self.at.zero_()
        for position in range(self.length - 1):
            self._stepper(min(self.length, (position // self.width + 1) * self.width))()
        return self.ids

    def _stepper(self, width: int) -> Callable[[], None]:
        if width not in self.graphs:
            self.graphs[width] = self._captured(width) if self.target.device == "cuda" else lambda: self._step(width)
        return self.graphs[width]

    def _captured(self, width: int) -> Callable[[], None]:
        kept = self.at.clone(), self.ids.clone()
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            self._step(width)
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool=self.pool):
            self._step(width)
        self.at.copy_(kept[0])
        self.ids.copy_(kept[1])
        replay: Callable[[], None] = graph.replay
        return replay

    def _step(self, width: int) -> None:
        target, cos, sin = self.target, self.cos.index_select(0, self.at), self.sin.index_select(0, self.at)
        hidden_from = torch.arange(width, device=target.device) > self.at

        def attend(index: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
            self.keys[index].index_copy_(2, self.at, rotate(k, cos, sin)[:, :, None])
            self.values[index].index_copy_(2, self.at, v[:, :, None])
            q = rotate(q, cos, sin).unflatten(1, (target.kv_heads, -1))
            scores = q @ self.keys[index][:, :, :width].transpose(-1, -2) * target.head_dim**-0.5
            shares = scores.masked_fill(hidden_from, float("-inf")).softmax(-1)
            return (shares @ self.values[index][:, :, :width]).flatten(1)

        with torch.no_grad():
            x = target.embed[self.ids.index_select(1, self.at)[:, 0]]
            for index in range(len(target.layers)):
                x = run_layer(target, index, x, attend)
            logits = target.logits(rms_norm(x, target.norm, target.eps))
            noise = -torch.empty_like(logits).exponential_().log_()
            said = logits.addcmul_(noise, self.heat.expand_as(noise)).argmax(-1)
            self.at.add_(1)
            forced = self.ids.index_select(1, self.at)[:, 0]
            said = torch.where(self.at < self.prompt, forced, said)
            self.ids.index_copy_(1, self.at, said[:, None])


def loop_starts(ids: Tensor) -> Tensor:
    """Return where each text [texts, length] is known to loop: the first token after a loop has shown itself.

    A loop repeats with a period of at most 48 tokens for at least 30 tokens and two whole periods. Texts
    without a loop get their length.
    """
    texts, length = ids.shape
    places = torch.arange(length, device=ids.device)
    first = torch.full((texts,), length, device=ids.device)
    for period in range(1, min(LONGEST_PERIOD, length - 1) + 1):
        same = torch.zeros(texts, length, dtype=torch.bool, device=ids.device)
        same[:, period:] = ids[:, period:] == ids[:, :-period]
        broken = torch.where(same, -1, places).cummax(1).values
        looping = places - broken >= max(LOOP_TOKENS, 2 * period)
        found = torch.where(looping.any(1), looping.float().argmax(1), length)
        first = torch.minimum(first, found)
    return first


def cut(ids: Tensor, prompts: Sequence[Sequence[int]], kinds: Sequence[int], temperatures: Sequence[float]) -> Texts:
    """Return the texts whose answers are long enough, each ended at its end token or where a loop begins."""
    loops = loop_starts(ids).cpu().numpy()
    rows = ids.to("cpu", torch.int32).numpy()
    start = np.array([min(len(prompt), rows.shape[1] - 1) for prompt in prompts])
    answers = np.arange(rows.shape[1])[None] >= start[:, None]
    ended = np.isin(rows, END_TOKENS) & answers
    end = np.where(ended.any(1), ended.argmax(1) + 1, rows.shape[1])
    end = np.maximum(np.minimum(end, loops), start)
    keep = end - start >= SHORTEST_ANSWER
    greedy = np.array(temperatures) == 0
    return Texts(rows[keep].astype(np.uint16), start[keep], end[keep], np.array(kinds)[keep], greedy[keep])


def ask_itself(writer: Writer, prompts: Prompts, wanted: int, rng: np.random.Generator) -> list[list[int]]:
    """Return questions that the target writes when shown the beginning of a user's turn, without the turn's end."""
    questions: list[list[int]] = []
    begin = len(prompts.user)
    for _ in range(20):
        heat = rng.choice([0.7, 0.85, 1.0], writer.batch).tolist()
        for row in writer.write([prompts.user] * writer.batch, heat)[:, begin:].tolist():
            stop = next((i for i, token in enumerate(row) if token in END_TOKENS), None)
            if stop is not None and stop > 3:
                questions.append(row[:stop])
        if len(questions) >= wanted:
            break
    return questions


def write_texts(
    target: Target, prompts: Prompts, plan: TextPlan, seed: int, say: Callable[[str], None]
) -> dict[str, Texts]:
    """Let the target write.

    Returns:
        `short` and `long` texts to train on, and greedy `held_out` texts whose prompts are in neither.
    """
    torch.manual_seed(seed)
    rng, began = np.random.default_rng(seed), time.monotonic()
    asked = int(prompts.asked_share * plan.batch * plan.batches) + plan.held_out
    questions = ask_itself(Writer(target, plan.batch, plan.question_length), prompts, asked, rng)
    say(f"{len(questions)} questions asked, {time.monotonic() - began:.0f} s")
    kept, spare = questions[plan.held_out :], questions[: plan.held_out]
    result = {}
    supply = prompts.training(kept, rng)
    for name, length, batch, batches in (
        ("short", plan.length, plan.batch, plan.batches),
        ("long", plan.long_length, plan.long_batch, plan.long_batches),
    ):
        writer, parts = Writer(target, batch, length, 64 if name == "short" else 256), []
        for _ in range(batches):
            chosen, kinds = supply.take(batch, long=name == "long")
            heat = np.where(rng.random(batch) < plan.greedy, 0.0, rng.choice(TEMPERATURES, batch)).tolist()
            parts.append(cut(writer.write(chosen, heat), chosen, kinds, heat))
            say(f"{name}: {sum(part.answer_tokens for part in parts)} tokens, {time.monotonic() - began:.0f} s")
        result[name] = Texts.joined(parts)
        del writer
    chosen, kinds = prompts.held_out(spare, plan.held_out)
    writer = Writer(target, len(chosen), plan.length)
    heat = [0.0] * len(chosen)
    result["held_out"] = cut(writer.write(chosen, heat), chosen, kinds, heat)
    return result
