"""The instrument against servers of known acceptance: the short version here, the long one in `make soak`."""

from pathlib import Path

import numpy as np
import pytest

from analysis.measure.calibration.coverage import STOPPING_REQUESTS, coverage_of, merged, stopping_of
from analysis.measure.calibration.selfduels import SelfDuels, fight, self_coverage
from analysis.measure.calibration.synthetic import RATES, Campaign, measure_cells, read_cells
from analysis.stats import acceptance
from analysis.stats.synthetic import truth

pytestmark = pytest.mark.engine
SHORT = Campaign(requests=5, emitted=24, rates=RATES[:2])
ENOUGH_SHOWN = 0.5


@pytest.fixture
def local(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SPECBOOK_LOCAL", str(tmp_path))
    return tmp_path


def test_the_instrument_finds_the_rates_that_a_server_was_given(local: Path, engine):
    assert measure_cells(SHORT, engine, 3) == 3
    assert measure_cells(SHORT, engine, 12) == 9, "three cells were there already"
    cells = read_cells(SHORT, engine)
    assert sorted(cell.number for cell in cells) == list(range(12))
    for rates in SHORT.rates:
        mine = [cell for cell in cells if cell.rates == rates]
        found = acceptance(*columns(mine), n_max=5)
        expected = truth(rates, SHORT.emitted)
        assert found.mean_length.contains(expected.mean_length) or near(found.mean_length, expected.mean_length)
        for rate, value in zip(found.proposal, expected.proposal, strict=True):
            assert abs(rate.successes - rate.trials * value) < 4.5 * np.sqrt(rate.trials * value * (1 - value)) + 1
    rows = {(row.quantity, row.prompts): row for row in coverage_of(cells, (3, 5))}
    length = rows["mean accepted length", 5]
    assert length.cells == 12
    assert length.covered >= 8, "of 12 intervals of 95 %, fewer than 8 in one of a thousand runs"
    (stopped,) = stopping_of(merged(cells, 20), widths=(0.3,))
    assert stopped.cells == 2, "six cells of a rate are one of 30 requests"
    assert stopped.held >= 1


def test_requests_of_cells_of_one_rate_make_longer_cells(local: Path, engine):
    measure_cells(SHORT, engine, 4)
    cells = sorted(read_cells(SHORT, engine), key=lambda cell: cell.number)
    found = merged(cells, 10)
    assert [len(cell.drafted) for cell in found] == [10, 10]
    assert [cell.rates for cell in found] == list(SHORT.rates)
    assert found[0].drafted == cells[0].drafted + cells[2].drafted


def test_several_servers_at_once_measure_each_cell_once(local: Path, engine):
    assert measure_cells(SHORT, engine, 6, servers=2) == 6
    cells = read_cells(SHORT, engine)
    assert sorted(cell.number for cell in cells) == list(range(6))
    assert all(cell.rates == SHORT.rates[cell.number % 2] for cell in cells)


def test_drafts_shorten_at_the_end_of_a_request_as_the_truth_assumes(local: Path, engine):
    measure_cells(SHORT, engine, 2)
    for cell in read_cells(SHORT, engine):
        for drafted, accepted in zip(cell.drafted, cell.accepted, strict=True):
            left = cell.emitted - 1
            for d, a in zip(drafted, accepted, strict=True):
                assert d == min(5, left - 1)
                left -= a + 1
            assert left == 0


def test_requests_of_a_cell_have_coins_of_their_own(local: Path, engine):
    measure_cells(SHORT, engine, 2)
    for cell in read_cells(SHORT, engine):
        assert len(set(cell.accepted)) > len(cell.accepted) / 2


def test_a_server_against_itself_holds_1(local: Path, engine):
    plan = SelfDuels(blocks=4, prompts=1, emitted=24)
    duels = fight(plan, engine, 3)
    assert [duel.number for duel in duels] == [0, 1, 2]
    assert self_coverage(duels).cells == 3
    assert self_coverage(duels).covered >= 1
    assert fight(plan, engine, 3) == duels, "what is fought is not fought again"


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_a_thousand_cells_are_covered_as_often_as_their_intervals_say(engine):
    """Goes on where the last call stopped; `specbook calibrate --write` publishes what it measured."""
    campaign = Campaign()
    measure_cells(campaign, engine, 1000)
    cells = read_cells(campaign, engine)
    rows = [row for row in coverage_of(cells) if row.shown > ENOUGH_SHOWN * row.cells]
    pooled = sum(row.covered for row in rows) / sum(row.shown for row in rows)
    assert 0.93 <= pooled <= 0.97
    for row in rows:
        if row.quantity in ("mean accepted length", "aggregate acceptance"):
            assert 0.93 <= row.covered / row.shown <= 0.97, row
    for stopped in stopping_of(merged(cells, STOPPING_REQUESTS)):
        monte_carlo = 3 * np.sqrt(0.05 * 0.95 / stopped.cells)
        assert stopped.held / stopped.cells >= 0.95 - monte_carlo


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_a_hundred_duels_of_a_server_against_itself_hold_1(engine):
    row = self_coverage(fight(SelfDuels(), engine, 100))
    assert row.shown >= 100
    assert row.covered / row.shown >= 0.95 - 3 * np.sqrt(0.05 * 0.95 / row.shown)


def columns(cells):
    requests = [
        (number, d, a)
        for number, (d, a) in enumerate(
            pair for cell in cells for pair in zip(cell.drafted, cell.accepted, strict=True)
        )
    ]
    return (
        [x for _, d, _ in requests for x in d],
        [x for _, _, a in requests for x in a],
        [number for number, d, _ in requests for _ in d],
    )


def near(interval, value: float) -> bool:
    low, high = interval.limits
    return low - (high - low) / 2 <= value <= high + (high - low) / 2
