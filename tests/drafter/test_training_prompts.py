from pathlib import Path
from random import Random

import numpy as np
import pytest

from analysis.drafter import prompts, text
from analysis.drafter.text import Material, Origin

MODULE = '''"""A module of sums. %s"""

import math


def add(first, second):
    """Add."""
    total = first + second
    if total > 10:
        print("a large total", total, math.sqrt(total))
    return total


class Sum:
    def __init__(self):
        self.value = 0
''' % ("It is about numbers and how they are added up in many ways. " * 5)


def encode(words: str) -> list[int]:
    return [ord(letter) % 90 + 4 for letter in words]


@pytest.fixture
def material():
    return Material(
        code=(MODULE,),
        prose=("All about sums. " * 20,),
        functions=(MODULE.split("\n\n\n")[1],),
        files=(MODULE * 20,),
        origins=(),
    )


def test_a_source_file_gives_functions_docstrings_and_heads():
    rng = Random(1)
    assert text.function_pieces(MODULE, rng)[0].startswith("def add(first, second):")
    assert text.function_pieces(MODULE, rng)[0].endswith("return total")
    assert text.docstrings(MODULE, rng)[0].startswith("A module of sums.")
    assert text.docstrings("def broken(:", rng) == []
    assert MODULE[:1800] in text.code_pieces(MODULE, rng)


def test_every_source_has_a_licence_that_permits():
    origins = [origin for origin, _ in text.installed_sources()]
    assert origins[0].licence == "PSF-2.0"
    assert all(origin.licence for origin in origins)
    assert not any("GPL" in origin.licence or "MPL" in origin.licence for origin in origins)


def test_held_out_files_are_never_trained_on(tmp_path):
    paths = []
    for number in range(60):
        paths.append(tmp_path / f"module_{number}.py")
        paths[-1].write_text(MODULE.replace("sums", f"sums number {number}"))
    sources = [(Origin("made", "1", "MIT", 60), paths)]
    trained = text.gather(sources, Random(1), most_files=60, held_out=False)
    held_out = text.gather(sources, Random(1), most_files=60, held_out=True)
    assert trained.files
    assert held_out.files
    assert not set(trained.files) & set(held_out.files)
    assert len(trained.files) + len(held_out.files) == 60


def test_what_is_not_plain_text_is_left_out(tmp_path: Path):
    (tmp_path / "short.py").write_text("x = 1")
    (tmp_path / "latin.py").write_bytes(b"\xe4" * 500)
    sources = [(Origin("made", "1", "MIT", 2), sorted(tmp_path.iterdir()))]
    found = [text.gather(sources, Random(1), most_files=9, held_out=held) for held in (True, False)]
    assert not any(material.files for material in found)


def test_prompts_come_in_their_shares_and_survive_saving(material, tmp_path):
    built = prompts.build(encode, material, material, (50, 4, 3), seed=2)
    assert {kind: len(group) for kind, group in built.train.items()} == {
        "code": 8,
        "prose": 9,
        "chat": 5,
        "chat-code": 5,
        "recall": 8,
    }
    assert all(len(prompt) <= prompts.LONGEST for group in built.train.values() for prompt in group)
    assert all(len(prompt) > prompts.LONG[0] - 400 for group in built.long.values() for prompt in group)

    built.save(tmp_path / "prompts.npz")
    assert prompts.Prompts.load(tmp_path / "prompts.npz") == built


def test_a_recall_prompt_ends_in_the_head_of_a_function_it_has_shown(material):
    built = prompts.build(encode, material, material, (100, 2, 1), seed=2)
    head = tuple(encode("def add(first, second):"))
    shown = [prompt for prompt in built.train["recall"] if prompt[-len(head) :] == head]
    assert shown
    assert all(_count(prompt, head) >= 2 for prompt in shown if len(prompt) < prompts.LONGEST)


def test_a_supply_deals_every_prompt_before_one_comes_again(tiny_prompts):
    supply = tiny_prompts.training([[40, 41], [42, 43]], np.random.default_rng(0))
    dealt, kinds = supply.take(200, long=False)
    chats = [prompt for prompt in dealt if prompt[:2] == (1, 10)]
    assert set(chats) == {(1, 10, 40, 41, 2, 11), (1, 10, 42, 43, 2, 11)}
    assert abs(chats.count(chats[0]) - len(chats) / 2) <= 1
    assert set(kinds) == {0, 1, 2, 3, 4}


def _count(whole, part):
    return sum(whole[i : i + len(part)] == part for i in range(len(whole)))
