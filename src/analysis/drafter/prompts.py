"""Prompts as tokens: five kinds of text, in fixed shares, for training and held out."""

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any, Self

import numpy as np

from analysis.drafter import phrases
from analysis.drafter.shapes import KINDS
from analysis.drafter.text import Material, Origin

Encode = Callable[[str], list[int]]
Tokens = tuple[int, ...]

SYSTEM = (
    "<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n"
    "<|im_start|>user\n"
)
ASSISTANT = "<|im_end|>\n<|im_start|>assistant\n"
# Shares of the written texts. Chat is the weak spot of a small drafter, so it gets the most: the three tenths
# that are missing here are chats whose question the target asked itself.
SHARES = {"code": 0.16, "prose": 0.18, "chat": 0.10, "chat-code": 0.10, "recall": 0.16}
ASKED_SHARE = 1 - sum(SHARES.values())
LONGEST = 320
LONG = (900, 1700)


@dataclass(frozen=True)
class Prompts:
    """Prompts by kind, as tokens.

    `user` opens a chat up to the user's turn, `answer` closes that turn. `long` prompts are code and recall at
    depth. `spare` prompts are held out: they begin from files that no other prompt begins from.
    """

    user: Tokens
    answer: Tokens
    train: dict[str, list[Tokens]]
    long: dict[str, list[Tokens]]
    spare: dict[str, list[Tokens]]
    origins: tuple[Origin, ...] = ()
    asked_share: float = ASKED_SHARE

    def training(self, questions: Sequence[Sequence[int]], rng: np.random.Generator) -> "Supply":
        """Return a supply of training prompts; `questions` are what the target asked itself."""
        return Supply(self, [self.chat(question) for question in questions], rng)

    def chat(self, question: Sequence[int]) -> Tokens:
        """Return a chat that waits for the assistant's answer."""
        return (*self.user, *question, *self.answer)

    def held_out(self, questions: Sequence[Sequence[int]], each: int) -> tuple[list[Tokens], list[int]]:
        """Return up to `each` held-out prompts of every kind, with their kinds; chats are the given questions."""
        groups = {**self.spare, "chat": [self.chat(question) for question in questions]}
        chosen = [(prompt, KINDS.index(kind)) for kind in KINDS for prompt in groups.get(kind, [])[:each]]
        return [prompt for prompt, _ in chosen], [kind for _, kind in chosen]

    def save(self, path: Path) -> None:
        """Write the prompts as one compressed `.npz`."""
        arrays: dict[str, Any] = {"user": self.user, "answer": self.answer}
        for group in ("train", "long", "spare"):
            for kind, prompts in getattr(self, group).items():
                arrays[f"{group}/{kind}/tokens"] = np.array([t for p in prompts for t in p], np.uint16)
                arrays[f"{group}/{kind}/ends"] = np.cumsum([len(p) for p in prompts])
        origins = np.array(json.dumps([asdict(origin) for origin in self.origins]))
        np.savez_compressed(path, origins=origins, **arrays)

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read prompts that `save` wrote."""
        groups: dict[str, dict[str, list[Tokens]]] = {"train": {}, "long": {}, "spare": {}}
        with np.load(path) as stored:
            for name in stored.files:
                if name.endswith("/ends"):
                    group, kind, _ = name.split("/")
                    tokens = stored[f"{group}/{kind}/tokens"].tolist()
                    bounds = pairwise([0, *stored[name].tolist()])
                    groups[group][kind] = [tuple(tokens[a:b]) for a, b in bounds]
            return cls(
                tuple(stored["user"].tolist()),
                tuple(stored["answer"].tolist()),
                origins=tuple(Origin(**entry) for entry in json.loads(str(stored["origins"]))),
                train=groups["train"],
                long=groups["long"],
                spare=groups["spare"],
            )


@dataclass
class Supply:
    """Hands out training prompts in their shares; a prompt comes again only when its kind is used up."""

    prompts: Prompts
    asked: list[Tokens]
    rng: np.random.Generator
    given: dict[str, int] = field(default_factory=dict)

    def take(self, count: int, *, long: bool) -> tuple[list[Tokens], list[int]]:
        """Return `count` prompts and their kinds (places in `shapes.KINDS`)."""
        groups = dict(self.prompts.long if long else {**self.prompts.train, "asked": self.asked})
        weights = {**SHARES, "asked": self.prompts.asked_share}
        names = sorted(name for name in groups if groups[name])
        shares = np.array([weights[name] for name in names])
        chosen, kinds = [], []
        for index in self.rng.choice(len(names), count, p=shares / shares.sum()):
            name = names[index]
            place = self.given.get(f"{long} {name}", 0)
            self.given[f"{long} {name}"] = place + 1
            chosen.append(groups[name][place % len(groups[name])])
            kinds.append(KINDS.index("chat" if name == "asked" else name))
        return chosen, kinds


def build(encode: Encode, training: Material, held_out: Material, sizes: tuple[int, int, int], seed: int) -> Prompts:
    """Return prompts made of gathered material and written phrases.

    Args:
        encode: text to tokens; marks like `<|im_start|>` become single tokens.
        training: material to train on.
        held_out: material of other files, to evaluate on.
        sizes: number of short training prompts, of long ones, and of held-out ones of each kind.
        seed: of the choices.
    """
    rng = Random(seed)  # noqa: S311 (choices, no secrets)
    short, long, spare = sizes
    # The last tenth of topics and tasks is asked of the drafter in the evaluation only.
    topics, tasks = _split(phrases.TOPICS), _split(phrases.TASKS)
    train = {
        kind: [_short(kind, encode, training, topics[0], tasks[0], rng) for _ in range(int(short * share))]
        for kind, share in SHARES.items()
    }
    deep = {
        "code": [_deep(encode, training, rng)[: rng.randint(*LONG)] for _ in range(long // 2)],
        "recall": [_deep_recall(encode, training, rng) for _ in range(long - long // 2)],
    }
    rest = {
        kind: [_short(kind, encode, held_out, topics[1], tasks[1], rng) for _ in range(spare)]
        for kind in KINDS
        if kind != "chat"
    }
    return Prompts(tuple(encode(SYSTEM)), tuple(encode(ASSISTANT)), train, deep, rest, training.origins)


def _split(phrases_: Sequence[str]) -> tuple[Sequence[str], Sequence[str]]:
    border = len(phrases_) - len(phrases_) // 10
    return phrases_[:border], phrases_[border:]


def _short(
    kind: str, encode: Encode, material: Material, topics: Sequence[str], tasks: Sequence[str], rng: Random
) -> Tokens:
    if kind == "code":
        return tuple(encode(rng.choice(material.code)[:1300])[: rng.randint(12, 260)])
    if kind == "recall":
        return _recall(encode, material, rng)
    topic = {"t": rng.choice(topics), "u": rng.choice(topics)}
    if kind == "prose":
        if rng.random() < 0.5:
            return tuple(encode(rng.choice(material.prose)[:900])[: rng.randint(8, 160)])
        opening = rng.choice(phrases.OPENINGS).format(**topic)
        return tuple(encode(opening[0].upper() + opening[1:]))
    if kind == "chat":
        question = rng.choice(phrases.QUESTIONS).format(**topic)
    else:
        question = rng.choice(phrases.REQUESTS).format(c=rng.choice(tasks))
    return tuple(encode(SYSTEM + question + ASSISTANT))


def _recall(encode: Encode, material: Material, rng: Random) -> Tokens:
    form = rng.random()
    function, other = rng.choice(material.functions), rng.choice(material.functions)
    head = function.split("\n")[0]
    if form < 0.4:
        request = rng.choice(phrases.REPEAT_CODE).format(x=function)
        text = SYSTEM + request + ASSISTANT + "```python\n" + head
    elif form < 0.6:
        text = function + rng.choice(phrases.AGAIN) + head
    elif form < 0.8:
        text = function + "\n\n\n" + other + "\n\n\n" + head
    else:
        paragraph = rng.choice(material.prose)[:600]
        request = rng.choice(phrases.REPEAT_TEXT).format(x=paragraph)
        text = SYSTEM + request + ASSISTANT + " ".join(paragraph.split(" ")[:4])
    return tuple(encode(text)[:LONGEST])


def _deep(encode: Encode, material: Material, rng: Random) -> Tokens:
    tokens: list[int] = []
    while len(tokens) < LONG[1]:
        tokens += encode(rng.choice(material.files)[:5000])
    return tuple(tokens)


def _deep_recall(encode: Encode, material: Material, rng: Random) -> Tokens:
    function = rng.choice(material.functions)
    before = _deep(encode, material, rng)[: rng.randint(*LONG) - 400]
    between = encode("\n\n\n" + rng.choice(material.code)[:400])
    again = encode("\n\n\n" + function.split("\n")[0])
    return (*before, *encode("\n\n\n" + function), *between, *again)
