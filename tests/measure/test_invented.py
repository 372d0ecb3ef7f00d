import ast
import textwrap

import pytest

from analysis.gates.source import frame, parses
from analysis.measure.corpus import Corpus, Text
from analysis.measure.invented import invented_stub
from analysis.records import Problem

BEFORE = "parser command option header payload channel socket buffer window cursor handler packet " * 3


def invent(number: int, **changes) -> str:
    usual = {"name": f"prompt-{number}", "indent": 0, "method": False}
    return invented_stub(Corpus.of("nothing", []), BEFORE, **{**usual, **changes})


def test_hundreds_of_stubs_differ_in_their_names():
    assert len({invent(number).split("(")[0] for number in range(400)}) >= 300


def test_a_stub_is_drawn_from_its_name_alone():
    assert invent(7) == invent(7)


@pytest.mark.parametrize("number", range(40))
def test_a_stub_breaks_off_where_an_expression_must_follow(number):
    stub = invent(number)
    assert not stub[-1].isspace()
    with pytest.raises(SyntaxError):
        ast.parse(stub)
    assert any(parses(f"{stub} 1{end}\n") for end in ("", ":", ")"))


def test_words_of_the_text_around_it_name_its_task():
    assert any(word in invent(3) for word in BEFORE.split())


def test_a_method_is_indented_and_takes_self():
    stub = invent(3, indent=4, method=True)
    assert stub.startswith("    def ")
    assert "(self, " in stub
    assert any(parses(f"{frame(stub)} 1{end}\n") for end in ("", ":", ")"))
    assert textwrap.dedent(stub).replace("self, ", "") == invent(3)


def test_a_function_that_the_corpus_knows_is_not_novel():
    known = invent(5)
    other = invented_stub(
        Corpus.of("one", [Text("a.py", "code", known)]), BEFORE, name="prompt-5", indent=0, method=False
    )
    assert other.split("(")[0] != known.split("(")[0]


def test_a_corpus_of_such_stubs_is_refused():
    class Everything(Corpus):
        def holds(self, phrase: str) -> bool:
            return True

    with pytest.raises(Problem, match="no function name for"):
        invented_stub(Everything.of("everything", []), BEFORE, name="x", indent=0, method=False)
