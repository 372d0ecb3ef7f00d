"""From nothing to a measured DeepSeek-V4 pair, with the real server, quantizer and perplexity tool."""

import pytest

from analysis.convert.dsv4 import Recipe
from analysis.convert.rewrite import write_f32
from analysis.measure.exact.perplexity import compare_perplexity
from analysis.measure.exact.tiny import make_tiny, sample_text, serve_tiny, starting_tokens, write_target
from analysis.records import Problem

pytestmark = pytest.mark.engine
RECIPE = Recipe(seed=3)
NARROW = Recipe(seed=3, margin=0.1)


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    return make_tiny(tmp_path_factory.mktemp("tiny"), RECIPE)


def test_every_step_is_made(tiny):
    assert tiny.light.size < tiny.drafter.size
    assert tiny.f32.size > tiny.target.size
    assert not tiny.fit.refused
    assert any(change.rms > 0 for change in tiny.changes)
    assert all(change.rms == 0 for change in tiny.changes if "markov" in change.name.lower())


def test_the_quantized_pair_is_served_as_its_tables_say(engine, tiny):
    """Quantizing the experts moves the drafter's logits, and its table stands out by more."""
    served = serve_tiny(engine, tiny, starting_tokens(3), 48)
    assert [one.as_expected for one in served] == [True] * 3


def test_perplexity_knows_a_model_from_another(engine, tmp_path):
    text = sample_text(NARROW, 1800)
    target = write_target(tmp_path / "target", NARROW)
    same = compare_perplexity(engine, target, write_f32(target, tmp_path / "f32.gguf").path, text)
    assert same.verdict() == "keeps"
    other = compare_perplexity(engine, target, write_target(tmp_path / "other", Recipe(seed=4, margin=0.1)), text)
    assert other.verdict() == "loses"
    with pytest.raises(Problem, match="times the reference's"):
        other.require()


def test_a_text_that_is_too_short(engine, tiny):
    with pytest.raises(Problem, match="too short for a perplexity; expected at least 256 tokens"):
        compare_perplexity(engine, tiny.target.path, tiny.f32.path, "short")
