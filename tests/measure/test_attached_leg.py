"""A running server is held against the pair it is said to serve, before anything is measured."""

from dataclasses import replace

import pytest

from analysis.convert.gguf import read_gguf
from analysis.convert.pairs import load_pair
from analysis.launch import Attached
from analysis.measure.access import ServerAccess
from analysis.measure.attached import attached_leg, machine_of, target_here
from analysis.measure.plan import DRAFTED, load_grid
from analysis.records import Problem

PAIR = load_pair("smollm2-ngram")


@pytest.fixture(scope="module")
def seen(local_target):
    """A server that serves the local target and drafts."""
    header = read_gguf(local_target)
    return Attached(
        model=local_target.name,
        alias="",
        build="b1-0c1e570",
        context=4096,
        slots=1,
        speculative=True,
        kinds="ngram-simple",
        vocabulary=header.vocabulary_size,
        parameters=header.parameters,
        silent=(),
    )


def leg(pair, seen):
    return attached_leg(pair, seen, load_grid("smoke"))


def test_the_cell_holds_what_the_server_says(seen):
    planned = leg(PAIR, replace(seen, context=2048, slots=3))
    assert planned.leg == DRAFTED
    assert (planned.config.context, planned.config.parallel) == (2048, 3)


def test_a_context_that_it_does_not_tell_is_refused(seen):
    with pytest.raises(Problem, match="does not say how long its context is.*--slots"):
        leg(PAIR, replace(seen, context=None))


def test_a_context_that_is_too_short_is_refused(seen):
    with pytest.raises(Problem, match="need 536 tokens of context"):
        leg(PAIR, replace(seen, context=512))


def test_a_server_that_drafts_nothing_is_no_drafted_leg(seen):
    with pytest.raises(Problem, match="says that it drafts nothing"):
        leg(PAIR, replace(seen, speculative=False))


def test_a_server_that_drafts_is_no_raw_leg(seen):
    with pytest.raises(Problem, match="says that it drafts"):
        leg(load_pair("smollm2-raw"), seen)


@pytest.mark.parametrize("lie", [{"vocabulary": 32000}, {"parameters": 7_000_000_000}])
def test_a_server_that_lies_about_its_model_is_refused(seen, lie):
    named = replace(seen, model="SmolLM2-135M-Instruct.Q4_1.gguf\x1b[31m", **lie)
    with pytest.raises(Problem, match="calls its model 'SmolLM2-135M.*expected 49,152|134,515,008") as caught:
        leg(PAIR, named)
    assert str(caught.value).isprintable()


def test_a_target_that_is_not_here_cannot_be_compared(seen, tmp_path, monkeypatch):
    monkeypatch.setenv("SPECBOOK_CACHE", str(tmp_path))
    assert target_here(PAIR.target) is None
    assert leg(PAIR, replace(seen, vocabulary=32000)).leg == DRAFTED


def test_nothing_is_claimed_of_a_machine_elsewhere():
    here, there = (machine_of(ServerAccess(url)) for url in ("http://127.0.0.1:1", "http://10.1.2.3:1"))
    assert here.memory > 0
    assert there.memory == 0
    assert "not known" in there.cpu
