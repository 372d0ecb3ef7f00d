"""Drafting in process does what the tables of the synthetic pair say, and its faults do what they should."""

import pytest

from analysis.convert.dsv4 import TINY, Recipe
from analysis.convert.dsv4.walk import expected_steps, walk
from analysis.launch.drafting import Drafter, Fault, generate, generate_raw, leads
from analysis.launch.inside import Context, Model
from analysis.records import Problem

START, COUNT = 40, 60


@pytest.fixture(scope="module")
def pair(dsv4_target, dsv4_drafter):
    with (
        Model(dsv4_target) as target,
        Model(dsv4_drafter) as drafter,
        Context(target, size=256, rollback=5) as context,
        Context(drafter, size=256, target=context, spare=True) as beside,
    ):
        yield context, Drafter(context, beside)


def test_the_drafter_says_what_it_reads(pair):
    assert pair[1].taps == tuple(layer + 1 for layer in TINY.taps)
    assert pair[1].block == TINY.block_size


def test_tokens_and_steps_are_those_of_the_tables(pair):
    found = generate(*pair, [5, 9, START], COUNT, n_max=5)
    assert list(found.tokens) == walk(TINY, Recipe(), START, COUNT)
    assert list(zip(found.drafted, found.accepted, strict=True)) == expected_steps(TINY, Recipe(), START, COUNT, 5)


def test_a_target_alone_emits_the_same_and_says_by_how_much(pair):
    tokens, logits = generate_raw(pair[0], [5, 9, START], COUNT)
    assert tokens == walk(TINY, Recipe(), START, COUNT)
    assert logits.argmax(axis=1).tolist() == tokens
    assert leads(logits).min() > 1


@pytest.mark.parametrize("fault", [Fault(keep_noise=True), Fault(late=True), Fault(forget=True)], ids=str)
def test_no_fault_changes_the_text(pair, fault):
    assert list(generate(*pair, [5, 9, START], COUNT, n_max=5, fault=fault).tokens) == walk(
        TINY, Recipe(), START, COUNT
    )


def test_noise_that_is_kept_stands_beside_what_belongs_there(pair):
    context, drafter = pair
    lengths = {}
    for fault in (Fault(), Fault(keep_noise=True)):
        generate(context, drafter, [5, 9, START], COUNT, n_max=5, fault=fault)
        lengths[fault] = len(drafter.context.state())
    assert lengths[Fault(keep_noise=True)] > lengths[Fault()]


def test_a_cache_that_cannot_take_back_a_draft_is_refused(dsv4_target, dsv4_drafter):
    with (
        Model(dsv4_target) as target,
        Model(dsv4_drafter) as drafter,
        Context(target, size=256) as context,
        Context(drafter, size=256, target=context) as beside,
        pytest.raises(Problem, match="cannot take back .* expected rollback of at least 5"),
    ):
        generate(context, Drafter(context, beside), [5, 9, START], COUNT, n_max=5)


def test_a_target_is_no_drafter(dsv4_target):
    with (
        Model(dsv4_target) as target,
        Context(target, size=256) as context,
        pytest.raises(Problem, match="is no block drafter"),
    ):
        Drafter(context, context)
