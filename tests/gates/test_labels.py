import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.gates.labels import label
from analysis.gates.regime import ALLOWED
from analysis.measure.corpus import Corpus
from analysis.measure.stubs import function_cuts, paragraph_cuts
from analysis.records.model import REGIMES

# Real replies of the local target (greedy, 64 tokens), one for each regime, each with the stub it continues.
CODE_STUB = '''    def formatmonthname(self, theyear, themonth, withyear=True):
        """
        Return a month name as a table row.
        """
        if withyear:
            s = '%s %s' %'''
CODE = """ (self.formatmonthname_abbr, theyear)
        else:
            s = '%s %s' % (self.formatmonthname_abbr, theyear)
        return '<tr>%s</tr>' % s

    def formatmonthname_abbr(self, month):
       """
RECALL = """ (month_name[themonth], theyear)
        else:
            s = '%s' % month_name[themonth]
        return '<tr><th colspan="7" class="%s">%s</th></tr>' % (
            self.cssclass_month_head, s"""
ORIGINAL = RECALL + ")"
PROSE_STUB = """Changed in version 3.6: Unrecognized escape sequences produce"""
PROSE = """ a "SyntaxError".

Changed in version 3.7: Added a new escape sequence that is used to
contain a single Unicode character.  This is a Unicode character
with the given value.

Changed in version 3.8: Added a new escape sequence that is used"""
LOOP = """ self.rawq_getch():
                self.rawq_getch()
            self.rawq_getch()
            self.rawq_getch()
            self.rawq_getch()
            self.rawq_getch()
            self.rawq_getch()
            self"""
STUBS = {"invention": CODE_STUB, "continuation": CODE_STUB, "recall": CODE_STUB, "prose": PROSE_STUB}
EMITTED = {"invention": CODE, "continuation": CODE, "recall": RECALL, "prose": PROSE}


def kind(regime, emitted):
    original = ORIGINAL if regime == "recall" else ""
    return label(regime, STUBS[regime], emitted, original).kind


@pytest.mark.parametrize("regime", REGIMES)
def test_a_reply_of_its_regime_is_taken(regime):
    assert kind(regime, EMITTED[regime]) in ALLOWED[regime]


@pytest.mark.parametrize(
    ("regime", "origin"),
    [(regime, origin) for regime in REGIMES for origin in REGIMES if EMITTED[regime] != EMITTED[origin]],
)
def test_text_swapped_between_regimes_is_refused(regime, origin):
    swapped = EMITTED[origin]
    if origin == "recall" and regime in ("invention", "continuation"):
        # What was recalled is code as well. Without an original to compare it with, it is no worse than code.
        assert kind(regime, swapped) == "code"
    else:
        assert kind(regime, swapped) not in ALLOWED[regime]


@pytest.mark.parametrize("regime", REGIMES)
@pytest.mark.parametrize("emitted", ["", " \n\n", LOOP, " I'm sorry, but I can't assist with that.", " As an AI, I"])
def test_empty_looping_and_refusing_replies_belong_to_no_regime(regime, emitted):
    assert kind(regime, emitted) in {"empty", "loop", "refusal"}


def test_english_in_comments_is_not_code():
    answer = """ 0
    # The user wants the sum of all prices. We should iterate over the items and add
    # the price of each one to the total. Note that an item may have no price at all.
    # Then we return the total, which is what the docstring of the function asks for.
    total += 1
"""
    found = label("continuation", "def f(items):\n    total =", answer)
    assert found.kind == "prose"
    assert "comments" in found.why


def test_a_docstring_that_never_ends_is_not_code():
    answer = (
        ' 0\n\n\ndef g():\n    """Return the value of the first item that is not\n'
        + "    one of the items given.\n" * 3
    )
    assert label("invention", "def f(items):\n    total =", answer).kind == "prose"


def test_a_chat_answer_inside_a_comment_is_a_refusal():
    answer = " 0\n    # I'm sorry, but as an AI I cannot write this.\n    return total\n"
    assert label("continuation", "def f(items):\n    total =", answer).kind == "refusal"


def test_code_with_an_error_in_its_middle_is_code_up_to_there():
    found = label("continuation", "def f(a):\n    b =", " a + 1\n    c = b * 2\n    d = c - a\n    return d d\n")
    assert found.kind == "code"
    assert 0.6 < found.share < 0.9
    assert label("continuation", "def f(a):\n    b =", " x y\n    c = b * 2\n    return c\n").kind == "other"


def test_recall_says_how_much_of_the_original_came_back():
    assert label("recall", CODE_STUB, ORIGINAL, ORIGINAL).share == 1
    half = ORIGINAL[: len(ORIGINAL) // 2]
    assert label("recall", CODE_STUB, half, ORIGINAL).share == pytest.approx(0.5, abs=0.01)


def test_recall_is_byte_for_byte():
    assert label("recall", CODE_STUB, ORIGINAL.replace("month_name", "monthname", 1), ORIGINAL).kind == "code"


def test_most_of_a_recall_must_be_recalled():
    beyond = ORIGINAL + "\n\n    def g(self):\n        return " + " + ".join(f"self.a{n}b" for n in range(40))
    assert label("recall", CODE_STUB, beyond, ORIGINAL).kind == "code"


def test_loops_are_found_in_tokens_where_the_text_hides_them():
    assert label("prose", PROSE_STUB, "words that are few", tokens=[5, 6, 7] * 12).kind == "loop"


def test_a_loop_says_where_it_begins():
    found = label("continuation", CODE_STUB, LOOP)
    assert found.share == pytest.approx(1 - LOOP.index("            self.rawq") / len(LOOP), abs=0.2)


@pytest.fixture(scope="module")
def library_code():
    """Return (text, cut) for one file of the standard library in five, up to six functions each."""
    texts = [text.content for text in Corpus.standard_library().of_kind("code")[::5]]
    return [(text, cut) for text in texts for cut in function_cuts(text)[:6]]


@pytest.mark.parametrize("length", [250, 800])
def test_thresholds_part_real_code_from_real_prose(library_code, length):
    # A function's own remainder: behind it another begins, whose docstring and comments are rightly called prose.
    code = [(text, cut) for text, cut in library_code if len(cut.remainder(text)) >= length / 2]
    texts = Corpus.standard_library().of_kind("prose")[::3]
    passages = [text.content[cut.cut :][:length] for text in texts for cut in paragraph_cuts(text.content)]
    stub = code[0][1].stub(code[0][0])
    kinds = {
        "code as code": [
            label("continuation", cut.stub(text), cut.remainder(text)[:length]).kind for text, cut in code
        ],
        "code as prose": [label("prose", "", cut.remainder(text)[:length]).kind for text, cut in code],
        "prose as prose": [label("prose", "", passage).kind for passage in passages],
        "prose as code": [label("continuation", stub, passage).kind for passage in passages],
    }
    taken = {case: found.count(case.split()[-1]) / len(found) for case, found in kinds.items()}
    assert len(code) > 40
    assert taken["code as code"] > 0.98
    assert taken["code as prose"] < 0.02
    assert taken["prose as prose"] > 0.9
    assert taken["prose as code"] < 0.01


@given(st.sampled_from(REGIMES), st.text(max_size=200), st.text(max_size=200), st.text(max_size=50))
def test_any_text_gets_a_label(regime, stub, emitted, original):
    found = label(regime, stub, emitted, original, tokens=[ord(c) for c in emitted])
    assert 0 <= found.share <= 1
    assert "\n" not in found.why


@pytest.mark.parametrize("emitted", ["\0" * 500, "\ud800x" * 40, "(" * 20_000, "-" * 30_000 + "1", "a b " * 30_000])
def test_hostile_text_gets_a_label(emitted):
    assert label("continuation", CODE_STUB, emitted).kind in {"other", "loop", "prose", "code"}
