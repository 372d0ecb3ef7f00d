"""Duels made up of records: what counts, what is left out, and what the result says."""

import numpy as np
import pytest

from analysis.measure.duel_result import block_ratios, result_of
from analysis.measure.study import study_in
from analysis.records import Block, Leg
from analysis.records.store import RunDir
from factories import make_cell, make_host, make_life, make_run, make_sample

A = make_cell(n_max=4)
B = make_cell(n_max=6)
PROMPTS = 2


def record_duel(folder, *, ratio=1.25, blocks=4, changed=(), disturbed=(), slower=0.0, attempts=1):
    """Write a duel in which b decodes `ratio` times as fast; `changed` prompts have another text on side b."""
    directory = RunDir.create(folder, make_run(cells=(A, B)))
    rng = np.random.default_rng(1)
    with directory.writing() as writer:
        for number in range(blocks):
            order = ("abba", "baab")[number % 2]
            pace = np.exp(slower * number / max(blocks - 1, 1))
            legs = []
            for place, side in enumerate(order):
                faster = ratio if side == "b" else 1.0
                made = []
                for each in range(PROMPTS):
                    prompt = f"prompt-{(2 * number + place // 2) * PROMPTS + each:03d}"
                    ms = 20.0 * pace / faster * float(rng.lognormal(0, 0.01))
                    sample = make_sample(
                        cell=(A if side == "a" else B).id,
                        prompt_id=prompt,
                        prompt_sha256=f"{hash(prompt) % 2**64:064x}",
                        server=f"{side}-0",
                        leg=side,
                        leg_order=place % 2,
                        step_ms=(ms, ms, ms),
                        text="other\n" if side == "b" and prompt in changed else "return value\n",
                        tokens=tuple(range(1, 9)) if side == "b" and prompt in changed else tuple(range(8)),
                    )
                    made.append(writer.append(sample).index)
                after = make_host(major_faults=int((number, place) in disturbed))
                legs.append(
                    Leg(
                        contestant=side,
                        server=f"{side}-0",
                        samples=tuple(made),
                        host_before=make_host(),
                        host_after=after,
                    )
                )
            writer.append_block(Block(number=number, order=order, legs=tuple(legs)))
        for side in "ab":
            writer.append_life(make_life(id=f"{side}-0"))
    return study_in(directory)


def test_the_ratio_is_over_blocks_and_holds_what_was_put_in(tmp_path):
    found = result_of(record_duel(tmp_path / "run", blocks=6))
    assert found.ratio.contains(1.25)
    assert (found.ratio.n, found.ratio.unit) == (6, "blocks")
    assert found.verdict == "pays"
    assert (found.blocks, found.prompts, found.differing, found.left_out) == (6, 6 * 2 * PROMPTS, 0, ())
    assert not found.restarted


def test_prompts_with_another_text_are_counted_and_the_rest_has_its_own_ratio(tmp_path):
    found = result_of(record_duel(tmp_path / "run", changed={"prompt-000", "prompt-005"}))
    assert found.differing == 2
    assert found.prompts == 16
    assert found.equal_ratio.contains(1.25)
    assert found.equal_ratio != found.ratio


def test_a_block_with_a_disturbed_leg_is_left_out_whole(tmp_path):
    study = record_duel(tmp_path / "run", disturbed={(2, 1)})
    found = result_of(study)
    assert found.left_out == (3,)
    assert found.blocks == 3
    assert any(f.gate == "leg-undisturbed" and str(f.where) == "leg 3.2" for f in study.findings)


def test_a_machine_that_slows_down_shows_as_drift_of_the_rate_and_not_of_the_ratio(tmp_path):
    found = result_of(record_duel(tmp_path / "run", blocks=8, slower=0.3))
    assert found.speed_drift.contains(np.exp(-0.3))
    assert not found.speed_drift.contains(1.0)
    assert found.ratio_drift.contains(1.0)


def test_the_interval_that_may_be_looked_at_is_the_wider_one(tmp_path):
    found = result_of(record_duel(tmp_path / "run", blocks=8))
    low, high = found.ratio.limits
    assert found.sequence.low < low < high < found.sequence.high


def test_samples_of_a_block_that_was_cut_off_do_not_count(tmp_path):
    study = record_duel(tmp_path / "run", blocks=3)
    lines = study.directory.blocks_file.read_text().splitlines(keepends=True)
    study.directory.blocks_file.write_text("".join(lines[:2]))
    assert len(block_ratios(study_in(study.directory))) == 2


def test_too_few_blocks_give_a_point_and_the_reason(tmp_path):
    found = result_of(record_duel(tmp_path / "run", blocks=2))
    assert found.ratio.limits is None
    assert found.ratio.note == "2 blocks, and an interval needs 3"
    assert found.ratio.estimate == pytest.approx(1.25, rel=0.02)
