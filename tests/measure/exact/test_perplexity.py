"""Reading the tool's words, and the gate's three answers."""

from pathlib import Path

import pytest

from analysis.launch import FoundEngine
from analysis.measure.exact.perplexity import Quality, compare_perplexity, read_quality
from analysis.records import Engine, Problem

SAID = """
====== Perplexity statistics ======
Mean PPL(Q)                   :  12.345678 ±   0.123456
Mean PPL(base)                :  12.300000 ±   0.120000
Mean PPL(Q)/PPL(base)         :   1.003714 ±   0.000900
====== KL divergence statistics ======
Mean    KLD:   0.001234 ±   0.000045
Same top p: 98.765 ± 0.123 %
"""


def quality(ratio, error):
    return Quality((1, 0), (1, 0), (ratio, error), (0, 0), (100, 0))


def test_what_the_tool_says_is_read():
    found = read_quality(SAID)
    assert found.ratio == (1.003714, 0.0009)
    assert found.same_top == (98.765, 0.123)
    assert found.verdict() == "keeps"
    found.require()


def test_a_line_that_is_missing():
    with pytest.raises(Problem, match="did not say divergence"):
        read_quality(SAID.replace("KLD", "KL"))


@pytest.mark.parametrize(
    ("ratio", "error", "verdict"), [(1.0, 0.001, "keeps"), (1.0, 0.02, "undecided"), (1.05, 0.001, "loses")]
)
def test_the_gate_has_three_answers_and_passes_one(ratio, error, verdict):
    assert quality(ratio, error).verdict() == verdict
    if verdict == "keeps":
        return
    with pytest.raises(Problem, match=r"perplexity is 1.0\d+ times the reference's .*; expected at most 1.0100"):
        quality(ratio, error).require()


def pretend(tmp_path, script):
    """An engine whose perplexity tool is a few lines of shell."""
    program = tmp_path / "llama-perplexity"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    return FoundEngine(Engine(source="path", version="x"), tmp_path / "llama-server", None)


@pytest.mark.parametrize(("alone", "saw"), [("12.31", ""), ("99.9", "is 99.9, and 12.3 by the file of its logits")])
def test_logits_that_were_cut_off_are_noticed(tmp_path, alone, saw):
    (tmp_path / "said").write_text(SAID)
    comparing, first = f"cat {tmp_path}/said", f"echo 'Final estimate: PPL = {alone} +/- 1'"
    found = pretend(tmp_path, f'case "$*" in *--kl-divergence\\ *) {comparing};; *) {first};; esac')
    if not saw:
        assert compare_perplexity(found, Path("a.gguf"), Path("b.gguf"), "text") == read_quality(SAID)
        return
    with pytest.raises(Problem, match=saw):
        compare_perplexity(found, Path("a.gguf"), Path("b.gguf"), "text")


@pytest.mark.parametrize(
    ("script", "saw"),
    [
        ("echo nothing", "did not say"),
        ("echo 'perplexity: you need at least 256 tokens to evaluate'; exit 1", "too short .* at least 256 tokens"),
        ("echo 'error: cannot load'; exit 3", "llama-perplexity failed: error: cannot load"),
    ],
)
def test_a_tool_that_fails_is_one_line(tmp_path, script, saw):
    with pytest.raises(Problem, match=saw):
        compare_perplexity(pretend(tmp_path, script), Path("a.gguf"), Path("b.gguf"), "text")
