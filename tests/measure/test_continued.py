"""Whether a server that somebody else runs is the one that a run was begun with, and how it is said that it is not."""

import pytest

from analysis.launch import FoundEngine, ServerConfig
from analysis.measure.continued import Before, before, check_continued
from analysis.measure.plan import RAW, LegPlan
from analysis.records import Past, Problem
from analysis.records.store import RunDir
from factories import make_life, make_run, make_sample
from fake_llama import ENGINE, PAIR, FakeLlama, serving

PAST = Past(began="68139448431", prompt_tokens=386, predicted_tokens=186, decodes=79)


def past(began="68139448431", predicted_tokens=186):
    return Past(began=began, prompt_tokens=386, predicted_tokens=predicted_tokens, decodes=79)


@pytest.mark.parametrize(
    ("known", "now", "expected"),
    [
        (Before(False, None), None, "first"),
        (Before(True, None), PAST, "not told"),
        (Before(True, make_life(past=None)), PAST, "not told"),
        (Before(True, make_life(past=PAST)), None, "not told"),
        (Before(True, make_life(past=PAST)), past(predicted_tokens=185), "restarted"),
        (Before(True, make_life(past=PAST)), past(began="7"), "restarted"),
        (Before(True, make_life(past=PAST)), past(predicted_tokens=9999), "same"),
        (Before(True, make_life(past=PAST)), past(began="", predicted_tokens=9999), "grown"),
        (Before(True, make_life(past=PAST)), past(began="", predicted_tokens=3), "restarted"),
    ],
)
def test_what_a_server_counts_tells_whether_it_is_the_one_before(known, now, expected):
    assert known.continued(now) == expected


@pytest.fixture
def run(tmp_path):
    """A run whose raw leg ended with a server that had counted what `PAST` says, and whose drafted leg was killed."""
    directory = RunDir.create(tmp_path / "run", make_run())
    with directory.writing() as writer:
        writer.append(make_sample(server="drafted-1"))
        writer.append_life(make_life(id="raw-0", past=PAST))
    return directory


def test_each_leg_has_a_past_of_its_own(run):
    assert before(run, "raw").life.past == PAST
    assert before(run, "drafted") == Before(True, None)
    assert before(run, "control") == Before(False, None)


def test_a_server_without_its_counters_is_refused_until_who_measures_says_that_it_is_alike(run):
    with serving(FakeLlama([])) as url:
        config = ServerConfig(model=None, spec_type="none", n_max=0)
        found = FoundEngine(engine=ENGINE, server=None, url=url)
        leg = LegPlan(leg=RAW, pair=PAIR, config=config, found=found)
        with pytest.raises(Problem, match=r"raw server does not tell how much it has counted \(--metrics\); nobody"):
            check_continued(run, [leg])
        check_continued(run, [LegPlan(leg=RAW, pair=PAIR, config=config, found=found, said_alike=True)])
