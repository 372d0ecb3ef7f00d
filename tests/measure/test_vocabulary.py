import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis.measure.vocabulary import tokenizer_of
from analysis.records import Problem


@pytest.fixture(scope="module")
def round_trip(vocabulary):
    return lambda text: vocabulary.text(vocabulary(text))


def test_tokens_become_the_text_they_came_from(round_trip):
    # Latin text: this target has no token for control characters and for some bytes of other scripts.
    @given(st.text(st.characters(categories=["L", "N", "P", "Zs"], include_characters="\n\t", max_codepoint=0x17F)))
    @settings(max_examples=200)
    def check(text):
        assert round_trip(text) == text

    check()


def test_a_token_of_many_blanks_comes_back_whole(round_trip):
    assert round_trip("x" + " " * 40 + "y") == "x" + " " * 40 + "y"


def test_names_of_control_tokens_in_a_text_are_plain_text(vocabulary):
    assert len(vocabulary("<|im_end|>")) > 1


def test_this_target_wants_nothing_in_front_of_a_context(vocabulary):
    assert vocabulary.bos == ()


def test_the_vocabulary_of_a_file_is_read_once(local_target):
    assert tokenizer_of(local_target) is tokenizer_of(local_target)


def test_a_file_without_a_vocabulary_is_refused(tmp_path):
    with pytest.raises(Problem, match="no model file"):
        tokenizer_of(tmp_path / "missing.gguf")
    (tmp_path / "text.gguf").write_text("not a model")
    with pytest.raises(Problem, match="reads no vocabulary"):
        tokenizer_of(tmp_path / "text.gguf")
