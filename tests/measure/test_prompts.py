import os
import re
import subprocess
import sys
import zlib
from itertools import pairwise
from pathlib import Path

import pytest

from analysis.gates.loops import loop_start
from analysis.measure.corpus import Corpus, Text
from analysis.measure.filler import build_filler, split_texts
from analysis.measure.prompts import build_prompts
from analysis.measure.stubs import function_cuts
from analysis.records import Problem
from analysis.records.model import REGIMES

DEPTHS = (256, 700, 2048)
CODE_REGIMES = ("invention", "continuation", "recall")


@pytest.fixture(scope="module")
def grid(library, vocabulary):
    return {
        regime: build_prompts(library, vocabulary, regime=regime, depths=DEPTHS, count=6, local_tokens=256)
        for regime in REGIMES
    }


@pytest.fixture(scope="module")
def all_prompts(grid):
    return [prompt for prompts in grid.values() for prompt in prompts]


def words(text: str) -> list[int]:
    """Stand in for a tokenizer: one token a word or sign."""
    return [zlib.crc32(word.encode()) % 50_000 for word in re.findall(r"\s*(?:\w+|[^\w\s])", text)]


def test_depth_is_exact_in_tokens(all_prompts):
    for prompt in all_prompts:
        assert {depth: len(tokens) for depth, tokens in prompt.tokens_by_depth.items()} == {d: d for d in DEPTHS}
        assert [len(prompt.filler(depth)) for depth in DEPTHS] == [0, 444, 1792]


def test_depth_is_added_in_front_and_the_local_text_stays(all_prompts):
    for prompt in all_prompts:
        assert len({prompt.tokens(depth)[-256:] for depth in DEPTHS}) == 1


def test_a_server_warms_up_also_where_prompts_share_no_text(all_prompts):
    for prompt in all_prompts:
        assert prompt.warmup(DEPTHS[0]) == prompt.local[:8]
        assert prompt.warmup(DEPTHS[1]) == prompt.filler(DEPTHS[1])


def test_fillers_are_prefixes_of_one_another_and_shared_by_the_whole_grid(all_prompts):
    for shallow, deep in pairwise(DEPTHS):
        fillers = {(prompt.filler(shallow), prompt.filler(deep)) for prompt in all_prompts}
        ((shorter, longer),) = fillers
        assert longer[: len(shorter)] == shorter
        assert len(longer) > len(shorter)


def test_a_context_ends_with_its_stub_and_not_with_white_space(all_prompts, vocabulary):
    for prompt in all_prompts:
        text = vocabulary.text(prompt.tokens(256))
        assert text.endswith(prompt.stub)
        assert not text[-1].isspace()


def test_code_regimes_of_one_id_stand_at_the_same_place_of_the_same_file(grid):
    places = {regime: [(prompt.id, prompt.source) for prompt in grid[regime]] for regime in CODE_REGIMES}
    assert places["invention"] == places["continuation"] == places["recall"]
    assert grid["continuation"][0].stub == grid["recall"][0].stub


def test_recall_holds_the_whole_function_and_then_its_stub_again(grid, vocabulary):
    for prompt in grid["recall"]:
        function = prompt.stub + prompt.original
        text = vocabulary.text(prompt.local)
        assert function in text
        assert text.count(prompt.stub) >= 2
        assert len(vocabulary(prompt.original)) >= 64
        assert loop_start(prompt.original) is None


def test_the_remainder_of_the_function_is_absent_from_invention_and_continuation(grid, vocabulary, library):
    contents = {text.name: text.content for text in library.of_kind("code")}
    for prompt in grid["invention"] + grid["continuation"]:
        (cut,) = (
            c
            for c in function_cuts(contents[prompt.source], shortest_stub=150)
            if prompt.id.endswith(f"-{c.number:02d}")
        )
        remainder, context = cut.remainder(contents[prompt.source]), vocabulary.text(prompt.tokens(2048))
        assert prompt.original == ""
        assert not any(remainder[at : at + 80] in context for at in range(len(remainder) - 79))


def test_an_invented_function_occurs_nowhere_in_the_corpus(grid, library):
    for prompt in grid["invention"]:
        name = prompt.stub.split("def ")[1].split("(")[0]
        assert not library.holds(name)


def test_no_file_serves_both_filler_and_prompts(all_prompts, library):
    reserved = {text.name for kind in ("code", "prose") for text in split_texts(library.of_kind(kind), seed=0)[0]}
    assert reserved.isdisjoint(prompt.source for prompt in all_prompts)


def test_the_filler_is_mixed_real_text(library, vocabulary):
    filler = build_filler(library, vocabulary, 2048, seed=0)
    reserved = [text for kind in ("code", "prose") for text in split_texts(library.of_kind(kind), seed=0)[0]]
    for kind in ("code", "prose"):
        assert sum(text.content[:1500] in filler.text for text in reserved if text.kind == kind) >= 2
    assert filler.text.startswith(vocabulary.text(filler.tokens[:-2]))


def test_no_context_occurs_twice_in_a_grid(all_prompts):
    hashes = [prompt.sha256(depth) for prompt in all_prompts for depth in DEPTHS]
    assert len(set(hashes)) == len(hashes)


@pytest.mark.parametrize("regime", REGIMES)
def test_a_larger_grid_extends_a_smaller_one(grid, library, vocabulary, regime):
    larger = build_prompts(library, vocabulary, regime=regime, depths=(256, 700), count=9, local_tokens=256)
    assert [p.sha256(700) for p in larger[:6]] == [p.sha256(700) for p in grid[regime]]


def test_first_prompts_come_from_as_many_files(grid):
    assert all(len({prompt.source for prompt in prompts}) == len(prompts) for prompts in grid.values())


def test_another_seed_takes_other_text(grid, library, vocabulary):
    other = build_prompts(library, vocabulary, regime="recall", depths=DEPTHS, count=6, local_tokens=256, seed=1)
    assert other[0].filler(2048) != grid["recall"][0].filler(2048)
    assert {prompt.id for prompt in other} != {prompt.id for prompt in grid["recall"]}


def test_local_tokens_default_to_512_or_the_smallest_depth(library, vocabulary):
    (prompt,) = build_prompts(library, vocabulary, regime="prose", depths=(300, 900), count=1)
    assert len(prompt.local) == 300
    (prompt,) = build_prompts(library, vocabulary, regime="prose", depths=(600, 900), count=1)
    assert len(prompt.local) == 512


def test_what_a_model_wants_in_front_counts_as_depth(library, vocabulary):
    for local in (200, 300):  # 300 tokens of text and one in front of them do not fit into 300
        (prompt,) = build_prompts(
            library, vocabulary, regime="prose", depths=(300, 600), count=1, bos=(1,), local_tokens=local
        )
        assert [len(prompt.tokens(depth)) for depth in (300, 600)] == [300, 600]
        assert prompt.tokens(300)[0] == prompt.tokens(600)[0] == 1
        assert prompt.tokens(300)[-150:] == prompt.tokens(600)[-150:]
        assert len(prompt.local) == min(local, 299)


def test_prompts_do_not_depend_on_the_hash_seed_of_the_process(library):
    program = (
        "from analysis.measure.corpus import Corpus; from analysis.measure.prompts import build_prompts;"
        "from test_prompts import words;"
        "prompts = build_prompts(Corpus.standard_library(), words, regime='invention', depths=(256,), count=2);"
        "print([p.sha256(256) for p in prompts])"
    )
    paths = os.pathsep.join([*sys.path, str(Path(__file__).parent)])
    environment = {**os.environ, "PYTHONHASHSEED": "1", "PYTHONPATH": paths}
    said = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, check=True, text=True)
    here = build_prompts(library, words, regime="invention", depths=(256,), count=2)
    assert said.stdout.strip() == str([prompt.sha256(256) for prompt in here])


def test_a_directory_of_the_user_serves_as_well(vocabulary):
    own = Corpus.from_directory(Path(__file__).parents[2] / "src")
    prompts = build_prompts(own, vocabulary, regime="recall", depths=(256, 512), count=3, local_tokens=256)
    assert all(prompt.source.startswith("analysis/") for prompt in prompts)


SMALL = Corpus.of("small corpus", [Text("a.py", "code", "x = 1\n" * 50), Text("b.py", "code", "y = 1\n" * 50)])


@pytest.mark.parametrize(
    ("asked", "complaint"),
    [
        ({"regime": "poetry"}, "no regime named 'poetry'; expected one of invention"),
        ({"depths": ()}, "at least one prompt, depth and token"),
        ({"depths": (0, 5)}, "at least one prompt, depth and token"),
        ({"count": 0}, "at least one prompt, depth and token"),
        ({"local_tokens": 101}, "101 local tokens do not fit into a depth of 100"),
        ({"depths": (100, 9999)}, "gives 150 tokens to put in front of a prompt; expected at least 9899"),
        ({}, "gives 0 prompts for recall with 100 local tokens; expected 2"),
        ({"regime": "prose"}, "gives 0 prompts for prose"),
    ],
)
def test_what_cannot_be_had_is_refused_in_one_line(asked, complaint):
    usual = {"regime": "recall", "depths": (100,), "count": 2, "local_tokens": 100}
    with pytest.raises(Problem, match=complaint) as problem:
        build_prompts(SMALL, words, **{**usual, **asked})
    assert "\n" not in str(problem.value)


def test_a_depth_that_was_not_built_is_no_depth_of_a_prompt(grid):
    with pytest.raises(KeyError, match="was built for depths"):
        grid["prose"][0].tokens(512)
