from pathlib import Path

import numpy as np
import pytest

from analysis.measure.crossing import (
    CrossingSample,
    RecordedCrossing,
    crossing_frame,
    crossing_of,
    load_crossing,
    save_crossing,
)
from analysis.records import Engine, HostState, Machine, Problem

RAW_MS, FIXED_MS, SLOPE_MS = 10.0, 18.0, 1.0


@pytest.fixture(scope="module")
def samples():
    """Raw steps of 10 ms; drafted ones of 18 ms and 1 ms an accepted token, on prompts that differ by some per cent."""
    rng = np.random.default_rng(3)
    found = []
    for number in range(8):
        pace = float(rng.lognormal(0, 0.03))
        steps = 40
        found.append(
            CrossingSample(
                prompt=f"prompt-{number}",
                acceptance=None,
                drafted=(0,) * steps,
                accepted=(0,) * steps,
                step_ms=(RAW_MS * pace,) * steps,
            )
        )
        for chance in (0.1, 0.5, 0.9):
            accepted = np.minimum(rng.geometric(1 - chance, size=20) - 1, 5)
            found.append(
                CrossingSample(
                    prompt=f"prompt-{number}",
                    acceptance=chance,
                    drafted=(5,) * 20,
                    accepted=tuple(accepted.tolist()),
                    step_ms=tuple(((FIXED_MS + SLOPE_MS * accepted) * pace).tolist()),
                )
            )
    return found


def test_the_crossing_is_where_both_legs_are_equally_fast(samples):
    """1 + A = (18 + A) / 10 at A = 8/9."""
    found = crossing_of(samples)
    assert found.estimate == pytest.approx(8 / 9, abs=0.02)
    assert found.contains(8 / 9)
    assert (found.n, found.unit) == (8, "prompts")


def test_every_leg_has_its_rate_and_what_it_accepted(samples):
    frame = crossing_frame(samples)
    assert list(frame["acceptance"].fillna(-1)) == [-1, 0.1, 0.5, 0.9]
    raw, *drafted = frame.to_dict("records")
    assert raw["low"] < 100 < raw["high"]
    for row in drafted:
        expected = 1000 * (1 + row["accepted"]) / (FIXED_MS + SLOPE_MS * row["accepted"])
        assert row["estimate"] == pytest.approx(expected, rel=0.05)
    assert drafted[0]["estimate"] < raw["estimate"] < drafted[2]["estimate"]


def test_a_drafter_whose_tokens_cost_what_they_save_never_crosses(samples):
    dear = [
        s
        if s.acceptance is None
        else CrossingSample(
            prompt=s.prompt,
            acceptance=s.acceptance,
            drafted=s.drafted,
            accepted=s.accepted,
            step_ms=tuple(20.0 + 12.0 * a for a in s.accepted),
        )
        for s in samples
    ]
    found = crossing_of(dear)
    assert not found.shown
    assert "no crossing" in found.note


def test_a_record_is_read_as_it_was_written(samples, tmp_path: Path):
    found = RecordedCrossing(
        pair="a-pair",
        depth=256,
        regime="prose",
        n_max=5,
        n_predict=48,
        threads=2,
        machine=Machine(name="m", cpu="a CPU", cores=2, memory=2**30, os="an OS", kernel="k"),
        engine=Engine(source="bundled", version="1", commit="c", backend="cpu"),
        files=(),
        corpus="text",
        corpus_sha256="0",
        at="2026-01-01T00:00:00+00:00",
        commit="c",
        dirty=False,
        host_before=HostState(at="2026-01-01T00:00:00+00:00"),
        host_after=HostState(at="2026-01-01T00:00:00+00:00"),
        samples=tuple(samples),
    )
    path = tmp_path / "a.json"
    save_crossing(found, path)
    assert load_crossing(str(path)) == found
    assert len(path.read_text().splitlines()) > len(samples), "a sample a line"


def test_what_is_no_record_is_refused(tmp_path: Path):
    with pytest.raises(Problem, match="is no recorded crossing"):
        load_crossing("nothing-of-that-name")
    path = tmp_path / "b.json"
    path.write_text("{}")
    with pytest.raises(Problem, match="is not a valid RecordedCrossing"):
        load_crossing(str(path))
