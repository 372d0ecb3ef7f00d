"""The order of a drafter's heads, from its weights: the sound file, the faults that have its header, and noise."""

import numpy as np
import pytest

from analysis.convert.broken import permute_rotary, untrained
from analysis.convert.fit import check_fit
from analysis.convert.gguf import read_gguf
from analysis.convert.pairs import load_pair
from analysis.convert.rotary import ENOUGH_HEADS, MAJORITY, Votes, orders, rotary_order, rotary_votes
from analysis.records.places import repo_dir

SHIPPED = repo_dir() / load_pair("smollm2-dspark").drafter.file


def order_found(drafter):
    """What the fit check says of a drafter's heads, as its own target."""
    return next(found for found in check_fit(drafter, drafter).findings if found.check == "order of heads")


def test_the_shipped_drafter_stands_as_the_engine_turns_it():
    votes = rotary_votes(read_gguf(SHIPPED))
    assert (votes.heads, votes.order) == (36, "halves")
    assert order_found(read_gguf(SHIPPED)).verdict == "fits"


@pytest.mark.parametrize(("direction", "found"), [("to pairs", "pairs"), ("to halves", "halves, reordered once more")])
def test_reordered_heads_are_seen_though_the_header_is_the_same(tmp_path, direction, found):
    broken = permute_rotary(SHIPPED, tmp_path / "b.gguf", direction)
    assert broken.metadata == read_gguf(SHIPPED).metadata
    votes = rotary_votes(broken)
    assert votes.order == found
    assert votes.by_order["halves"] <= 2
    said = order_found(broken)
    assert said.verdict == "warned"
    assert said.saw == f"the weights stand in {found}, say {votes.by_order[found]} of 36 heads"
    assert "convert it again" in said.expected


def test_weights_that_learnt_nothing_have_no_order(tmp_path):
    noise = untrained(SHIPPED, tmp_path / "n.gguf")
    assert rotary_votes(noise).order == ""
    assert order_found(noise).verdict == "note"


@pytest.mark.engine
def test_the_target_stands_in_the_other_order(local_target):
    """Its 360 heads took no part in choosing the method; llama.cpp keeps this architecture in pairs."""
    votes = rotary_votes(read_gguf(local_target))
    assert (votes.heads, votes.order) == (360, "pairs")


def test_a_drafter_without_separate_queries_and_keys_is_not_asked(dsv4_drafter, small_gguf):
    assert rotary_votes(read_gguf(dsv4_drafter)) is None
    assert rotary_votes(read_gguf(small_gguf)) is None


def test_tensors_that_are_no_whole_heads_are_not_asked(changed_gguf):
    other = changed_gguf(SHIPPED, tensors={"blk.0.attn_k.weight": np.ones((190, 576), np.float32)})
    assert rotary_votes(read_gguf(other)) is None


def test_few_heads_and_a_narrow_majority_decide_nothing():
    assert Votes(ENOUGH_HEADS - 1, {"halves": ENOUGH_HEADS - 1, "pairs": 0}).order == ""
    assert Votes(40, {"halves": 10, "pairs": round(40 * MAJORITY)}).order == "pairs"
    assert Votes(40, {"halves": 11, "pairs": round(40 * MAJORITY) - 1}).order == ""


@pytest.mark.parametrize("width", [64, 128])
def test_the_orders_are_those_that_reordering_makes(width):
    found = orders(width)
    assert (found["halves"][rotary_order(width, "to pairs")] == found["pairs"]).all()
    assert (found["pairs"][rotary_order(width, "to halves")] == found["halves"]).all()
    assert len({tuple(order) for order in found.values()}) == 4
