"""The instrument on a made-up server of known speed and counters, and on one with each known counter fault."""

import pytest

from analysis.gates import Evidence, check_all
from analysis.launch import FoundEngine, ServerConfig
from analysis.measure.estimate import acceptance_of, rate_of
from analysis.measure.life import Life
from analysis.measure.plan import DRAFTED, Grid, LegPlan
from analysis.measure.prompts import Prompt
from analysis.records import Problem
from analysis.records.store import RunDir
from analysis.stats import decode_rate
from factories import make_host, make_run
from fake_llama import ENGINE, MACHINE, N_MAX, PAIR, FakeLlama, serving

DEPTH, LOCAL = 64, 8
# Drafted, accepted, milliseconds: 4 + 1 + 3 + 1 + 2 tokens after the fill's, in 100 ms.
KNOWN = ((4, 3, 20.0), (4, 0, 19.0), (4, 2, 20.0), (0, 0, 10.0), (3, 1, 31.0))
EMITTED, MS = 12, 100.0


def measure(tmp_path, fake, prompts=6):
    """Measure prompts on a made-up server; return the samples and what gates refuse."""
    leg = LegPlan(leg=DRAFTED, pair=PAIR, config=ServerConfig(model=None, spec_type="draft-dspark", n_max=N_MAX))
    grid = Grid(
        title="t", depths=(DEPTH,), regimes=("continuation",), prompts=prompts, n_predict=EMITTED, local_tokens=LOCAL
    )
    cell = leg.cell(grid, depth=DEPTH, regime="continuation", machine=MACHINE, engine=ENGINE)
    directory = RunDir.create(tmp_path / "run", make_run(machine=MACHINE, engine=ENGINE, cells=(cell,)))
    with serving(fake) as url, directory.writing() as writer:
        found = FoundEngine(engine=ENGINE, server=None, url=url)
        try:
            with Life(found, leg, writer, name="drafted-0") as life:
                for number in range(prompts):
                    prompt = made_prompt(number)
                    if number == 0:
                        life.prime(prompt.filler(DEPTH))
                    writer.append(life.take(cell, prompt, order=0, seed=0))
        except Problem as problem:
            stopped: str = str(problem)
        else:
            stopped = ""
    evidence = Evidence(run=directory.run, samples=directory.samples(), lives=directory.lives())
    refused = {(f.gate, f.where.kind) for f in check_all(evidence) if f.level == "refuse"}
    return directory.samples(), cell, refused, stopped


def made_prompt(number):
    return Prompt(
        id=f"prompt-{number}",
        regime="continuation",
        source="made_up.py",
        stub="def total(values):\n    ",
        original="",
        depths=(DEPTH,),
        local=tuple(range(100 * number, 100 * number + LOCAL)),
        shared_filler=tuple(range(DEPTH)),
    )


def test_what_is_known_is_found(tmp_path):
    samples, cell, refused, stopped = measure(tmp_path, FakeLlama(KNOWN))
    assert not stopped
    assert not {gate for gate, _ in refused} - {"text-of-its-regime"}
    for sample in samples:
        assert list(zip(sample.drafted, sample.accepted, strict=True)) == [(d, a) for d, a, _ in KNOWN]
        assert sample.step_ms == pytest.approx([ms for *_, ms in KNOWN])
        assert sample.emitted == EMITTED
        assert rate_of(sample) == pytest.approx(1000 * (EMITTED - 1) / MS)
    found = acceptance_of(samples, cell)
    steps = 4 * len(samples)
    assert (found.steps, found.undrafted) == (steps, len(samples))
    assert found.mean_length.estimate == pytest.approx(1 + 6 / 4)
    assert found.aggregate.estimate == pytest.approx(6 / 15)
    assert [rate.successes for rate in found.survival] == [steps * 3 // 4, steps // 2, steps // 4, 0]
    assert [rate.trials for rate in found.proposal] == [steps, steps, steps, steps * 3 // 4]
    rate = decode_rate([s.emitted for s in samples], [sum(s.step_ms) for s in samples], [s.prompt_id for s in samples])
    assert rate.estimate == pytest.approx(110.0)


def test_accepted_tokens_past_the_stop_are_counted_by_the_server_and_not_by_us(tmp_path):
    samples, cell, refused, stopped = measure(tmp_path, FakeLlama(KNOWN, cut=1))
    assert not stopped
    assert all(sample.draft_n_accepted == 6 and sum(sample.accepted) == 5 for sample in samples)
    assert acceptance_of(samples, cell).aggregate.estimate == pytest.approx(5 / 15)
    assert ("emitted-adds-up", "sample") not in refused


def test_an_accepted_token_too_many_stops_the_run(tmp_path):
    """One too many at each partial acceptance, and no replay in the stream that would explain it.

    With one (llama.cpp before 26320) the totals look honest; then the build is refused by its number, see
    `tests/gates/test_gates.py`.
    """
    partial = FakeLlama(KNOWN, counted=lambda d, a: (d, a + (0 < a < d)))
    samples, _, _, stopped = measure(tmp_path, partial)
    assert not samples
    assert "counters in the stream contradict each other" in stopped


def test_partial_acceptance_that_counts_as_none_stops_the_run(tmp_path):
    """llama.cpp 25682: the tokens come, and the totals say that nothing was accepted."""
    samples, _, _, stopped = measure(tmp_path, FakeLlama(KNOWN, counted=lambda d, a: (d, a if a == d else 0)))
    assert not samples
    assert "counters in the stream contradict each other" in stopped


def test_a_bonus_token_that_counts_as_accepted_stops_the_run(tmp_path):
    """SGLang 23530: the token that the target adds itself is counted with the accepted ones."""
    samples, _, _, stopped = measure(tmp_path, FakeLlama(KNOWN, counted=lambda d, a: (d, min(d, a + 1))))
    assert not samples
    assert "counters in the stream contradict each other" in stopped


def test_drafts_that_were_never_tested_are_refused(tmp_path):
    """llama.cpp 14104: the denominator holds drafts longer than what is verified."""
    _, _, refused, _ = measure(
        tmp_path, FakeLlama(KNOWN, counted=lambda d, a: (d + 3, a), told=lambda d, a: (d + 3, a))
    )
    assert ("drafts-within-limit", "cell") in refused


@pytest.mark.parametrize(
    "told",
    [
        lambda d, a: (d, a + (0 < a < d)),
        lambda d, a: (d, a if a == d else 0),
        lambda d, a: (d - 1, a),
    ],
    ids=["one accepted too many", "partial counts as none", "one drafted too few"],
)
def test_metrics_that_say_something_else_stop_the_run_and_refuse_its_server(tmp_path, told):
    samples, _, refused, stopped = measure(tmp_path, FakeLlama(KNOWN, told=told))
    assert samples, "what was measured stays in the record"
    assert "/metrics says" in stopped
    assert ("counters-agree", "server") in refused


def test_a_cache_that_is_filled_again_in_silence_is_refused(tmp_path):
    """llama.cpp 26676: a restore reports success, and the next request evaluates everything."""
    samples, _, refused, _ = measure(tmp_path, FakeLlama(KNOWN, reused=lambda prompt: 0))
    assert all(sample.cache_n == 0 for sample in samples)
    assert ("depth-real", "sample") in refused


def test_a_server_that_drafts_nothing_is_refused(tmp_path):
    """llama.cpp 25345: a drafter is loaded without a type."""
    _, _, refused, _ = measure(tmp_path, FakeLlama(tuple((0, 0, 10.0) for _ in range(11))))
    assert ("drafts-happened", "cell") in refused


@pytest.mark.parametrize(("faults", "refuses"), [((0, 2, 2), False), ((0, 2, 3), True)])
def test_what_the_first_request_reads_from_the_disk_is_before_the_first_sample(tmp_path, monkeypatch, faults, refuses):
    """Page faults after the start, after the discarded first request and at the end."""
    read = iter(faults)
    monkeypatch.setattr("analysis.measure.life.host_state", lambda url, pid: make_host(major_faults=next(read)))
    _, _, refused, stopped = measure(tmp_path, FakeLlama(KNOWN))
    assert not stopped
    assert ("memory-still" in {gate for gate, _ in refused}) == refuses
