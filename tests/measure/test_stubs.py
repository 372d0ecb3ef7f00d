import ast
import textwrap

import pytest

from analysis.gates.source import frame, parses
from analysis.measure.stubs import function_cuts, paragraph_cuts

METHOD = '''import os

class Box:
    """A box."""

    @property
    def size(self, unit=1):
        """Return the size of the box,
        which is = always known."""
        width = self.width
        height = self.height
        depth = self.depth
        return width * height * depth // unit

    def open(self): return self.lid
'''


def test_a_function_is_cut_behind_its_docstring_where_an_expression_must_follow():
    (cut,) = function_cuts(METHOD)
    assert cut.stub(METHOD).startswith("    @property\n    def size(self, unit=1):\n")
    assert cut.stub(METHOD).endswith("height =")
    assert cut.remainder(METHOD).startswith(" self.height\n")
    assert cut.remainder(METHOD).endswith("// unit")
    assert cut.method


@pytest.mark.parametrize("name", ["argparse.py", "textwrap.py", "email/message.py"])
def test_every_cut_of_real_source_is_in_mid_expression_and_its_two_parts_are_the_function(library, name):
    content = next(text.content for text in library.texts if text.name == name)
    cuts = function_cuts(content)
    assert len(cuts) >= 3
    for cut in cuts:
        stub, remainder = cut.stub(content), cut.remainder(content)
        assert not stub[-1].isspace()
        assert remainder[0] == " "
        assert len(ast.parse(textwrap.dedent(stub + remainder)).body) == 1
        with pytest.raises(SyntaxError):
            ast.parse(frame(stub))


def test_text_that_is_no_python_has_no_functions_to_cut():
    assert function_cuts("print 'two'\n") == []
    assert function_cuts("\0") == []


def test_a_function_that_is_mostly_comments_is_not_cut():
    comment = "    # what follows is a long remark about nothing at all, in plain words\n" * 6
    assert function_cuts(f"def f(a):\n    b = a\n    c = b\n{comment}    return c\n") == []


def test_a_paragraph_is_cut_between_two_words_in_mid_sentence():
    words = "Heading\n*******\n\n" + "The value of an expression is computed from the values of its parts.\n" * 5
    (cut,) = paragraph_cuts(words)
    assert cut.stub(words).startswith("The value")
    assert cut.stub(words)[-1].isalpha()
    assert cut.remainder(words)[0] == " "
    assert cut.remainder(words)[1].islower()


def test_tables_lists_and_examples_are_no_paragraphs():
    assert paragraph_cuts("+---+---+\n" * 40) == []
    assert paragraph_cuts("* a list item that goes on and on. " * 20) == []
    assert paragraph_cuts(">>> print(1)\n" * 40) == []


def test_stubs_of_prose_are_not_code(library):
    content = next(text.content for text in library.texts if text.name == "topics/try")
    assert not any(parses(cut.stub(content)) for cut in paragraph_cuts(content))
