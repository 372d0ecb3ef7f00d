"""Formulas: what they can say, what they refuse."""

import contextlib
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.evidence.formula import FUNCTIONS, evaluate, read
from analysis.evidence.interval import Interval
from analysis.evidence.predicates import Truth
from analysis.evidence.printed import parse
from analysis.records import Problem

VALUES = {
    "raw": parse("13.32 – 13.41"),
    "step": parse("391 ms"),
    "acc": parse("0.54"),
    "n": parse("5", whole=True),
    "five": parse("5.0"),
}


def value(text: str) -> Interval:
    result = evaluate(read(text), VALUES)
    assert isinstance(result, Interval)
    return result


def test_break_even_is_exact_because_each_value_enters_once():
    # (13.315 x 390.5 / 1000 - 1) / 5 and (13.415 x 391.5 / 1000 - 1) / 5
    found = value("break_even(raw, step, n)")
    assert found.low == (Fraction("13.315") * Fraction("390.5") / 1000 - 1) / 5
    assert found.high == (Fraction("13.415") * Fraction("391.5") / 1000 - 1) / 5


def test_ends_of_a_range_are_taken_apart():
    assert value("low(raw)").centre == Fraction("13.32")
    assert value("high(raw) - low(raw)").centre == Fraction("0.09")


def test_literals_are_exact_decimals():
    assert value("0.1 + 0.2").low == Fraction("0.3")


def test_names_that_enter_twice_are_known():
    assert read("acc / (1 - acc)").repeated == ("acc",)
    assert read("high(raw) / low(raw)").repeated == ()


def test_a_predicate_gives_a_truth():
    result = evaluate(read("every(above(raw, 13), below(acc, 1))"), VALUES)
    assert isinstance(result, Truth)
    assert result.holds


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os')",
        "raw.first",
        "raw[0]",
        "(lambda: 1)()",
        "'text'",
        "True",
        "raw ** 99",
        "raw if raw else 1",
        "[raw]",
        "gain(new=raw, old=step)",
        "gain(*raw)",
        "eval(raw)",
        "raw; step",
        "raw = 1",
        "",
        "(" * 500,
        "-" * 5000 + "1",
        "raw\0",
    ],
)
def test_nothing_else_can_be_said(text):
    with pytest.raises(Problem, match="formula"):
        read(text)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("missing + 1", "names 'missing'"),
        ("gain(raw)", "cannot be evaluated"),
        ("raw / (acc - acc)", "holds zero"),
        ("above(raw, 1) + 1", "statement stands where a number"),
        ("every(raw)", "number stands where a statement"),
        ("low(above(raw, 1))", "statement stands where a number"),
        ("maximum()", "cannot be evaluated"),
    ],
)
def test_wrong_use_is_a_problem(text, reason):
    with pytest.raises(Problem, match=reason):
        evaluate(read(text), VALUES)


@given(st.text(alphabet="abcrawstepn0123456789.+-*/(), _'[]:=\n", max_size=60))
def test_any_text_is_a_formula_or_a_problem(text):
    with contextlib.suppress(Problem):
        evaluate(read(text), VALUES)


def test_functions_are_the_documented_ones():
    assert {"gain", "break_even", "step", "increasing", "same", "within", "every"} <= FUNCTIONS
