"""Dealing a grid: what each worker gets, and what happens to the block of one that is lost."""

from dataclasses import replace
from pathlib import Path

import pytest

from analysis.convert.pairs import load_pair
from analysis.launch import FoundEngine, ServerConfig
from analysis.measure.corpus import Corpus
from analysis.measure.deal import Deal
from analysis.measure.grid import Setting, Task, tasks
from analysis.measure.plan import DRAFTED, RAW, Grid, LegPlan, raw_leg
from factories import make_run

GRID = Grid(title="test", depths=(64, 128), regimes=("recall", "prose"), prompts=2, local_tokens=64)
RUN = make_run()


def planned(machine: str = "test-2c") -> list[Task]:
    """The grid of two legs on a machine of that name: 8 blocks of two samples."""
    config = ServerConfig(model=Path("t.gguf"), spec_type="ngram-simple", n_max=4)
    leg = LegPlan(leg=DRAFTED, pair=load_pair("smollm2-ngram"), config=config)
    found = FoundEngine(engine=RUN.engine, server=None, url=None)
    setting = Setting(replace(RUN.machine, name=machine), RUN.engine, found, Corpus.of("none", []))
    return tasks([raw_leg(leg), leg], GRID, setting)


def nothing(task: Task) -> bool:
    return False


def block(task: Task) -> tuple[int, str, int]:
    return task.cell.depth, task.cell.regime, task.prompt_number


def play(deal: Deal, *workers: str) -> list[tuple[str, Task]]:
    """Let workers measure in turns until nothing is left for them."""
    taken = []
    while turn := [(worker, task) for worker in workers if (task := deal.next(worker)) is not None]:
        for worker, _ in turn:
            deal.measured(worker)
        taken += turn
    return taken


def test_one_worker_measures_the_grid_in_its_order():
    deal = Deal(nothing)
    deal.join("a", planned())
    assert [task for _, task in play(deal, "a")] == planned()
    assert deal.missing == 0


def test_two_workers_share_the_grid_and_each_block_stays_in_one_hand():
    deal = Deal(nothing)
    for worker in "ab":
        deal.join(worker, planned())
    taken = play(deal, "a", "b")
    assert sorted(map(repr, planned())) == sorted(repr(task) for _, task in taken)
    hands = {(block(task), worker) for worker, task in taken}
    assert len(hands) == len({place for place, _ in hands}) == 8
    assert {worker for _, worker in hands} == {"a", "b"}


def test_depths_ascend_for_every_worker():
    deal = Deal(nothing)
    for worker in "ab":
        deal.join(worker, planned())
    taken = play(deal, "a", "b")
    for worker in "ab":
        depths = [task.cell.depth for who, task in taken if who == worker]
        assert depths == sorted(depths)


def test_a_sample_is_given_again_until_it_is_recorded():
    deal = Deal(nothing)
    deal.join("a", planned())
    assert deal.next("a") == deal.next("a") == planned()[0]
    assert deal.missing == 16


def test_a_lost_worker_loses_its_current_sample_and_no_other():
    deal = Deal(nothing)
    for worker in "ab":
        deal.join(worker, planned())
    first = deal.next("a")
    deal.measured("a")
    lost = deal.next("a")
    assert block(first) == block(lost)
    mine = deal.next("b")
    deal.leave("a")
    assert deal.missing == 15
    taken = [task for _, task in play(deal, "b")]
    assert taken[:3] == [mine, planned()[3], lost], "the rest of the lost block comes right after the one in hand"
    assert len(taken) == 15
    assert first not in taken


def test_a_worker_that_comes_later_joins_in():
    deal = Deal(nothing)
    deal.join("a", planned())
    for _ in range(4):
        deal.next("a")
        deal.measured("a")
    deal.join("b", planned())
    assert {worker for worker, _ in play(deal, "a", "b")} == {"a", "b"}
    assert deal.missing == 0


def test_a_machine_of_another_kind_measures_all_of_it_for_itself():
    deal = Deal(nothing)
    deal.join("a", planned())
    deal.join("b", planned("other-8c"))
    taken = play(deal, "a", "b")
    for worker, machine in (("a", "test-2c"), ("b", "other-8c")):
        assert [task for who, task in taken if who == worker] == planned(machine)


def test_what_a_lost_machine_leaves_waits_for_one_of_its_kind():
    deal = Deal(nothing)
    deal.join("a", planned())
    deal.join("b", planned("other-8c"))
    deal.next("b")
    deal.leave("b")
    play(deal, "a")
    assert deal.next("a") is None
    assert deal.missing == 16
    deal.join("c", planned("other-8c"))
    assert len(play(deal, "a", "c")) == 16


@pytest.mark.parametrize("recorded", [1, 7, 16])
def test_what_is_recorded_is_not_dealt(recorded: int):
    done = planned()[:recorded]
    deal = Deal(done.__contains__)
    deal.join("a", planned())
    assert [task for _, task in play(deal, "a")] == planned()[recorded:]


def test_legs_of_a_block_are_as_in_a_grid_that_is_not_dealt():
    legs = [task.leg.leg for task in planned()[:4]]
    assert sorted(legs[:2]) == sorted(legs[2:]) == [DRAFTED, RAW]
