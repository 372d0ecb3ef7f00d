"""Charts: what each shows, what it says in words, and that it can be read without a script."""

import json
import re
from collections.abc import Callable
from functools import cache
from html import unescape
from urllib.parse import unquote

import altair as alt
import pandas as pd
import pytest

import made_up_frames as made_up
from analysis.publish import charts
from analysis.publish.charts import Chart
from analysis.records import Problem

MACHINE = "a made-up machine"

BUILDERS: dict[str, Callable[[], Chart]] = {
    "acceptance": lambda: charts.acceptance_by_position(made_up.acceptance(), name="acceptance"),
    "length": lambda: charts.depth_by_regime(
        made_up.lengths(), name="length", quantity="mean accepted length (tokens)"
    ),
    "step": lambda: charts.step_cost(made_up.steps(), name="step", machine=MACHINE),
    "ratio": lambda: charts.decode_vs_raw(made_up.ratios(), name="ratio", machine=MACHINE),
    "break-even": lambda: charts.break_even(
        made_up.rate_by_length(),
        made_up.rate_curve(),
        made_up.single(75.0),
        made_up.single(2.06),
        name="break-even",
        machine=MACHINE,
    ),
}


@pytest.fixture(params=BUILDERS)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@cache
def built(name: str) -> Chart:
    return BUILDERS[name]()


@cache
def svg_of(name: str) -> str:
    return built(name).svg()


@cache
def html_of(name: str) -> str:
    return built(name).html()


def marks(svg: str, kind: str) -> int:
    """The number of drawn marks of a kind ("symbol", "rule") outside legends and axes."""
    groups = re.findall(rf'<g class="mark-{kind} role-mark[^"]*"[^>]*(?<!/)>(.*?)</g>', svg, flags=re.DOTALL)
    return sum(len(re.findall(r"<(?:path|line) ", group)) for group in groups)


def test_a_still_keeps_every_digit_that_is_read():
    frame = pd.DataFrame({"x": [0.00012345, 0.0005], "label": ["0.00012345", "a"]})
    drawing = alt.Chart(frame).mark_text().encode(x="x:Q", text="label:N")
    svg = Chart(drawing, title="t", alt="a", name="digits").svg()
    assert ">0.00012345</text>" in svg
    assert re.findall(r"<[^>]*\d\.\d{3}[^>]*>", svg) == []


def test_a_chart_is_a_figure_with_title_still_and_specification(name: str) -> None:
    chart, html = built(name), html_of(name)
    still = re.search(r'<img alt="([^"]*)" width="640" src="data:image/svg\+xml,([^"]*)">', html)
    assert still is not None
    assert unescape(still[1]) == chart.alt
    assert unquote(still[2]) == svg_of(name)
    assert f'<figcaption id="chart-{chart.name}-title">{chart.title}</figcaption>' in html
    spec = re.search(r'<script type="application/vnd.vegalite\+json">(.*)</script>', html)
    assert spec is not None
    assert json.loads(spec[1]) == json.loads(json.dumps(chart.spec()))


def test_the_same_data_give_the_same_bytes(name: str) -> None:
    assert BUILDERS[name]().html() == html_of(name)


def test_nothing_is_fetched(name: str) -> None:
    addresses = set(re.findall(r"https?:[^\"'\s]+", unquote(html_of(name))))
    assert addresses <= {
        "https://vega.github.io/schema/vega-lite/v6.4.1.json",
        "http://www.w3.org/2000/svg",
        "http://www.w3.org/1999/xlink",
    }


def test_a_chart_of_speeds_names_the_machine() -> None:
    for name in ("step", "ratio", "break-even"):
        assert MACHINE in built(name).note


def test_acceptance_shows_the_first_meaning_at_the_first_depth() -> None:
    chart = built("acceptance")
    assert chart.alt.startswith("Survival by draft position at depth 256: invention 0.62 at 1 to 0.0916 at 5;")
    assert marks(svg_of("acceptance"), "symbol") == 4 * 5
    assert marks(svg_of("acceptance"), "rule") == 4 * 5
    assert [(p["name"], p["bind"]["options"]) for p in chart.spec()["params"]] == [
        ("meaning_shown", ["survival", "proposal rate", "conditional"]),
        ("depth_shown", [256, 2048]),
    ]


def test_one_meaning_at_one_depth_leaves_nothing_to_pick() -> None:
    frame = made_up.acceptance((256,)).query("meaning == 'survival'")
    assert "params" not in charts.acceptance_by_position(frame, name="a").spec()


def test_without_an_interval_the_raw_points_stand_alone() -> None:
    frame = made_up.lengths().assign(low=made_up.NAN, high=made_up.NAN, method="")
    points = pd.concat(
        [frame[["regime", "depth"]].assign(prompt=p, value=frame["estimate"] + i) for i, p in enumerate("abc")]
    )
    chart = charts.depth_by_regime(frame, name="a", quantity="length", points=points)
    assert chart.note == (
        "Where there is no bar, an interval needs more prompts, most of all near a ceiling. "
        "Small hollow points are single prompts."
    )
    svg = chart.svg()
    assert marks(svg, "rule") == 0
    assert marks(svg, "symbol") == len(frame) + len(points)


def test_very_many_points_are_drawn_only_where_there_is_no_interval() -> None:
    frame = made_up.lengths().assign(method="t")
    frame.loc[0, ["low", "high"]] = made_up.NAN
    prompts = [frame[["regime", "depth"]].assign(prompt=f"p{i}", value=frame["estimate"]) for i in range(80)]
    svg = charts.depth_by_regime(frame, name="a", quantity="length", points=pd.concat(prompts)).svg()
    assert marks(svg, "symbol") == len(frame) + 80


def test_a_refused_cell_is_named_and_not_drawn() -> None:
    chart = built("ratio")
    assert marks(svg_of("ratio"), "symbol") == 3
    assert chart.note.endswith("Not shown: prose, depth 2048 (refused: 3 of 5 samples are loops).")


def test_a_table_of_refusals_is_no_chart() -> None:
    refused = made_up.lengths().assign(refused="depth not reached")
    with pytest.raises(Problem, match="nothing to draw of estimates by depth and regime: depth not reached"):
        charts.depth_by_regime(refused, name="a", quantity="length")


def test_break_even_draws_the_crossing_where_the_curve_meets_raw() -> None:
    chart = built("break-even")
    assert "break-even 2.06" in svg_of("break-even")
    assert "at a mean accepted length of 2.06 [1.96, 2.16] (n = 5)" in chart.alt


def test_break_even_says_why_there_is_no_crossing() -> None:
    chart = charts.break_even(
        made_up.rate_by_length(),
        made_up.rate_curve(),
        made_up.single(500.0),
        made_up.single(2.0, refused="raw is faster at every length"),
        name="a",
        machine=MACHINE,
    )
    assert "break-even " not in chart.svg()
    assert "refused: raw is faster at every length" in chart.note


def test_break_even_takes_one_depth() -> None:
    two = pd.concat([made_up.rate_by_length(), made_up.rate_by_length().assign(depth=2048)])
    with pytest.raises(Problem, match="one depth"):
        charts.break_even(
            two, made_up.rate_curve(), made_up.single(75.0), made_up.single(2.0), name="a", machine=MACHINE
        )


def test_text_from_data_cannot_leave_its_element() -> None:
    hostile = '</script><img src=x onerror="alert(1)">'
    html = charts.step_cost(made_up.steps().replace("depth 256", hostile), name="a", machine=hostile).html()
    assert html.count("</script>") == 1
    assert "<img src=x" not in html
    assert html.count("<img ") == 1


@pytest.mark.parametrize("name", ["A chart", "", 'x"y'])
def test_a_name_that_is_no_anchor_is_refused(name: str) -> None:
    with pytest.raises(Problem, match="chart name"):
        charts.step_cost(made_up.steps(), name=name, machine=MACHINE)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"low": 5.0}, "row 0: an interval has two ends in order, or none"),
        ({"high": made_up.NAN}, "row 0: an interval has two ends"),
        ({"estimate": made_up.NAN}, "row 0: an estimate is missing only where the row is refused"),
        ({"depth": -1}, "column depth, row 0: must not be negative"),
        ({"n": "many"}, "column n, row 0"),
    ],
)
def test_a_bad_row_is_named(change: dict[str, int | float | str], message: str) -> None:
    with pytest.raises(Problem, match=re.escape(message)):
        charts.depth_by_regime(made_up.lengths().head(1).assign(**change), name="a", quantity="length")


def test_a_missing_column_is_named() -> None:
    with pytest.raises(Problem, match="step cost has no column accepted"):
        charts.step_cost(made_up.steps().drop(columns="accepted"), name="a", machine=MACHINE)


def test_two_rows_with_one_key_are_refused() -> None:
    with pytest.raises(Problem, match="two rows have the same key"):
        charts.step_cost(pd.concat([made_up.steps(), made_up.steps()]), name="a", machine=MACHINE)
