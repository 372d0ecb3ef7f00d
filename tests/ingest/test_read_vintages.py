"""Logs of every vintage: excerpts written after public ones, and some of the bundled server, give the right tables."""

from dataclasses import dataclass
from typing import Any

import pytest

from analysis.ingest.frames import all_estimates, all_facts
from analysis.ingest.model import Known

A = {"drafted": 198, "accepted": 120}  # 50 steps, of which 41, 33, 26 and 20 survived
B = {"drafted": 318, "accepted": 181}  # 64 steps: 52, 43, 35, 29, 22
C = {"drafted": 117, "accepted": 69}  # 40 steps: 30, 22, 17
A_CURVE = {"survival_counts": (41, 33, 26, 20), "n_max": Known(4, 4, "printed")}
C_CURVE = {"survival_counts": (30, 22, 17), "n_max": Known(3, 3, "printed")}
DERIVED_50, DERIVED_40 = {"steps": Known(50, 50, "derived")}, {"steps": Known(40, 40, "derived")}
UNKNOWN_STEPS = {"steps": Known()}


@dataclass(frozen=True)
class Case:
    name: str
    reports: tuple[dict[str, Any], ...]


CASES = (
    Case(
        "2025-04-rate.log",
        (A | UNKNOWN_STEPS | {"emitted": 171, "prompt_n": 612, "slot": 0, "task": 0, "depth": 612, "cache_n": 0},),
    ),
    Case(
        "2025-compose.log",
        (B | UNKNOWN_STEPS | {"server": "llama-1 1", "slot": 1, "depth": 2051, "cache_n": 2000, "prompt_n": 51},),
    ),
    Case("2025-interleaved-slots.log", (C | {"slot": 0, "task": 5}, A | {"slot": 3, "task": 6, "emitted": 171})),
    Case(
        "2026-01-two-implementations.log",
        (
            {"drafted": 297, "accepted": 171, "rate": 0.57576, "scope": "request"},
            {"spec_type": "ngram_simple", "drafted": 187, "accepted": 73, "scope": "cumulative"} | UNKNOWN_STEPS,
            {"spec_type": "draft", "drafted": 110, "accepted": 98, "scope": "cumulative"},
        ),
    ),
    Case(
        "2026-02-calls.log",
        (
            {"drafted": 1248, "accepted": 968, "slot": 2, "task": 90, "emitted": 1203},
            {"spec_type": "ngram_map_k", "steps": Known(26, 26, "printed"), "drafted": 1248},
        ),
    ),
    Case(
        "2026-05-mtp-journal.log",
        (
            {"drafted": 404, "accepted": 398, "emitted": 700, "predicted_ms": 10387.12},
            {"spec_type": "mtp", "steps": Known(230, 230, "printed")},
        ),
    ),
    Case(
        "2026-06-long-names.log",
        (
            C | C_CURVE | DERIVED_40 | {"mean_length": 2.73, "survival": (0.75, 0.55, 0.425)},
            C | {"spec_type": "draft-eagle3", "steps": Known(40, 40, "printed"), "survival_counts": (30, 22, 17)},
        ),
    ),
    Case("2026-08-mean-len.log", (A | DERIVED_50 | {"mean_length": 3.4, "survival": (), "n_max": Known()},)),
    Case(
        "2026-10-whole-life.log",
        (
            B | {"survival_counts": (52, 43, 35, 29, 22), "steps": Known(64, 64, "derived"), "depth": 1024}
            | {"spec_type": "draft-dspark", "n_max": Known(5, 5, "printed"), "cache_n": 0},
            B | {"spec_type": "draft-dspark", "scope": "cumulative"},
        ),
    ),
    Case("2026-10-interleaved-slots.log", (A | A_CURVE | {"slot": 1, "task": 8}, C | C_CURVE | {"slot": 0, "task": 7})),
    Case("2026-router.log", (A | A_CURVE | {"server": "[53409] 1"}, C | C_CURVE | {"server": "[53411] 1"})),
    Case("2026-colours-crlf.log", (A | A_CURVE | DERIVED_50 | {"emitted": 171},)),
    Case("2026-truncated.log", (A | A_CURVE | DERIVED_50,)),
    Case("2026-rotated.log", (A | A_CURVE | {"server": "1"}, C | C_CURVE | {"server": "2"})),
    Case("2026-log.jsonl", (A | A_CURVE | DERIVED_50 | {"emitted": 171, "prompt_n": 900},)),
    Case("2026-powershell.log", (A | A_CURVE | DERIVED_50,)),
    Case(
        "2026-steps-restored.log",
        (
            {"drafted": 28, "accepted": 15, "restored": 1, "step_accepted": (3, 5, 0, 2, 1, 4)}
            | {"survival_counts": (5, 4, 3, 2, 1)},
        ),
    ),
    Case(
        "ik-llama.log",
        (
            A | UNKNOWN_STEPS | {"emitted": 171, "prompt_n": 756, "cache_n": 450, "depth": 1206},
            A | {"spec_type": "mtp", "steps": Known(50, 50, "printed")},
        ),
    ),
    Case(
        "vllm-v1.log",
        (
            A | UNKNOWN_STEPS | {"scope": "window", "rate": 0.606},
            A | A_CURVE | DERIVED_50 | {"mean_length": 3.4},
            C | C_CURVE | DERIVED_40,
        ),
    ),
    Case("vllm-v0.log", (A | UNKNOWN_STEPS | {"scope": "unknown", "n_max": Known(4, 4, "printed")},)),
    Case(
        "metrics-llama.txt",
        (B | {"steps": Known(64, 64, "printed"), "survival_counts": (52, 43, 35, 29, 22), "scope": "cumulative"},),
    ),
    Case(
        "metrics-vllm.txt",
        (
            A | A_CURVE | {"server": 'vllm engine="0",model_name="m"'},
            C | C_CURVE | {"server": 'vllm engine="1",model_name="m"'},
        ),
    ),
    Case("timings-pasted.txt", (A | UNKNOWN_STEPS | {"depth": 300, "cache_n": 64, "emitted": 171},)),
    Case(
        "timings-stream.txt",
        (
            {"drafted": 12, "accepted": 6, "step_drafted": (4, 4, 4), "step_accepted": (2, 0, 4)}
            | {"steps": Known(3, 3, "derived"), "emitted": 11},
        ),
    ),
    Case(
        "speed-bench.json",
        (
            A | UNKNOWN_STEPS | {"scope": "request", "label": "coding", "emitted": 171},
            C | {"scope": "request", "label": "coding"},
            B | {"scope": "conversation", "label": "<b>writing</b>\N{REPLACEMENT CHARACTER}[31m"},
        ),
    ),
    Case("quoted.log", ()),
)  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_an_excerpt_gives_its_reports(excerpt, case: Case) -> None:
    readings = sorted(excerpt(case.name).readings, key=lambda reading: reading.line)
    seen = [
        {name: getattr(reading, name) for name in want} for reading, want in zip(readings, case.reports, strict=False)
    ]
    assert seen == list(case.reports)
    assert len(readings) == len(case.reports)
    assert all(reading.fit for reading in readings)


def test_the_bundled_servers_log_stream_and_metrics_say_the_same(excerpt) -> None:
    log = [r for r in excerpt("bundled-dspark.log").readings if r.scope == "request"]
    assert [r.steps for r in log] == [Known(steps, steps, "derived") for steps in (22, 24, 37, 10)]
    assert [r.depth for r in log] == [22, 21, 7, 22]
    (metrics,) = excerpt("bundled-dspark-metrics.txt").readings
    assert metrics.steps.value == sum(r.steps.value for r in log)
    assert metrics.survival_counts == tuple(map(sum, zip(*(r.survival_counts for r in log), strict=True)))
    (stream,) = excerpt("bundled-dspark-stream.txt").readings
    assert (stream.step_drafted, stream.step_accepted) == (log[-1].step_drafted, log[-1].step_accepted)


def test_at_ordinary_verbosity_the_steps_of_the_bundled_server_follow_from_the_mean(excerpt) -> None:
    readings = excerpt("bundled-ngram.log").readings
    assert [(r.accepted, r.drafted, r.steps.value) for r in readings] == [
        (5, 45, 7),
        (17, 23, 4),
        (30, 48, 7),
        (14, 29, 4),
    ]


def test_the_start_of_a_server_says_what_it_was_told(excerpt) -> None:
    whole = excerpt("2026-10-whole-life.log").setup("2026-10-whole-life.log", "1")
    assert (whole.build, whole.commit, whole.spec_types, whole.n_max, whole.p_min) == (
        10480,
        "0c1e570",
        ("draft-dspark",),
        5,  # clamped from 8
        0.0,
    )
    assert whole.whole
    assert not excerpt("2026-rotated.log").setup("2026-rotated.log", "1").whole


def test_benchmarks_of_speed_say_nothing_of_acceptance(excerpt) -> None:
    found = excerpt("llama-bench.json", "llama-bench.jsonl")
    assert found.readings == ()
    assert [(s.test, s.per_s, s.repeats) for s in found.speeds] == [
        ("pp512", 640.25, 3),
        ("tg128 @ d4096", 51.5, 3),
        ("pp512", 640.25, 3),
        ("pp64+tg16", 99.5, 3),
    ]


def test_two_servers_in_one_file_are_seen(excerpt) -> None:
    assert excerpt("2026-two-servers-mixed.log").setup("2026-two-servers-mixed.log", "1").mixed == 2
    assert excerpt("2026-rotated.log").setup("2026-rotated.log", "2").mixed == 0


def test_what_cannot_be_is_kept_and_enters_nothing(excerpt) -> None:
    found = excerpt("impossible.log")
    problems = {reading.line: reading.problems for reading in found.readings}
    assert problems[1] == ("140 accepted of 100 drafted", "an acceptance of 1.4")
    assert problems[2][-1] == "a count or time of -5"
    assert problems[3] == ("a rate of 0.9 where 50 of 100 is 0.50000",)
    assert problems[4] == ("an acceptance of nan",)
    assert problems[5] == ("a mean accepted length of 900",)
    assert problems[6] == ("a position's acceptance outside 0 to 1",)
    assert problems[8] == ("a count or time of 2e+15",)
    assert [(t.reports, t.refused, t.drafted) for t in found.totals] == [(7, 7, 0)]


def test_printed_speeds_are_read_of_a_server_without_a_drafter(excerpt) -> None:
    found = excerpt("bundled-raw.log")
    assert [(r.prompt_per_s, r.predicted_per_s) for r in found.readings] == [
        (160.46, 89.0), (161.17, 85.24), (179.28, 84.03), (180.6, 70.95),
    ]  # fmt: skip
    (rate,) = all_estimates(found)
    spent = [reading.predicted_ms for reading in found.readings]
    pooled = sum(r.predicted_per_s * ms for r, ms in zip(found.readings, spent, strict=True)) / sum(spent)
    assert (rate.meaning, round(rate.interval.estimate, 6)) == ("decode rate", round(pooled, 6))
    assert rate.interval.low is not None


def test_printed_speeds_are_read_of_timings(excerpt) -> None:
    (reading,) = excerpt("timings-pasted.txt").readings
    assert (reading.prompt_per_s, reading.predicted_per_s) == (None, 154.2)


def steps_from(found) -> str:
    (why,) = {fact.why for _, fact in all_facts(found) if fact.quantity == "verification steps"}
    return why


def test_where_the_number_of_steps_comes_from_names_only_what_was_printed(excerpt) -> None:
    assert steps_from(excerpt("timings-stream.txt")) == "what the counts grew by from one streamed token to the next"
    assert steps_from(excerpt("bundled-ordinary.log")).endswith("the printed mean lengths and their rounding")
    assert "mean lengths and curves" in steps_from(excerpt("bundled-dspark.log"))


def test_a_message_that_ends_without_its_line_hides_no_report(text) -> None:
    unended = "0.02.615.041 D No parser definition detected, assuming pure content parser."
    head = "I slot print_timing: id  0 | task 3 |"
    lines = [
        f"0.02.615.046 {head}        eval time =     100.00 ms /    20 tokens\n",
        f"0.02.615.060 {head} draft acceptance = 0.50000 (    5 accepted /    10 generated)\n",
    ]
    (reading,) = text(unended.join(["", *lines])).readings
    assert (reading.accepted, reading.drafted, reading.emitted) == (5, 10, 20)
    (reading,) = text(unended + unended.join(lines)).readings
    assert (reading.accepted, reading.drafted, reading.task) == (5, 10, 3)
