"""What printed numbers mean."""

from fractions import Fraction

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from analysis.evidence.printed import parse
from analysis.records import Problem


@pytest.mark.parametrize(
    ("text", "low", "high"),
    [
        ("9.05", "9.045", "9.055"),
        ("16.10 t/s", "16.095", "16.105"),
        ("+43%", "42.5", "43.5"),
        ("-2%", "-2.5", "-1.5"),
        ("−0.059%", "-0.0595", "-0.0585"),
        ("12×", "11.5", "12.5"),
        ("11,929", "11928.5", "11929.5"),
        ("176k", "175500", "176500"),
        ("0.537 – 0.543", "0.5365", "0.5435"),
        ("0.67-0.76", "0.665", "0.765"),
        ("+41-47%", "40.5", "47.5"),
        ("0.46 – 0.52×", "0.455", "0.525"),
        ("~8%", "7", "9"),
        ("~423 ms", "422", "424"),
        ("~380–425 ms", "370", "426"),
        ("~107k", "106000", "108000"),
        ("around 2×", "1.5", "2.5"),
        ("around 3–4×", "2.25", "5"),
        ("≈1.8k", "1700", "1900"),
        ("~20%", "15", "25"),
        ("about a quarter", "0.1875", "0.3125"),
    ],
)
def test_conventions(text, low, high):
    interval = parse(text).interval
    assert (interval.low, interval.high) == (Fraction(low), Fraction(high))


def test_a_range_keeps_the_rounding_of_each_end():
    printed = parse("13.32–13.41")
    assert printed.is_range
    assert (printed.first.low, printed.first.high) == (Fraction("13.315"), Fraction("13.325"))
    assert printed.last.centre == Fraction("13.41")
    assert printed.interval.centre == Fraction("13.365")


def test_what_is_counted_is_exact():
    assert parse("129280", whole=True).interval.width == 0
    assert parse("176k", whole=True).interval.width == 1000
    assert parse("2.81", whole=True).interval.width == Fraction("0.01")


@pytest.mark.parametrize("text", ["", "fast", "t/s", "1 2", "9.05.1", "1e3", "nan", "3–"])
def test_what_is_no_number_is_refused(text):
    with pytest.raises(Problem, match="not a printed number"):
        parse(text)


def test_a_range_upside_down_is_refused():
    with pytest.raises(Problem, match="upside down"):
        parse("0.543 – 0.537")


@given(st.text(max_size=40) | st.from_regex(r"[~+\-−]?[0-9,.]{1,8}[k%×]?\s?[–-]?\s?[0-9.]{0,8}", fullmatch=True))
@example("9" * 4000)
def test_any_text_is_a_number_or_a_problem(text):
    try:
        printed = parse(text)
    except Problem:
        return
    assert printed.first.low <= printed.first.high
    assert printed.first.centre <= printed.last.centre


@given(st.decimals(min_value=-9999, max_value=9999, places=3))
def test_a_printed_decimal_means_every_value_that_rounds_to_it(value):
    interval = parse(f"{value:.3f}").interval
    assert interval.centre == Fraction(value)
    assert interval.width == Fraction(1, 1000)
