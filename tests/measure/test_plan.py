import re
from collections import Counter
from pathlib import Path

import pytest

from analysis.launch import ServerConfig
from analysis.measure.grid import Setting, tasks
from analysis.measure.plan import DRAFTED, RAW, LegPlan, balanced_order, check_context, list_grids, load_grid, raw_leg
from analysis.records import Engine, Machine, Pair, Problem, Source
from analysis.records.places import repo_dir

PAIR = Pair(name="p", title="p", target=Source(kind="path", file="t.gguf"), spec_type="ngram-simple", n_max=4)
CONFIG = ServerConfig(model=Path("t.gguf"), spec_type="ngram-simple", n_max=4, context=4096)
LEG = LegPlan(leg=DRAFTED, pair=PAIR, config=CONFIG, target_sha256="a" * 64)
MACHINE = Machine(name="test-2c", cpu="Test CPU", cores=2, memory=2**30, os="Linux")
ENGINE = Engine(source="bundled", version="0.5.0-dev", commit="0c1e570", backend="CPU")


def test_every_shipped_grid_is_valid():
    assert {"quick", "standard", "smoke"} <= set(list_grids())
    for name in list_grids():
        assert load_grid(name).title == name


def test_the_grids_with_a_negative_control_are_those_that_the_method_page_names():
    having = {name for name in list_grids() if load_grid(name).control}
    page = " ".join((repo_dir() / "book" / "method.md").read_text().split())
    said = re.search(r"The grids (.*?) have one; (.*?) give their time", page)
    assert set(re.findall(r"`(\w+)`", said[1])) == having
    assert set(re.findall(r"`(?:specbook )?(\w+)`", said[2])) == set(list_grids()) - having


def test_quick_is_what_the_readme_promises():
    quick = load_grid("quick")
    assert (quick.depths, quick.n_predict) == ((256, 2048), 64)
    assert quick.prompts >= 5


def test_changes_replace_fields_and_none_changes_nothing():
    grid = load_grid("quick", depths=[128, 512], prompts=None, n_predict=32)
    assert (grid.depths, grid.n_predict, grid.prompts) == ((128, 512), 32, load_grid("quick").prompts)
    assert grid.local_tokens == 128  # no deeper than the shallowest depth


def test_a_single_depth_or_regime_stands_for_a_list_of_one():
    assert load_grid("quick", depths=512, regimes="prose") == load_grid("quick", depths=[512], regimes=["prose"])


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"regimes": ["poetry"]}, "no regime named 'poetry'; expected one of invention, continuation, recall, prose"),
        ({"depths": [512, 256]}, "not ascending"),
        ({"depths": []}, "depths"),
        ({"prompts": 0}, "prompts"),
        ({"local_tokens": 4096}, "local_tokens is 4096"),
        ({"tempo": 3}, "tempo"),
    ],
)
def test_a_grid_that_cannot_be_measured_is_refused(changes, said):
    with pytest.raises(Problem, match=said):
        load_grid("quick", **changes)


def test_a_misspelt_profile_names_the_near_one():
    with pytest.raises(Problem, match="no profile named 'quik'.*did you mean quick"):
        load_grid("quik")


def test_a_depth_beyond_the_context_is_refused_before_anything_starts():
    with pytest.raises(Problem, match="depth 2048 and 64 generated tokens need 2112.*at most 2000"):
        check_context(load_grid("quick"), 2000)
    check_context(load_grid("quick"), 2112)


def test_the_raw_leg_differs_in_speculation_only():
    grid = load_grid("quick")
    arguments = {"depth": 256, "regime": "prose", "machine": MACHINE, "engine": ENGINE}
    drafted, raw = LEG.cell(grid, **arguments), raw_leg(LEG).cell(grid, **arguments)
    assert raw_leg(LEG).leg == RAW
    assert drafted.factors_that_differ(raw) == ("spec_type", "n_max")


def test_no_leg_is_always_first():
    legs = [raw_leg(LEG), LEG]
    first = Counter(balanced_order(legs, block)[0].leg for block in range(40))
    assert first == {RAW: 20, DRAFTED: 20}
    # and neither follows a linear drift: the positions of a leg balance within every four blocks
    weights = [block if balanced_order(legs, block)[0].leg == RAW else -block for block in range(4)]
    assert sum(weights) == 0


@pytest.mark.parametrize("prompts", [2, 5, 8])
def test_order_is_balanced_within_every_cell(prompts):
    setting = Setting(machine=MACHINE, engine=ENGINE, found=None, corpus=None)
    grid = load_grid("quick", prompts=prompts)
    first = Counter()
    for task in tasks([raw_leg(LEG), LEG], grid, setting):
        if task.order == 0:
            first[task.cell.depth, task.cell.regime, task.leg.leg] += 1
    for depth in grid.depths:
        for regime in grid.regimes:
            assert abs(first[depth, regime, RAW] - first[depth, regime, DRAFTED]) == prompts % 2
        at_depth = {leg: sum(first[depth, regime, leg] for regime in grid.regimes) for leg in (RAW, DRAFTED)}
        assert at_depth[RAW] == at_depth[DRAFTED]
