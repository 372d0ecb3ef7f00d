"""Requests at once on a made-up server: who is asked beside whom, what counts, how a cut-off run goes on."""

import threading
from collections import Counter

import pytest

from analysis.gates import Evidence, check_all
from analysis.launch import FoundEngine, ServerConfig
from analysis.measure import grid as grids
from analysis.measure.estimate import throughput
from analysis.measure.grid import Setting, groups, measure_grid, tasks
from analysis.measure.plan import DRAFTED, LegPlan, check_together, load_grid, raw_leg
from analysis.measure.prompts import Prompt
from analysis.measure.together import ask_together, group_of
from analysis.records import Problem
from analysis.records.store import RunDir
from analysis.stats import decode_rate
from factories import make_cell, make_run
from fake_llama import ENGINE, MACHINE, N_MAX, PAIR, FakeLlama, serving

DEPTH, LOCAL = 64, 8
KNOWN = ((4, 3, 20.0), (4, 0, 19.0), (3, 1, 31.0))
PATIENCE = 20  # seconds; none of it passes unless a test fails


def leg(at_once):
    config = ServerConfig(model=None, spec_type="draft-dspark", n_max=N_MAX, parallel=at_once)
    return LegPlan(leg=DRAFTED, pair=PAIR, config=config, at_once=at_once)


def made_grid(prompts):
    return load_grid("smoke", depths=(DEPTH,), regimes=("prose",), prompts=prompts, n_predict=8, local_tokens=LOCAL)


def made_prompt(number):
    return Prompt(
        id=f"prompt-{number}",
        regime="prose",
        source="made_up.txt",
        stub="x",
        original="",
        depths=(DEPTH,),
        local=tuple(range(100 + 10 * number, 100 + 10 * number + LOCAL)),
        shared_filler=tuple(range(DEPTH)),
    )


def number_of(asked):
    """The number of the prompt of a request, None where it fills a cache or is no prompt's."""
    first = asked["prompt"][-LOCAL]
    return (first - 100) // 10 if asked["n_predict"] > 2 and first >= 100 else None


@pytest.fixture
def measure(tmp_path, monkeypatch):
    """A function that measures what a run of made-up prompts still lacks, and returns the run and who was asked."""
    monkeypatch.setattr(grids, "prompts_of", lambda grid, *_: {"prose": [made_prompt(n) for n in range(grid.prompts)]})

    def run(prompts, at_once, *, slots=None, before=lambda asked: None):
        plan, grid, asked = leg(at_once), made_grid(prompts), []

        def note(request):
            asked.append(request)
            before(request)

        if not (tmp_path / "run").exists():
            cell = plan.cell(grid, depth=DEPTH, regime="prose", machine=MACHINE, engine=ENGINE)
            RunDir.create(tmp_path / "run", make_run(machine=MACHINE, engine=ENGINE, cells=(cell,)))
        directory = RunDir.open(tmp_path / "run")
        fake = FakeLlama(KNOWN, slots=slots or at_once, before=note, reused=lambda prompt: len(prompt) - 1)
        with serving(fake) as url:
            setting = Setting(MACHINE, ENGINE, FoundEngine(engine=ENGINE, server=None, url=url), corpus=None)
            measure_grid(directory, [plan], grid, setting)
        return RunDir.open(tmp_path / "run"), asked

    return run


def test_a_group_is_asked_at_once_each_prompt_on_a_slot_of_its_own(measure):
    everybody, seen = threading.Event(), set()

    def wait_for_all(asked):
        if number_of(asked) is not None:
            seen.add(asked["id_slot"])
            if len(seen) == 4:
                everybody.set()
            assert everybody.wait(PATIENCE), "requests were made one after another"

    directory, asked = measure(4, 4, before=wait_for_all)
    assert [sample.prompt_id for sample in directory.samples()] == [f"prompt-{n}" for n in range(4)]
    assert all(request["id_slot"] == number_of(request) for request in asked if number_of(request) is not None)
    # before that, each slot was primed with the filler and then with its own prompt, from which one token was asked
    filler = [(r["id_slot"], len(r["prompt"])) for r in asked if r["n_predict"] == 2]
    filled = [(r["id_slot"], len(r["prompt"])) for r in asked if r["n_predict"] == 1]
    assert filler == [(slot, DEPTH - LOCAL) for slot in range(4)]
    assert filled == [(slot, DEPTH) for slot in range(4)]
    for sample in directory.samples():
        assert list(zip(sample.drafted, sample.accepted, strict=True)) == [(d, a) for d, a, _ in KNOWN]
        assert sample.step_ms == pytest.approx([ms for *_, ms in KNOWN])
        assert (sample.cache_n, sample.prompt_n) == (DEPTH - 1, 1)


def test_counters_depth_and_order_of_a_life_with_companions_pass_the_gates(measure):
    directory, asked = measure(6, 4)
    evidence = Evidence(run=directory.run, samples=directory.samples(), lives=directory.lives())
    life = evidence.lives[0]
    decoded = sum(request["n_predict"] > 1 for request in asked)
    assert decoded > 6 + 4, "six samples, four primes, and companions"
    assert life.stream.drafts == life.metrics.drafts == len(KNOWN) * decoded
    refused = {found.gate for found in check_all(evidence) if found.level == "refuse"}
    assert not refused & {"counters-agree", "depth-real", "prompt-not-repeated", "warmup-discarded", "emitted-adds-up"}


def test_a_slot_that_is_done_asks_again_until_the_slowest_is_done(measure):
    counted, turn = Counter(), threading.Condition()

    def hold_the_first(asked):
        number = number_of(asked)
        with turn:
            counted[number] += 1
            turn.notify_all()
            if number == 0:
                assert turn.wait_for(lambda: counted[1] >= 3, PATIENCE), "slot 1 idled"

    directory, _ = measure(2, 2, before=hold_the_first)
    assert [sample.prompt_id for sample in directory.samples()] == ["prompt-0", "prompt-1"]
    assert counted[0] == 1


def test_the_last_group_is_filled_up_with_the_first_prompts(measure):
    directory, asked = measure(3, 2)
    assert [sample.prompt_id for sample in directory.samples()] == ["prompt-0", "prompt-1", "prompt-2"]
    filled = [number for number in map(number_of, asked) if number is not None]
    assert filled.count(0) >= 2, "once to be recorded, once as a companion of prompt 2"


def test_a_group_that_is_cut_off_is_measured_again_and_nothing_else_is(measure):
    def break_off(asked):
        if number_of(asked) == 3:
            raise ConnectionError("the test breaks off")

    with pytest.raises(Problem, match="broke off"):
        measure(4, 2, before=break_off)
    directory, asked = measure(4, 2)
    assert [sample.prompt_id for sample in directory.samples()] == [f"prompt-{n}" for n in range(4)]
    assert not {0, 1} & set(map(number_of, asked)), "the first group is recorded"
    assert {2, 3} <= set(map(number_of, asked)), "nothing of the second group was"


def test_a_recorded_prompt_of_a_group_is_asked_again_as_a_companion_and_not_recorded_twice(measure):
    before, _ = measure(3, 2)
    first = before.samples()
    directory, asked = measure(4, 2)
    samples = directory.samples()
    assert samples[:3] == first
    assert [sample.prompt_id for sample in samples] == [f"prompt-{n}" for n in range(4)]
    assert {n for n in map(number_of, asked) if n is not None} == {2, 3}
    slots = {number_of(request): request["id_slot"] for request in asked if number_of(request) is not None}
    assert slots == {2: 0, 3: 1}


def test_a_finished_run_asks_nothing(measure):
    measure(4, 2)
    assert measure(4, 2)[1] == []


def test_a_server_with_too_few_slots_is_refused_in_one_line(measure):
    with pytest.raises(Problem, match="the server has 1 slots for 4 requests at once.*measure with parallel=1"):
        measure(4, 4, slots=1)


def test_one_request_at_a_time_lets_the_server_choose_and_fills_as_before(measure):
    _, asked = measure(2, 1, slots=4)
    assert {request["id_slot"] for request in asked} == {-1}
    assert [request["n_predict"] for request in asked] == [2, 8, 8]


def test_a_failure_ends_the_companions_too():
    def ask(slot):
        if slot == 1:
            raise Problem("slot 1 failed")
        return slot

    with pytest.raises(Problem, match="slot 1 failed"):
        ask_together(ask, 3, (0, 1, 2))


def test_answers_that_count_are_the_first_of_their_slots():
    answers = Counter()

    def ask(slot):
        answers[slot] += 1
        return slot, answers[slot]

    wanted, others = ask_together(ask, 3, (0, 2))
    assert wanted == {0: (0, 1), 2: (2, 1)}
    assert (1, 1) in others
    assert len(wanted) + len(others) == sum(answers.values())


def test_groups_of_prompts():
    assert group_of(0, 4, 8) == [0, 1, 2, 3]
    assert group_of(4, 4, 6) == [4, 5, 0, 1]


def test_legs_take_turns_group_by_group():
    legs = [raw_leg(leg(2)), leg(2)]
    setting = Setting(machine=MACHINE, engine=ENGINE, found=None, corpus=None)
    order = [(g[0].leg.leg, [t.prompt_number for t in g]) for g in groups(tasks(legs, made_grid(5), setting))]
    assert order == [
        ("raw", [0, 1]),
        ("drafted", [0, 1]),
        ("drafted", [2, 3]),
        ("raw", [2, 3]),
        ("drafted", [4]),
        ("raw", [4]),
    ]


def test_what_cannot_be_measured_at_once_is_refused():
    check_together(load_grid("quick", prompts=4), 4)
    check_together(load_grid("quick", prompts=2, fill="cold"), 1)
    with pytest.raises(Problem, match="4 requests at once with 2 prompts a cell; expected at least 4"):
        check_together(load_grid("quick", prompts=2), 4)
    with pytest.raises(Problem, match="2 requests at once with fill cold; expected fill reused"):
        check_together(load_grid("quick", fill="cold"), 2)


def test_throughput_is_the_pooled_rate_of_all_requests_at_once():
    rate = decode_rate([11, 21], [1000.0, 1000.0], ["a", "b"])  # 15 tokens/s a request
    assert throughput(rate, make_run(), make_cell(parallel=4)).estimate == pytest.approx(60)
    foreign = make_run(engine=ENGINE)
    assert throughput(rate, foreign, make_cell(parallel=4)).estimate == pytest.approx(15)
