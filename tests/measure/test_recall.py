import pytest

from analysis.measure.filler import split_texts
from analysis.measure.recall import recall_passage
from analysis.measure.stubs import function_cuts


@pytest.fixture(scope="module")
def passages(library, vocabulary):
    found = []
    for text in split_texts(library.of_kind("code"), 0)[1][:30]:
        for cut in function_cuts(text.content, range(300, 900), 150):
            passage = recall_passage(text.content, cut, 256, vocabulary)
            if passage is not None:
                found.append((text.content, cut, passage))
    assert len(found) >= 10
    return found


def test_the_function_is_shown_whole_and_its_beginning_is_said_again(passages):
    for content, cut, passage in passages:
        function, stub = content[cut.start : cut.end], cut.stub(content)
        assert function in passage.text
        assert passage.text.endswith(stub)
        assert passage.text.rindex(stub) > passage.text.rindex(function)


def test_the_original_is_what_stands_behind_the_stub_in_the_file(passages):
    for content, cut, passage in passages:
        assert content[cut.cut :].startswith(passage.original)
        assert len(passage.original) >= cut.end - cut.cut
        assert not passage.original[-1].isspace()


def test_lines_in_front_of_the_function_are_said_again_to_lengthen_the_stub(passages):
    for content, cut, passage in passages:
        again = passage.text[cut.cut + len(passage.original) :].lstrip("\n")
        assert again == content[cut.cut - len(again) : cut.cut]
        assert len(again) >= len(cut.stub(content))


def test_all_of_it_fits_and_leaves_enough_to_recall(passages, vocabulary):
    for _, cut, passage in passages:
        again = len(passage.text) - cut.cut - len(passage.original)
        assert len(vocabulary(passage.text[cut.start :])) <= 256
        assert again < 256 * 4
        assert len(vocabulary(passage.original)) >= 96


def test_a_function_that_does_not_fit_gives_nothing(library, vocabulary):
    content = next(text.content for text in library.texts if text.name == "argparse.py")
    longest = max(function_cuts(content), key=lambda cut: cut.end - cut.start)
    assert recall_passage(content, longest, 256, vocabulary) is None


def test_a_function_at_the_start_of_a_file_has_no_lines_in_front(vocabulary):
    content = "def f(a):\n" + "".join(f"    b{n} = a + {n}\n" for n in range(30)) + "    return a\n"
    (cut,) = function_cuts(content)
    passage = recall_passage(content, cut, 512, vocabulary)
    assert passage is not None
    assert passage.text.startswith(cut.stub(content))
