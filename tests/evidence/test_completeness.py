"""Every number of the cards is accounted for, by position."""

import sys

import pytest

from analysis.evidence import tables
from analysis.evidence.completeness import Coverage, check_quotes, check_repeats, coverage
from analysis.records import Problem


@pytest.mark.parametrize(("card", "numbers"), [("A", 247), ("B", 289)])
def test_every_number_is_covered_or_has_a_reason(card_texts, card, numbers, capsys):
    found = coverage(card_texts, card)
    with capsys.disabled():
        counts = ", ".join(f"{count} {kind}" for kind, count in found.counts.most_common())
        sys.stdout.write(f"\ncard {card}: {counts}\n")
    found.raise_if_open()
    assert found.counts.total() == numbers


def test_every_quote_of_a_correction_is_in_its_card(card_texts):
    assert check_quotes(card_texts) >= 25


def test_repeated_values_are_the_values_that_they_repeat():
    check_repeats()


def test_reasons_are_a_short_closed_list():
    assert len({line.cells["reason"] for line in tables.read("uncovered")}) <= 13


@pytest.fixture
def toy(tmp_path, copied):
    """A card of one sentence, with tables that account for all of it."""
    (tmp_path / "card-a.txt").write_text("DSV4 runs at\n9.05 t/s, again 9.05 t/s.\n")
    for name in ("claims", "corrections"):
        header = (copied / f"{name}.csv").read_text(encoding="utf-8").splitlines()[0]
        (copied / f"{name}.csv").write_text(header + "\n")
    columns = (copied / "values.csv").read_text(encoding="utf-8").splitlines()[0].split(",")
    row = {"id": "a_rate", "card": "A", "section": "s", "quote": "runs at 9.05 t/s", "quantity": "decode"}
    row |= {"printed": "9.05 t/s", "value": "9.05", "unit": "t/s"}
    line = ",".join(row.get(name, "") for name in columns)
    (copied / "values.csv").write_text(",".join(columns) + "\n" + line + "\n")
    (copied / "uncovered.csv").write_text(
        "card,quote,printed,reason,repeats,times\n"
        "A,DSV4,4,model name,,1\n"
        "A,again 9.05 t/s,9.05 t/s,repeated value,a_rate,1\n"
    )
    return tmp_path, copied


def test_a_toy_card_is_covered(toy):
    texts, data = toy
    found = coverage(texts, "A", data)
    assert found.counts == {"measured value": 1, "model name": 1, "repeated value": 1}
    assert found == Coverage("A", found.counts, ())


def test_a_number_that_nothing_covers_stops(toy):
    texts, data = toy
    (texts / "card-a.txt").write_text("DSV4 runs at 9.05 t/s, again 9.05 t/s, then 9.06 t/s.")
    with pytest.raises(Problem, match=r"1 numbers of card A .* then 9\.06"):
        coverage(texts, "A", data).raise_if_open()


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("DSV4 runs at 9.06 t/s, again 9.05 t/s.", "values.csv:2: the quote 'runs at 9.05 t/s' is not in card A"),
        ("DSV4 DSV4 runs at 9.05 t/s, again 9.05 t/s.", "uncovered.csv:2: the quote 'DSV4' stands 2 times"),
    ],
)
def test_a_quote_that_is_not_in_the_card_stops(toy, text, reason):
    texts, data = toy
    (texts / "card-a.txt").write_text(text)
    with pytest.raises(Problem, match=reason):
        coverage(texts, "A", data)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("A,q,9.07,repeated value,a_rate,1", "'9.07' is not the value of a_rate"),
        ("A,q,9.05,repeated value,a_other,1", "repeats 'a_other', which no row has"),
        ("A,q,7,factor of a row,a_rate,1", "no factor of a_rate is '7'"),
        ("A,q,7,model name,a_rate,1", "a model name repeats no row"),
    ],
)
def test_a_repeat_that_is_none_stops(toy, line, reason):
    _, data = toy
    (data / "uncovered.csv").write_text("card,quote,printed,reason,repeats,times\n" + line + "\n")
    with pytest.raises(Problem, match=reason):
        check_repeats(data)


def test_a_missing_card_is_a_problem(tmp_path):
    with pytest.raises(Problem, match="the text of a card"):
        coverage(tmp_path, "A")
