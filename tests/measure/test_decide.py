"""`specbook decide` without a server: how time is shared, what is tried, how answers come about, what is refused."""

from dataclasses import replace
from math import nan
from types import SimpleNamespace

import pytest

from analysis.cli.decide import _check_addresses as check_addresses
from analysis.cli.decide import _plain as plain
from analysis.cli.decide import _print as printed
from analysis.cli.decide import advice, seconds_of
from analysis.convert.pairs import load_pair
from analysis.gates import Finding, Where
from analysis.launch import ServerConfig
from analysis.launch.config import user_argv
from analysis.measure.access import ServerAccess
from analysis.measure.between import decide_between, length_of, method_of
from analysis.measure.candidates import Shares, lengths_to_try, with_setting
from analysis.measure.decide import Outcome, answers_of, decide, pair_of_files
from analysis.measure.plan import DRAFTED, LegPlan, load_grid
from analysis.records import Problem
from analysis.records.model import REGIMES
from analysis.records.places import repo_dir
from analysis.stats.intervals import no_interval
from factories import make_cell


def raw_cell(**changes):
    return make_cell(spec_type="none", n_max=0, **changes)


def task(depth, number, order=0):
    return SimpleNamespace(cell=make_cell(depth=depth), prompt_number=number, order=order)


def test_each_depth_gets_its_part_of_the_time_and_a_block_is_finished():
    now = [0.0]
    shares = Shares([256, 512], 100.0, clock=lambda: now[0])
    assert shares(task(256, 0))
    now[0] = 49.0
    assert shares(task(256, 5))
    now[0] = 51.0
    assert shares(task(256, 5, order=1)), "the other leg of a prompt that began"
    assert not shares(task(256, 6))
    assert not shares(task(256, 6, order=1))
    assert shares(task(512, 1)), "what is left belongs to the next depth"
    now[0] = 101.0
    assert not shares(task(512, 2))


def test_every_cell_gets_its_first_prompt_whatever_the_time():
    shares = Shares([256, 512], 0.0, clock=lambda: 9.0)
    assert shares(task(256, 0))
    assert not shares(task(256, 1))
    assert shares(task(512, 0))


@pytest.mark.parametrize(
    ("pair", "expected"),
    [("smollm2-dspark", [5, 2, 4, 1]), ("smollm2-ngram", [8, 4, 7, 9, 16]), ("smollm2-raw", [0])],
)
def test_lengths_begin_with_the_pairs_own_and_keep_within_the_method(pair, expected):
    assert lengths_to_try(load_pair(pair)) == expected


def test_another_setting_is_another_pair():
    pair = load_pair("smollm2-dspark")
    leg = LegPlan(leg=DRAFTED, pair=pair, config=ServerConfig(model=None, spec_type=pair.spec_type, n_max=5))
    changed = with_setting(leg, 2, 0.6)
    assert changed.pair.name == "smollm2-dspark-n2-p0.6"
    assert (changed.config.n_max, changed.config.p_min) == (2, 0.6)
    assert with_setting(leg, 5, 0.0) is leg


@pytest.mark.parametrize(("speed", "verdict"), [(3.0, "pays"), (0.5, "loses")])
def test_an_answer_rests_on_the_ratio_of_its_prompts(study, speed, verdict):
    # eight tokens in three steps of 20 ms over seven steps of 10 ms: 7 / 60 against 7 / 70 at speed 1
    (answer,) = answers_of(study("run", cells=[raw_cell(), make_cell()], speed=speed), extended=False, prompts=6)
    assert answer.verdict == verdict
    assert answer.ratio.estimate == pytest.approx(speed * 70 / 60, rel=0.06)
    assert answer.ratio.n == 6
    assert answer.because == "acceptance"
    assert "a step yields" in answer.why


def test_a_step_that_costs_more_than_it_can_ever_yield_is_the_reason(study):
    (answer,) = answers_of(study("run", cells=[raw_cell(), make_cell()], speed=0.1), extended=False, prompts=6)
    assert (answer.verdict, answer.because) == ("loses", "step cost")
    assert "can yield 5 at most, with drafts of 4" in answer.why


def test_two_prompts_decide_nothing(study):
    found = study("run", cells=[raw_cell(), make_cell()], speed=3.0, prompts=2)
    assert [answer.verdict for answer in answers_of(found, extended=False, prompts=6)] == ["undecided"]


def test_after_a_second_look_the_interval_is_the_one_that_lasts(study):
    found = study("run", cells=[raw_cell(), make_cell()], speed=3.0)
    first, again = (answers_of(found, extended=extended, prompts=6)[0] for extended in (False, True))
    assert again.ratio == first.lasting
    assert first.lasting.low < first.ratio.low < first.ratio.high < first.lasting.high


def test_a_pair_that_drafts_nothing_has_no_question():
    with pytest.raises(Problem, match="drafts nothing"):
        decide("smollm2-raw")


def test_one_server_cannot_supply_both_legs():
    with pytest.raises(Problem, match="one server cannot supply both legs"):
        decide_between(ServerAccess("http://127.0.0.1:1/"), ServerAccess("http://127.0.0.1:1"))


@pytest.mark.parametrize(
    ("addresses", "changes", "said"),
    [
        (("http://a", ""), {}, "one server cannot supply both legs"),
        (("http://a", "http://b"), {"beside": True}, "and no file or pair"),
        (("http://a", "http://b"), {"p_min": 0.5}, "--p-min is no setting of a running server"),
    ],
)
def test_addresses_come_in_twos_and_with_nothing_else(addresses, changes, said):
    with pytest.raises(Problem, match=said):
        check_addresses(*addresses, **({"beside": False, "p_min": None} | changes))
    check_addresses("http://a", "http://b", beside=False, p_min=None)


def test_files_that_do_not_fit_are_refused_from_their_headers(local_target, dsv4_drafter, tmp_path):
    link = tmp_path / "Entwürfe für alle" / "drafter.gguf"
    link.parent.mkdir()
    link.symlink_to(dsv4_drafter)
    with pytest.raises(Problem, match="vocabulary|target"):
        pair_of_files(local_target, link)


def test_the_command_to_type_has_no_key_and_no_address(tmp_path):
    config = ServerConfig(
        model=tmp_path / "t.gguf", drafter=tmp_path / "d.gguf", spec_type="draft-dspark", n_max=2, p_min=0.6
    )
    words = user_argv(config)
    assert words[:3] == ["llama-server", "--model", str(tmp_path / "t.gguf")]
    assert words[words.index("--spec-draft-n-max") + 1] == "2"
    assert words[words.index("--spec-draft-p-min") + 1] == "0.6"
    assert not {"--api-key-file", "--host", "--port", "--metrics"} & set(words)


@pytest.mark.parametrize(("text", "seconds"), [("90s", 90), ("5min", 300), ("1.5 h", 5400), ("2", 120)])
def test_a_time_has_a_unit(text, seconds):
    assert seconds_of(text) == seconds


@pytest.mark.parametrize("text", ["", "soon", "-5min", "0s"])
def test_what_is_no_time_is_said(text):
    with pytest.raises(Problem, match="is no time"):
        seconds_of(text)


@pytest.mark.parametrize(
    ("kinds", "given", "expected"),
    [
        ("none,draft-dspark", None, ("draft-dspark", "told")),
        ("none,draft-dspark", "draft-dspark", ("draft-dspark", "told")),
        ("draft-simple,ngram-mod", "ngram-mod", ("ngram-mod", "told")),
        ("", "draft-dspark", ("draft-dspark", "given")),
        ("", None, ("draft-simple", "assumed")),
        ("none", None, ("draft-simple", "assumed")),
    ],
)
def test_what_the_server_says_of_its_drafting_comes_first(kinds, given, expected):
    assert method_of(kinds, given) == expected


@pytest.mark.parametrize(
    ("kinds", "given", "said"),
    [
        ("none,draft-dspark", "draft-simple", "drafts by draft-dspark; expected draft-simple"),
        ("draft-simple,ngram-mod", None, "draft-simple and ngram-mod; expected one method"),
        ("draft-of-tomorrow", None, "draft-of-tomorrow; expected one method"),
    ],
)
def test_a_method_that_is_contradicted_or_not_one_is_refused(kinds, given, said):
    with pytest.raises(Problem, match=said):
        method_of(kinds, given)


def test_a_longest_draft_is_not_less_than_what_was_seen():
    assert (length_of(5, 0), length_of(5, 8)) == (5, 8)
    with pytest.raises(Problem, match="longest draft seen is 5 tokens; expected at most 3"):
        length_of(5, 3)


@pytest.mark.parametrize(
    ("method", "n_max", "said"),
    [
        ("told", 4, "Drafted by ngram-simple, as the server says. Longest draft seen: 4. "),
        ("given", 8, "as you say; the server does not tell. Longest draft seen: 4, of 8 as given. "),
        ("assumed", 4, "assumed: the server does not tell, --spec-type would say it. Longest draft seen: 4. "),
    ],
)
def test_what_is_known_of_a_running_server_is_one_line(study, capsys, method, n_max, said):
    found = study("run", cells=[raw_cell(), make_cell()])
    pair = replace(load_pair("smollm2-ngram"), n_max=n_max)
    outcome = Outcome(found, pair, answers_of(found, extended=False, prompts=6), (), (), False, "served", method)
    printed(outcome, two_hosts=False)
    assert said in " ".join(capsys.readouterr().out.split())


def answers_like(verdicts):
    places = [(regime, depth) for depth in (256, 2048) for regime in REGIMES]
    return [SimpleNamespace(regime=r, depth=d, verdict=v) for (r, d), v in zip(places, verdicts, strict=False)]


@pytest.mark.parametrize(
    ("verdicts", "said"),
    [
        (["loses", *["undecided"] * 7], "Do not pass it for invention at 256; 7 of 8 cells are open."),
        (["pays", "pays", "undecided"], "Pass it for invention at 256 and continuation at 256; 1 of 3 cells is open."),
        (["pays"] * 8, "Pass it."),
        (["loses"] * 8, "Do not pass it."),
        (["loses"] * 5 + ["undecided"] * 3, "Do not pass it in 5 of 8 cells, see the table; 3 of 8 cells are open."),
        (
            ["pays", "loses", "undecided"],
            "Pass it for invention at 256; do not pass it for continuation at 256; 1 of 3 cells is open.",
        ),
        (["undecided"] * 8, "Nothing is decided yet."),
    ],
)
def test_advice_says_where_it_holds_and_what_is_open(verdicts, said):
    assert advice(answers_like(verdicts)) == said


def test_the_interval_that_lasts_needs_seven_prompts_as_the_tour_says(study):
    planned = load_grid("decide").prompts
    found = {
        count: answers_of(
            study(f"run-{count}", cells=[raw_cell(), make_cell()], prompts=count), extended=True, prompts=planned
        )[0]
        for count in (3, 6, 7)
    }
    assert [found[count].ratio.limits is not None for count in (3, 6, 7)] == [False, False, True]
    assert "these need seven prompts of a kind" in (repo_dir() / "book" / "tour.md").read_text()


@pytest.mark.parametrize(
    ("chosen", "extended", "said"),
    [
        ("given", False, "n_max 4, p_min 0 regime"),
        ("begun", True, "n_max and p_min are those of the run that is there; --again chooses, and begins another."),
        ("begun", True, "More prompts, narrower intervals: the same command again."),
        ("tried", False, "the first few prompts of a cell have none. To begin anew with more time: --again"),
    ],
)
def test_the_setting_and_what_a_second_call_does_are_said(study, capsys, chosen, extended, said):
    found = study("run", cells=[raw_cell(), make_cell()])
    answers = answers_of(found, extended=extended, prompts=6)
    pair = replace(load_pair("smollm2-ngram"), n_max=4)
    printed(Outcome(found, pair, answers, (), (), extended, chosen), two_hosts=False)
    assert said in " ".join(capsys.readouterr().out.split())


def test_a_refused_cell_names_the_gates_that_took_its_samples(study):
    found = study("run", cells=[raw_cell(), make_cell()], prompts=2)
    drafted = [sample for sample in found.samples if sample.leg == "drafted"]
    refused = tuple(
        Finding(
            gate="loops", level="refuse", where=Where("sample", str(s.index)), saw="a loop", expected="none", why=""
        )
        for s in drafted
    )
    (answer,) = answers_of(replace(found, findings=(*found.findings, *refused)), extended=False, prompts=6)
    assert answer.because == "refused"
    assert answer.why.endswith(f"(loops {len(drafted)})")


def test_a_cell_without_an_interval_says_why(study, capsys):
    found = study("run", cells=[raw_cell(), make_cell()], prompts=3)
    answers = answers_of(found, extended=True, prompts=24)
    printed(Outcome(found, load_pair("smollm2-ngram"), answers, (), (), True, "begun"), two_hosts=False)
    assert "; 3 prompts do not bound it yet" in " ".join(capsys.readouterr().out.split())


def test_what_gates_warn_of_stands_with_the_answer(study, capsys):
    found = study("run", cells=[raw_cell(), make_cell()])
    warned = Finding(
        gate="host-quiet",
        level="warn",
        where=Where("run", found.run.id),
        saw="a load of 3.22 on 2 cores",
        expected="less",
        why="",
    )
    loud = replace(found, findings=(*found.findings, warned))
    answers = answers_of(loud, extended=False, prompts=6)
    printed(Outcome(loud, load_pair("smollm2-ngram"), answers, (), (), False, "tried"), two_hosts=False)
    assert "Read it with care: host-quiet: a load of 3.22 on 2 cores; expected less" in " ".join(
        capsys.readouterr().out.split()
    )


def test_the_table_says_refused_and_knows_no_reason_from_one_prompt(study, capsys):
    found = study("run", cells=[raw_cell(), make_cell()], prompts=1)
    (one,) = answers_of(found, extended=False, prompts=6)
    none = replace(one, regime="recall", verdict="undecided", ratio=no_interval(nan, n=0, note="x"), because="refused")
    shown = Outcome(found, load_pair("smollm2-ngram"), (one, none), (), (), False, "given")
    printed(shown, two_hosts=False)
    said = capsys.readouterr().out
    rows = [line.split() for line in said.splitlines()]
    assert ["continuation", "256", "undecided"] in [row[:3] for row in rows]
    assert ["recall", "256", "refused"] in [row[:3] for row in rows]
    assert "open: one prompt" in said
    assert "because of*: with *step cost*" in said
    assert plain(shown)["answers"][1]["verdict"] == "undecided"
