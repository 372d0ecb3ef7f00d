"""Gates put to logs: what can be judged is, what cannot says what it would need, and nothing is left out."""

from dataclasses import replace

from analysis.gates.checklist import GATES, LATE_GATES
from analysis.ingest.checks import check, mixed


def levels(ingested) -> dict[str, str]:
    return {found.gate: found.level for found in check(ingested)}


def test_every_gate_of_the_book_has_an_answer(excerpt) -> None:
    findings = check(excerpt("2025-04-rate.log"))
    assert {found.gate for found in findings} == {gate.name for gate in (*GATES, *LATE_GATES)}
    assert all(found.saw for found in findings)


def test_the_bundled_servers_log_passes_what_a_log_can(excerpt) -> None:
    found = levels(excerpt("bundled-dspark.log"))
    for gate in ("sample-counters-agree", "drafts-happened", "drafts-within-limit", "partial-acceptance-seen"):
        assert found[gate] == "pass", gate
    assert found["counters-sound"] == "pass"
    assert found["text-of-its-regime"] == "unchecked"


def test_a_build_that_counts_replays_is_refused_for_its_number_and_by_its_own_counters(excerpt) -> None:
    findings = {found.gate: found for found in check(excerpt("2026-replays-counted.log"))}
    assert findings["counters-sound"].level == "refuse"
    assert findings["counters-agree"].level == "refuse"
    assert findings["counters-agree"].saw == ("requests: 96 of 96 accepted; the implementations: 110 of 190")


def test_counters_are_compared_only_where_the_whole_life_is_in_the_file(excerpt) -> None:
    whole = {found.gate: found for found in check(excerpt("2026-10-whole-life.log"))}
    assert whole["counters-agree"].level == "pass"
    part = {found.gate: found for found in check(excerpt("2026-06-long-names.log"))}
    assert (part["counters-agree"].level, part["counters-agree"].saw) == (
        "unchecked",
        "the life's beginning is needed to compare",
    )


def of_gate(ingested, gate: str) -> list[tuple[str, str]]:
    return [(found.level, found.saw) for found in check(ingested) if found.gate == gate]


def test_log_and_page_are_compared_where_somebody_says_that_they_are_of_one_server(excerpt) -> None:
    found = excerpt("bundled-ordinary.log", "bundled-ordinary-metrics.txt")
    ((level, saw),) = of_gate(found, "counters-agree")
    assert (level, "--same-server" in saw) == ("unchecked", True)
    ((level, saw),) = of_gate(replace(found, same_server=True), "counters-agree")
    assert (level, saw) == ("pass", "requests: 164 of 419 accepted; the page: 164 of 419")


def test_a_page_of_another_server_disagrees(excerpt) -> None:
    found = replace(excerpt("bundled-ordinary.log", "bundled-dspark-metrics.txt"), same_server=True)
    ((level, saw),) = of_gate(found, "counters-agree")
    assert level == "refuse"
    assert saw.startswith("requests: 164 of 419 accepted; the page: 125 of 455")


def test_a_page_without_a_log_and_a_log_without_its_start_cannot_be_compared(excerpt, text) -> None:
    lone = replace(excerpt("bundled-ordinary-metrics.txt", "metrics-vllm.txt"), same_server=True)
    assert of_gate(lone, "counters-agree")[0][0] == "unchecked"
    part = replace(excerpt("2026-06-long-names.log", "bundled-ordinary-metrics.txt"), same_server=True)
    assert {level for level, _ in of_gate(part, "counters-agree")} == {"unchecked"}


def test_why_a_build_is_not_known_says_whether_the_start_is_there(excerpt, text) -> None:
    assert of_gate(excerpt("bundled-ordinary.log"), "counters-sound") == [
        ("unchecked", "the server's start is in the file without a known build; llama-server prints it with `-lv 4`")
    ]
    line = "slot print_timing: id  0 | task 0 | draft acceptance = 0.50000 (  3 accepted /  6 generated)\n"
    ((level, saw),) = of_gate(text(line), "counters-sound")
    assert (level, saw.startswith("no server's start is in the file")) == ("unchecked", True)


def test_a_known_limit_without_steps_is_not_called_unknown(excerpt) -> None:
    saw = "n_max is 5, and no single step is in the file"
    assert of_gate(excerpt("bundled-ordinary.log"), "drafts-within-limit") == [("unchecked", saw)]


def test_a_server_without_a_drafter_is_not_warned_about(excerpt) -> None:
    found = excerpt("bundled-raw.log")
    assert "warn" not in levels(found).values()
    assert of_gate(found, "drafts-happened")[0][1].endswith("the server's start names no drafter")


def test_a_server_that_was_told_to_draft_and_did_not_is_refused(text) -> None:
    start = "common_speculative_impl: adding speculative implementation 'draft-simple'\n"
    line = "slot print_timing: id  0 | task 0 |        eval time =  100.00 ms /  10 tokens ( 1 ms per token)\n"
    assert levels(text(start + line))["drafts-happened"] == "refuse"
    assert levels(text(line))["drafts-happened"] == "unchecked"


def test_drafts_longer_than_n_max_are_refused(text) -> None:
    start = "common_speculative_impl: - n_max=2, n_min=0, p_min=0.00\n"
    steps = "slot operator(): id  0 | task 0 | accepted  1/ 3 draft tokens\n"
    total = "slot print_timing: id  0 | task 0 | draft acceptance = 0.33333 (1 accepted / 3 generated)\n"
    assert levels(text(start + steps + total))["drafts-within-limit"] == "refuse"


def test_drafts_accepted_whole_or_not_at_all_are_warned_about(text) -> None:
    line = "draft acceptance = 0.50000 (  60 accepted /   120 generated), mean len =  2.00\n"
    found = text(line.replace("draft", "slot print_timing: id 0 | task 0 | draft", 1) + (
        "slot print_timing: id 0 | task 0 |      acc per pos = (0.500, 0.500)\n"
    ))  # fmt: skip
    assert levels(found)["partial-acceptance-seen"] == "warn"


def test_more_accepted_than_emitted_is_refused(text) -> None:
    lines = (
        "slot print_timing: id  0 | task 0 |        eval time =  100.00 ms /  40 tokens (1 ms per token)\n"
        "slot print_timing: id  0 | task 0 | draft acceptance = 0.60606 (  120 accepted /   198 generated), "
        "mean len =  3.40\n"
        "slot print_timing: id  0 | task 0 |      acc per pos = (0.820, 0.660, 0.520, 0.400)\n"
    )
    assert levels(text(lines))["emitted-adds-up"] == "refuse"


def many(text, rates: list[int]):
    line = "slot print_timing: id 0 | task {n} | draft acceptance = {rate:.5f} ( {a} accepted / 100 generated)\n"
    return levels(text("".join(line.format(n=n, a=a, rate=a / 100) for n, a in enumerate(rates))))


def test_acceptance_that_falls_over_the_requests_of_a_server_is_warned_about(text) -> None:
    assert many(text, [70, 72, 71, 60, 55, 58, 40, 41, 39])["acceptance-steady"] == "warn"
    assert many(text, [70, 40, 55, 60, 42, 66, 68, 43, 57])["acceptance-steady"] == "pass"
    assert many(text, [70, 72, 30, 31])["acceptance-steady"] == "unchecked"


def test_sums_over_two_servers_in_one_file_are_called_meaningless(excerpt) -> None:
    (said,) = mixed(excerpt("2026-two-servers-mixed.log"))
    assert said == "2026-two-servers-mixed.log: the clock of 1 goes back 2 times without a restart"
    assert mixed(excerpt("2026-rotated.log")) == []
