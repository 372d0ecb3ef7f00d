"""Findings that say the same are put together for a reader."""

from analysis.gates import Evidence, Finding, Where
from analysis.gates.grouped import grouped, kind_of, places, stretches
from factories import make_cell, make_run, make_sample


def found(gate, kind, place, saw, level="refuse"):
    return Finding(gate=gate, level=level, where=Where(kind, str(place)), saw=saw, expected="order", why="")


def test_a_kind_of_reason_has_neither_numbers_nor_particulars():
    assert kind_of("loop in a cell of recall: the last 91 % of it") == "loop in a cell of recall"
    assert kind_of("a load of 1.27 on 2 cores") == kind_of("a load of 12.16 on 64 cores")


def test_numbers_that_follow_each_other_are_one_stretch():
    assert stretches([4, 5, 6, 9, 11, 12]) == ["4-6", "9", "11-12"]
    assert stretches([]) == []


def test_the_worst_stands_first_and_then_what_touches_most_samples():
    cell = make_cell()
    evidence = Evidence(
        run=make_run(cells=(cell,)), samples=[make_sample(index=index, cell=cell.id) for index in range(9)]
    )
    groups = grouped(
        evidence,
        [
            found("quiet", "run", "r", "a load of 3", "warn"),
            found("text", "sample", 1, "loop: 90 %"),
            found("text", "sample", 2, "loop: 80 %"),
            found("text", "sample", 4, "loop: 90 %"),
            found("limit", "cell", cell.id, "a draft of 9 tokens"),
        ],
    )
    assert [(group.gate, group.touched) for group in groups] == [("limit", 9), ("text", 3), ("quiet", 9)]
    assert groups[1].saw == "loop: 90 % (2 of 3)"
    assert places(evidence, groups[1]) == "3 samples: 1-2, 4"
    assert places(evidence, groups[0]) == "cell continuation at 256 ngram-simple"


def test_a_long_list_of_places_is_cut_and_says_so():
    evidence = Evidence(run=make_run(), samples=[])
    (group,) = grouped(evidence, [found("text", "sample", 2 * number, "loop") for number in range(10)])
    assert places(evidence, group) == "10 samples: 0, 2, 4, 6, 8, 10 and 4 more"
