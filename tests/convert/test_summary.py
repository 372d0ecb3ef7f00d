"""Tensors by what they are for."""

import pytest

from analysis.convert.gguf import read_gguf
from analysis.convert.summary import group_of, summarise


@pytest.mark.parametrize(
    ("tensor", "group"),
    [
        ("token_embd.weight", "embedding"),
        ("output.weight", "output"),
        ("output_norm.weight", "norms"),
        ("blk.3.attn_q.weight", "attention"),
        ("blk.3.attn_q_a_norm.weight", "norms"),
        ("blk.3.attn_sinks.weight", "attention"),
        ("blk.3.attn_compressor_kv.weight", "attention: compressor and indexer"),
        ("blk.3.indexer.attn_q_b.weight", "attention: compressor and indexer"),
        ("blk.3.ffn_gate.weight", "feed-forward"),
        ("blk.3.ffn_gate_shexp.weight", "feed-forward"),
        ("blk.3.ffn_down_exps.weight", "experts"),
        ("blk.3.ffn_gate_inp.weight", "router"),
        ("blk.3.exp_probs_b.bias", "router"),
        ("blk.3.hc_attn_fn.weight", "hyper-connections"),
        ("output_hc_fn.weight", "hyper-connections"),
        ("fc.weight", "drafter: input projection"),
        ("enc.output_norm.weight", "drafter: input projection"),
        ("markov_w1.weight", "drafter: Markov head"),
        ("conf_proj.weight", "drafter: confidence head"),
        ("rope_freqs.weight", "other"),
    ],
)
def test_group_of(tensor, group):
    assert group_of(tensor) == group


def test_groups_add_up_to_the_file(small_gguf):
    file = read_gguf(small_gguf)
    groups = summarise(file)
    assert [group.name for group in groups] == ["embedding", "norms"]
    assert sum(group.parameters for group in groups) == file.parameters
    assert sum(group.nbytes for group in groups) == sum(tensor.nbytes for tensor in file.tensors)
    assert groups[0].bits_per_weight == 32


@pytest.mark.engine
def test_the_local_target(local_target):
    groups = {group.name: group for group in summarise(read_gguf(local_target))}
    assert set(groups) == {"embedding", "attention", "feed-forward", "norms"}
    assert groups["feed-forward"].types == ("Q4_1",)
    assert groups["feed-forward"].bits_per_weight == 5
    assert groups["embedding"].bits_per_weight == 8.5
