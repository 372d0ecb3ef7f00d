"""Shapes of curves: named where the counts leave no doubt, undecided where they do."""

import math
from dataclasses import replace

import numpy as np
import pytest

from analysis.ingest.curve import Group, run_curves, steps_group, typed_curve
from analysis.ingest.diagnose import causes, diagnose, favoured
from analysis.ingest.recorded import recorded
from analysis.ingest.signs import SHAPES, falls, shape, shapes, thresholds
from analysis.ingest.simulate import TRUTHS, confusion, drafter, matrix
from analysis.records import Problem
from analysis.records.store import find_run

SHAPE_OF = {
    (0.8, 0.78, 0.79, 0.8): "flat",
    (0.805, 0.785, 0.764): "flat",  # an EAGLE-3 drafter of a public log
    (0.897, 0.738, 0.689, 0.612): "flat",  # the first positions of a one-head drafter
    (0.9, 0.65, 0.5, 0.4): "decay",
    (0.85, 0.1, 0.12, 0.1): "collapse",
    (0.85, 0.86, 0.84, 0.02): "cliff",
    (0.85, 0.86, 0.02, 0.01): "cliff",
    (0.0, 0.0): "nothing",
    (1.0, 0.99, 1.0): "ones",
    (0.25, 0.24, 0.26): "weak",
}


@pytest.mark.parametrize(("values", "name"), SHAPE_OF.items(), ids=str)
def test_a_curve_without_noise_has_one_shape(values: tuple[float, ...], name: str) -> None:
    assert shape(values, thresholds())[0] == name


def test_the_position_in_front_of_a_cliff_is_given() -> None:
    assert shape((0.85, 0.86, 0.84, 0.02, 0.0), thresholds()) == ("cliff", 3)


def test_the_same_curve_is_sure_with_many_steps_and_undecided_with_few() -> None:
    many = diagnose(typed_curve("0.8,0.2,0.06", meaning="survival", steps=2000))
    assert many.named is not None
    assert many.named.sign == "collapse"
    few = diagnose(typed_curve("0.7,0.35,0.2", meaning="survival", steps=10))
    assert few.named is None
    assert few.verdict == "undecided"
    assert few.causes  # of what may be


def test_a_typed_curve_without_steps_is_read_as_it_stands_and_says_so() -> None:
    found = diagnose(typed_curve("80%, 62%, 50%", meaning="survival"))
    assert found.named is not None
    assert found.named.sign == "flat"
    assert any("chance is not in this" in note for note in found.notes)


def test_survival_is_turned_into_conditional_acceptance() -> None:
    curve = typed_curve("0.8,0.4,0", meaning="survival")
    assert curve.conditional == (0.8, 0.5, 0.0)
    after_nothing = typed_curve("0.5,0,0", meaning="survival").conditional
    assert math.isnan(after_nothing[2])


@pytest.mark.parametrize("text", ["", "0.5,x", "1.2", "-0.1", "0.5,0.9", "nan", "1e999"])
def test_what_is_no_curve_is_refused(text: str) -> None:
    with pytest.raises(Problem):
        typed_curve(text, meaning="survival")


def test_what_is_known_of_the_setup_puts_the_causes_in_order() -> None:
    nothing = typed_curve("0.003,0,0", meaning="survival", steps=900)
    plain = diagnose(nothing)
    dflash = diagnose(replace(nothing, spec_type="draft-dflash"))
    assert {cause.id for cause in plain.causes} == {"wrong-type", "shifted", "wrong-target"}
    assert dflash.causes[0].id == "wrong-type"
    assert favoured(dflash.causes[0], dflash.curve)
    block = replace(typed_curve("0.9,0.8,0.7,0.01", meaning="survival", steps=900), block=3)
    assert diagnose(block).causes[0].id == "block"


def test_every_sign_has_a_cause_and_every_cause_says_how_to_tell_it_apart() -> None:
    found = causes()
    assert {cause.sign for cause in found} == {*SHAPES, "depth", "uptime"}
    assert all(cause.evidence and cause.apart and cause.seen for cause in found)
    assert len({cause.id for cause in found}) == len(found)


def test_every_threshold_says_where_it_comes_from() -> None:
    assert all(len(threshold.source) > 20 for threshold in thresholds().values())


def groups(pairs: list[tuple[float, int]], seed: int = 1) -> list[Group]:
    rng = np.random.default_rng(seed)
    return [
        Group(survived=(), reached=(), accepted=int(rng.binomial(200, rate)), drafted=200, depth=depth)
        for rate, depth in pairs
    ]


def test_a_fall_with_depth_needs_depths_and_requests_on_both_sides() -> None:
    assert falls(groups([(0.7, 500)] * 4 + [(0.2, 8000)] * 4), 0.6, by="depth") == 1.0
    assert falls(groups([(0.7, 500)] * 4 + [(0.68, 8000)] * 4), 0.6, by="depth") == 0.0
    assert falls(groups([(0.7, 500)] * 8), 0.6, by="depth") is None
    assert falls(groups([(0.7, 500)] * 4 + [(0.2, 8000)] * 2), 0.6, by="depth") is None


def test_a_fall_along_the_order_of_requests_is_named_beside_the_shape() -> None:
    first = [steps_group([4] * 60, [3, 2, 4] * 20) for _ in range(4)]
    last = [steps_group([4] * 60, [1, 0, 2] * 20) for _ in range(4)]
    middle = [steps_group([4] * 60, [2, 1, 3] * 20) for _ in range(4)]
    curve = typed_curve("0.5", meaning="survival", steps=10)
    found = diagnose(replace(curve, groups=tuple(g for g in (*first, *middle, *last) if g)))
    assert [one.sign for one in found.also] == ["uptime"]
    assert {"state-drifts", "other-text"} <= {cause.id for cause in found.causes}


def test_a_recorded_run_has_a_curve_for_every_regime() -> None:
    curves = run_curves(find_run("smollm2-ngram-quick-2a2692"))
    assert curves
    for curve in curves:
        assert curve.spec_type == "ngram-simple"
        assert diagnose(curve).evidence or sum(curve.totals[1]) < 8


@pytest.mark.parametrize("name", TRUTHS)
def test_simulated_drafters_are_what_they_are_called(name: str) -> None:
    rng = np.random.default_rng(7)
    named = [shapes(drafter(TRUTHS[name](rng, 5), 4000, rng), thresholds(), draws=100)[0].sign for _ in range(12)]
    assert named.count(name) >= 10


def test_the_confusion_table_has_a_row_for_every_shape_and_its_shares_add_up() -> None:
    table = matrix(confusion(steps=(250,), repeats=6, seeds=(101,)), 250)
    assert list(table.index) == list(SHAPES)
    assert np.allclose(table.sum(axis=1), 1.0)


def test_curves_recorded_with_a_real_server_are_called_healthy_and_loops_are_not_seen_on_a_curve() -> None:
    found = recorded()
    healthy = found[
        (found["cause"] == "healthy")
        & found["what"].str.startswith(("this drafter", "earlier drafter", "first training"))
    ]
    assert len(healthy) == 15
    assert set(healthy["named"]) == {"flat"}
    # A loop accepts most of what is drafted and not nearly all: only the emitted text shows it.
    assert set(found.loc[found["cause"] == "loop", "named"]) == {"flat"}


def test_recorded_faults_are_told_from_the_sound_drafter_beside_them() -> None:
    found = recorded()
    legs = {
        row["what"].rsplit(", ", 1)[-1]: row["named"] for row in found.to_dict("records") if "failures" in row["what"]
    }
    assert legs["sound"] == legs["sound-inside"] == "flat"
    assert legs["wrong-type"] == legs["untrained"] == "nothing"
    # Said to be a collapse, and not one on a trained pair; six prompts leave the milder of the two undecided.
    assert (legs["rotary-halves"], legs["rotary-pairs"]) == ("decay", "undecided")
    assert legs["late"] == "flat"  # a fault that no shape shows
