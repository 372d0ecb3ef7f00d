"""The chart of a measured break-even: what is drawn and said where it can be reached, and where not."""

import pandas as pd
import pytest

from analysis.publish.crossing_chart import measured_crossing
from analysis.records import Problem

METHOD = {"n": 8, "method": "jackknife t"}
RAW = pd.DataFrame([{"estimate": 100.0, "low": 98.0, "high": 102.0} | METHOD])
RATES = pd.DataFrame(
    [
        {"acceptance": chance, "accepted": accepted, "accepted_low": accepted - 0.1, "accepted_high": accepted + 0.1}
        | {"estimate": rate, "low": rate - 3, "high": rate + 3}
        | METHOD
        for chance, accepted, rate in ((0.1, 0.11, 60.0), (0.7, 1.94, 120.0), (0.95, 4.3, 180.0))
    ]
)


def drawn(estimate: float, low: float, high: float, refused: str = ""):
    meets = pd.DataFrame([{"estimate": estimate, "low": low, "high": high, "refused": refused} | METHOD])
    return measured_crossing(RATES, RAW, meets, name="crossing", machine="a CPU", longest=5, title="Measured")


def uprights(chart) -> int:
    """How many rules stand at a place of their own on the horizontal axis."""
    return str(chart.spec()).count("'x': {'field': 'estimate'")


def test_a_crossing_within_a_draft_is_drawn_with_its_interval():
    chart = drawn(1.4, 1.2, 1.7)
    assert uprights(chart) == 1
    assert "1.40 [1.20, 1.70] (n = 8)" in chart.alt
    assert "100.0 [98.0, 102.0]" in chart.alt
    assert "from 60.0 tokens/s at 0.11 accepted tokens a step to 180.0 at 4.30" in chart.alt
    assert "Measured on a CPU." in chart.note


def test_a_crossing_that_no_draft_reaches_is_told_and_not_drawn():
    chart = drawn(6.2, 5.5, 7.0)
    assert uprights(chart) == 0
    assert "6.20 [5.50, 7.00]" in chart.note


def test_where_there_is_no_crossing_the_reason_is_told():
    nan = float("nan")
    chart = drawn(nan, nan, nan, "no crossing: a further token costs what it saves")
    assert uprights(chart) == 0
    assert "a further token costs what it saves" in chart.alt


def test_a_table_that_is_not_valid_is_refused():
    meets = pd.DataFrame([{"estimate": 1.4, "low": 1.2, "high": 1.7} | METHOD])
    wrong = RATES.assign(acceptance=RATES["acceptance"] + 1.0)
    with pytest.raises(Problem, match="must lie between 0 and 1"):
        measured_crossing(wrong, RAW, meets, name="crossing", machine="a CPU", longest=5, title="Measured")
