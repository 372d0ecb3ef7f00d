"""Published figures keep the digits they were printed with, and say where they stand."""

import pytest

from analysis.evidence.references import load_reference
from analysis.records import Problem


def test_the_dspark_papers_figures():
    paper = load_reference("dspark-paper")
    lengths = {kind: [] for kind in ("math", "code", "chat")}
    for value in paper.of("mean accepted length"):
        lengths[value.kind].append(value.value)
    assert lengths == {
        "math": ["6.11", "5.70", "4.89"],
        "code": ["5.13", "5.38", "4.86"],
        "chat": ["3.64", "3.54", "3.29"],
    }
    (first,) = paper.of("conditional acceptance at position 1")
    assert (first.kind, first.value, first.place) == ("math", "0.93", "figure 2")
    assert all(float(value.value) <= 1 + paper.drafted for value in paper.values)
    assert paper.target == "Qwen3-4B"


def test_a_misspelt_publication():
    with pytest.raises(Problem, match=r"unknown reference 'dspark-papr' \(did you mean dspark-paper"):
        load_reference("dspark-papr")


def test_a_figure_is_a_printed_number(tmp_path):
    text = 'name = "x"\ntitle = "T"\nauthors = "A"\nyear = 2026\nidentifier = "I"\ntarget = "t"\ndrafter = "d"\n'
    text += 'drafted = 7\ntemperature = 1.0\n[[values]]\nquantity = "mean accepted length"\nkind = "math"\n'
    (tmp_path / "x.toml").write_text(text + 'text = "GSM8K"\nvalue = "about six"\nplace = "table 1"\n')
    with pytest.raises(Problem, match=r"values.0.value: String should match pattern"):
        load_reference(tmp_path / "x.toml")
