import pytest

from analysis.measure.life import StreamCounters, _since, check_counters
from analysis.records import Counters, Problem
from factories import make_life


class Completion:
    """What a stream adds up from: three steps, the last one trimmed by one token."""

    drafted = (4, 0, 3)
    accepted = (2, 0, 2)
    trimmed = 1
    draft_n = 7
    draft_n_accepted = 5
    blurred = 0
    withheld = 0


def test_the_stream_is_added_up_as_the_server_counts():
    counters = StreamCounters()
    counters.add(Completion())
    counters.add(Completion())
    assert counters.counters() == Counters(drafts=4, draft_tokens=14, accepted_tokens=10, accepted_per_pos=(4, 4, 2, 0))


def test_counts_that_an_unfinished_character_hid_are_not_held_against_the_servers():
    counters = StreamCounters()
    counters.add(Completion())
    assert counters.certain
    hidden = Completion()
    hidden.blurred = 2
    counters.add(hidden)
    assert not counters.certain
    undrafted = StreamCounters()
    hidden.draft_n = 0
    undrafted.add(hidden)
    assert undrafted.certain  # without drafts the counts are exact, only durations are shared


def test_equal_counters_pass_whatever_their_length():
    stream = Counters(drafts=2, draft_tokens=6, accepted_tokens=3, accepted_per_pos=(2, 1, 0))
    check_counters(stream, Counters(drafts=2, draft_tokens=6, accepted_tokens=3, accepted_per_pos=(2, 1)), "s")
    check_counters(stream, None, "s")


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ({"drafts": 3}, "drafts = 2, /metrics says 3"),
        ({"accepted_tokens": 4}, "accepted_tokens = 3, /metrics says 4"),
        ({"accepted_per_pos": (2, 2)}, r"accepted_per_pos = \(2, 1\), /metrics says \(2, 2\)"),
    ],
)
def test_counters_that_disagree_stop_the_run(fault, said):
    fields = {"drafts": 2, "draft_tokens": 6, "accepted_tokens": 3, "accepted_per_pos": (2, 1)}
    with pytest.raises(Problem, match=said):
        check_counters(Counters(**fields), Counters(**(fields | fault)), make_life().id)


def test_a_server_that_was_restarted_meanwhile_is_said():
    before = Counters(drafts=9, draft_tokens=40, accepted_tokens=20, accepted_per_pos=(9, 5))
    later = Counters(drafts=12, draft_tokens=50, accepted_tokens=23, accepted_per_pos=(11, 6))
    assert _since(before, later) == Counters(drafts=3, draft_tokens=10, accepted_tokens=3, accepted_per_pos=(2, 1))
    with pytest.raises(Problem, match=r"the counters of the server fell, .* it was restarted: run again to resume"):
        _since(later, before)
