"""Target and drafter before anything is started: every way not to fit, each with a file that shows it."""

from dataclasses import replace

import numpy as np
import pytest

from analysis.convert.fit import check_fit, made_for
from analysis.convert.gguf import read_gguf
from analysis.convert.memory import Serving
from analysis.records import Problem

NO_ROOM = 1 << 20


def verdicts(fit):
    return {finding.check: finding.verdict for finding in fit.findings}


def refusal(fit):
    (finding,) = fit.refused
    return finding


def test_the_synthetic_pair_fits(dsv4_target, dsv4_drafter):
    fit = check_fit(read_gguf(dsv4_target), read_gguf(dsv4_drafter), serving=Serving(rollback=5), room=1 << 30)
    assert fit.spec_type == "draft-dspark"
    assert not fit.refused
    assert verdicts(fit) == {
        "target": "fits",
        "chat template": "note",
        "speculation type": "fits",
        "vocabulary": "fits",
        "hidden width": "fits",
        "target layers": "fits",
        "mask token": "fits",
        "block size": "fits",
        "Markov head": "fits",
        "confidence head": "fits",
        "tensors": "fits",
        "rotary style": "fits",
        "YaRN": "fits",
        "types of the target": "fits",
        "types of the drafter": "fits",
        "memory": "fits",
    }
    fit.require()


def test_a_target_alone_fits(local_target):
    fit = check_fit(read_gguf(local_target))
    assert fit.spec_type == "none"
    assert verdicts(fit) == {"target": "fits", "types of the target": "fits"}


def test_what_a_file_is_made_for(dsv4_drafter, small_gguf, changed_gguf):
    assert made_for(None) == "none"
    assert made_for(read_gguf(dsv4_drafter)) == "draft-dspark"
    assert made_for(read_gguf(changed_gguf(dsv4_drafter, drop=["markov_w1.weight"]))) == "draft-dflash"
    assert made_for(read_gguf(changed_gguf(small_gguf, architecture="eagle3"))) == "draft-eagle3"
    assert made_for(read_gguf(small_gguf)) == "draft-simple"


def test_a_dspark_file_as_dflash(dsv4_target, dsv4_drafter):
    fit = check_fit(read_gguf(dsv4_target), read_gguf(dsv4_drafter), spec_type="draft-dflash")
    assert refusal(fit).saw == "draft-dflash for a drafter of type dflash with a Markov head"
    assert refusal(fit).expected == "draft-dspark"
    with pytest.raises(Problem, match="speculation type: draft-dflash for .* Markov head; expected draft-dspark"):
        fit.require()


def test_a_dflash_file_as_dspark(dsv4_target, dsv4_drafter, changed_gguf):
    plain = changed_gguf(dsv4_drafter, drop=["markov_w1.weight", "markov_w2.weight", "conf_proj.weight"])
    fit = check_fit(read_gguf(dsv4_target), read_gguf(plain), spec_type="draft-dspark")
    assert {finding.check for finding in fit.refused} == {"speculation type", "Markov head", "tensors"}


def test_no_drafter_for_a_type_that_needs_one(dsv4_target):
    fit = check_fit(read_gguf(dsv4_target), spec_type="draft-dspark")
    assert refusal(fit).saw == "draft-dspark without a drafter"


def test_drafter_and_target_swapped(dsv4_target, dsv4_drafter):
    fit = check_fit(read_gguf(dsv4_drafter), read_gguf(dsv4_target))
    assert refusal(fit).saw == "the target is a drafter (dflash)"


@pytest.mark.engine
def test_a_drafter_of_another_target(local_target, dsv4_drafter):
    fit = check_fit(read_gguf(local_target), read_gguf(dsv4_drafter))
    saws = {finding.check: (finding.saw, finding.expected) for finding in fit.refused}
    assert saws["vocabulary"] == ("the drafter has 512 tokens", "the target's 49152")
    assert saws["hidden width"] == ("the drafter's is 256", "the target's 576")
    assert saws["rotary style"] == ("the drafter rotates interleaved pairs (as DeepSeek)", "a drafter for llama")
    with pytest.raises(Problem, match=r"vocabulary: .* \(and 2 more\)"):
        fit.require()


def test_a_vocabulary_of_equal_size_with_other_tokens(dsv4_target, dsv4_drafter, changed_gguf):
    tokens = list(read_gguf(dsv4_drafter).metadata["tokenizer.ggml.tokens"])
    tokens[300], tokens[301] = tokens[301], tokens[300]
    other = changed_gguf(dsv4_drafter, metadata={"tokenizer.ggml.tokens": tokens})
    found = refusal(check_fit(read_gguf(dsv4_target), read_gguf(other)))
    assert found.check == "vocabulary"
    assert "hash to" in found.saw


def test_a_drafter_without_a_vocabulary(dsv4_target, dsv4_drafter, changed_gguf):
    other = changed_gguf(dsv4_drafter, metadata={"tokenizer.ggml.tokens": None})
    checks = {finding.check for finding in check_fit(read_gguf(dsv4_target), read_gguf(other)).refused}
    assert "vocabulary" in checks


@pytest.mark.parametrize(
    ("metadata", "check", "saw"),
    [
        ({"tokenizer.ggml.mask_token_id": None}, "mask token", "none"),
        ({"tokenizer.ggml.mask_token_id": 512}, "mask token", "512"),
        ({"dflash.block_size": None}, "block size", "the drafter states none"),
        ({"dflash.target_layers": [3, 4, 6]}, "target layers", "the drafter reads the inputs of layers [3, 4, 6]"),
        ({"dflash.block_count": 4}, "tensors", "81 tensors: 9 and [24, 24, 24] in blocks"),
        ({"dflash.hyper_connection.count": None}, "rotary style", "the drafter rotates halves (NeoX)"),
        ({"dflash.attention.compress_ratios": [0, 4, 0]}, "YaRN", "YaRN on a drafter with sliding windows"),
    ],
)
def test_metadata_that_does_not_fit(dsv4_target, dsv4_drafter, changed_gguf, metadata, check, saw):
    fit = check_fit(read_gguf(dsv4_target), read_gguf(changed_gguf(dsv4_drafter, metadata=metadata)))
    refused = {finding.check: finding for finding in fit.refused}
    assert refused[check].saw == saw
    assert refused[check].expected


def test_a_drafter_that_names_no_target_layers(dsv4_target, dsv4_drafter, changed_gguf):
    other = changed_gguf(dsv4_drafter, metadata={"dflash.target_layers": None})
    refused = {finding.check: finding.saw for finding in check_fit(read_gguf(dsv4_target), read_gguf(other)).refused}
    assert refused["target layers"] == "the drafter names none"


@pytest.mark.parametrize(
    ("name", "shape", "check"),
    [
        ("fc.weight", (256, 512), "hidden width"),
        ("markov_w2.weight", (512, 32), "Markov head"),
        ("conf_proj.weight", (1, 256), "confidence head"),
    ],
)
def test_a_head_of_another_size(dsv4_target, dsv4_drafter, changed_gguf, name, shape, check):
    other = changed_gguf(dsv4_drafter, tensors={name: np.zeros(shape, np.float32)})
    found = refusal(check_fit(read_gguf(dsv4_target), read_gguf(other)))
    assert found.check == check
    assert str(tuple(reversed(shape))) in found.saw


def test_no_confidence_head(dsv4_target, dsv4_drafter, changed_gguf):
    """Needed only where p_min cuts drafts."""
    other = read_gguf(changed_gguf(dsv4_drafter, drop=["conf_proj.weight"]))
    target = read_gguf(dsv4_target)
    assert verdicts(check_fit(target, other))["confidence head"] == "note"
    refused = {finding.check: finding for finding in check_fit(target, other, p_min=0.2).refused}
    assert refused["confidence head"].saw == "none, with p_min 0.2"


def test_a_drafter_that_lost_a_tensor(dsv4_target, dsv4_drafter, changed_gguf):
    other = changed_gguf(dsv4_drafter, drop=["blk.1.ffn_gate_exps.weight"])
    found = refusal(check_fit(read_gguf(dsv4_target), read_gguf(other)))
    assert (found.check, found.expected) == ("tensors", "3 x 24 + 9")
    assert found.saw == "80 tensors: 9 and [23, 24, 24] in blocks"


def test_a_longer_draft_than_the_block_is_noted(dsv4_target, dsv4_drafter):
    fit = check_fit(read_gguf(dsv4_target), read_gguf(dsv4_drafter), serving=Serving(rollback=6))
    (found,) = (finding for finding in fit.findings if finding.check == "block size")
    assert (found.verdict, found.expected) == ("note", "at most 5: the server will draft that many")


def test_coarse_critical_tensors_are_noted(dsv4_target, dsv4_drafter, changed_gguf):
    coarse = np.zeros((512, 64 // 32 * 18), np.uint8)  # 64 values a row in Q4_0
    path = changed_gguf(dsv4_drafter, drop=["markov_w1.weight"])
    assert "precision" not in verdicts(check_fit(read_gguf(dsv4_target), read_gguf(path)))
    file = read_gguf(dsv4_drafter)
    tensors = tuple(
        replace(tensor, type="Q4_0", nbytes=coarse.nbytes) if tensor.name == "markov_w1.weight" else tensor
        for tensor in file.tensors
    )
    fit = check_fit(read_gguf(dsv4_target), replace(file, tensors=tensors))
    (found,) = (finding for finding in fit.findings if finding.check == "precision")
    assert (found.verdict, found.saw) == ("note", "markov_w1.weight Q4_0")


def test_too_little_memory(dsv4_target, dsv4_drafter):
    fit = check_fit(read_gguf(dsv4_target), read_gguf(dsv4_drafter), room=NO_ROOM)
    assert refusal(fit).check == "memory"
    assert "a shorter context or smaller files" in refusal(fit).expected


@pytest.mark.parametrize("content", [b"", b"GGUF", b"not a model\n"])
def test_an_unreadable_drafter_is_refused_before(tmp_path, content):
    file = tmp_path / "drafter.gguf"
    file.write_bytes(content)
    with pytest.raises(Problem, match=r"drafter.gguf"):
        read_gguf(file)


def test_a_truncated_drafter_is_refused_before(dsv4_drafter, tmp_path):
    cut = tmp_path / "drafter.gguf"
    cut.write_bytes(dsv4_drafter.read_bytes()[:-40_000])
    with pytest.raises(Problem, match="is truncated"):
        read_gguf(cut)
