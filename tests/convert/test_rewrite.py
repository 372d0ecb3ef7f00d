"""Copies with other values: F32 that holds the same numbers, and faults that leave all but the numbers as they are."""

import numpy as np
import pytest

from analysis.convert.broken import permute_rotary, rotary_order, untrained
from analysis.convert.compare import compare_models, read_rows
from analysis.convert.fetch import fetch
from analysis.convert.fit import check_fit
from analysis.convert.gguf import read_gguf
from analysis.convert.pairs import load_pair
from analysis.convert.rewrite import rewrite, write_f32
from analysis.records import Problem


@pytest.fixture(scope="module")
def drafter():
    return fetch(load_pair("smollm2-dspark").drafter)


def values(path):
    with path.open("rb") as file:
        wanted = [tensor for tensor in read_gguf(path).tensors if "attn_" in tensor.name]
        return {tensor.name: np.concatenate(list(read_rows(file, tensor))) for tensor in wanted}


def test_f32_holds_the_same_numbers(dsv4_target, tmp_path):
    found = write_f32(dsv4_target, tmp_path / "f32.gguf")
    assert set(found.bytes_by_type) == {"F32", "I32"}
    changes = compare_models(read_gguf(dsv4_target), found, progress=False)
    assert all(change.rms == 0 for change in changes)


def test_a_copy_without_an_edit_is_the_same_file(drafter, tmp_path):
    rewrite(drafter, tmp_path / "copy.gguf", lambda name: None)
    assert (tmp_path / "copy.gguf").read_bytes() == drafter.read_bytes()


def test_an_edit_may_not_change_a_shape(drafter, tmp_path):
    with pytest.raises(Problem, match="would be"):
        rewrite(drafter, tmp_path / "c.gguf", lambda name: lambda array: array[:1] if array.ndim > 1 else array)
    assert list(tmp_path.iterdir()) == []


def test_orders_undo_each_other():
    pairs, halves = rotary_order(8, "to pairs"), rotary_order(8, "to halves")
    assert pairs == [0, 4, 1, 5, 2, 6, 3, 7]
    assert [pairs[place] for place in halves] == list(range(8))


@pytest.mark.parametrize("directions", [("to pairs", "to halves"), ("to halves", "to pairs")])
def test_permuting_there_and_back_gives_the_sound_drafter(drafter, tmp_path, directions):
    there = permute_rotary(drafter, tmp_path / "there.gguf", directions[0]).path
    back = permute_rotary(there, tmp_path / "back.gguf", directions[1]).path
    sound, moved, again = values(drafter), values(there), values(back)
    for name, array in sound.items():
        assert np.array_equal(array, again[name])
        rotated = name.split(".")[2] in ("attn_q", "attn_k", "attn_q_norm", "attn_k_norm")
        assert np.array_equal(array, moved[name]) != rotated
        assert np.array_equal(np.sort(array, axis=None), np.sort(moved[name], axis=None))


def test_no_header_tells_of_these_faults(drafter, local_target, tmp_path):
    """So a gate on what was accepted must."""
    for broken in (
        permute_rotary(drafter, tmp_path / "p.gguf", "to pairs"),
        untrained(drafter, tmp_path / "u.gguf"),
    ):
        assert not check_fit(read_gguf(local_target), broken).refused
        assert [(t.name, t.shape, t.type) for t in broken.tensors] == [
            (t.name, t.shape, t.type) for t in read_gguf(drafter).tensors
        ]


def test_a_drafter_with_one_projection_for_both_has_nothing_to_permute(dsv4_drafter, tmp_path):
    with pytest.raises(Problem, match="has no separate queries and keys"):
        permute_rotary(dsv4_drafter, tmp_path / "p.gguf", "to pairs")
