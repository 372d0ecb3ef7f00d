"""Tables of what was ingested: which acceptance a number is, with its interval where there can be one."""

import json
from pathlib import Path

import pandas as pd
import pytest

from analysis.ingest.estimate import Fact
from analysis.ingest.frames import all_estimates, all_facts, tables
from analysis.ingest.gather import ingest
from analysis.ingest.write import Tables

LOGS = Path(__file__).parent / "logs"


def estimates(ingested) -> dict[tuple[str, int], object]:
    return {(one.meaning, one.position): one for one in all_estimates(ingested) if one.scope.startswith("request")}


def test_steps_that_are_shown_give_all_three_acceptances_with_intervals(excerpt) -> None:
    found = estimates(excerpt("bundled-dspark.log"))
    assert (found["aggregate", 0].successes, found["aggregate", 0].trials) == (125, 455)
    assert (found["survival", 2].successes, found["survival", 2].trials) == (33, 93)
    assert (found["conditional", 2].successes, found["conditional", 2].trials) == (33, 52)
    assert found["proposal", 5].trials < found["survival", 5].trials  # the last drafts of replies are shorter
    assert found["conditional", 2].interval.shown
    assert found["conditional", 2].interval.unit == "requests"


def test_survival_alone_limits_conditional_acceptance_from_below(excerpt) -> None:
    found = estimates(excerpt("2026-colours-crlf.log"))
    assert found["conditional", 2].relation == "at least"
    assert found["survival", 2].relation == "is"
    assert not found["survival", 2].interval.shown  # one request


def test_full_drafts_make_the_ratio_of_survivals_the_conditional_acceptance(text) -> None:
    found = estimates(text(
        "slot print_timing: id 0 | task 0 | draft acceptance = 0.60000 (120 accepted / 200 generated), mean len = 3.4\n"
        "slot print_timing: id 0 | task 0 | acc per pos = (0.820, 0.660, 0.520, 0.400)\n"
    ))  # fmt: skip
    assert found["conditional", 2].relation == "is"


def test_kinds_of_text_are_never_pooled(excerpt) -> None:
    scopes = {one.scope for one in all_estimates(excerpt("speed-bench.json"))}
    assert scopes == {"request coding", "conversation <b>writing</b>\N{REPLACEMENT CHARACTER}[31m"}


def test_intervals_of_time_are_no_prompts(excerpt) -> None:
    notes = {one.interval.note for one in all_estimates(excerpt("vllm-v1.log"))}
    assert notes == {"intervals of the server's time are no prompts"}


def test_what_is_not_known_is_said(excerpt) -> None:
    facts = {fact.quantity: fact for _, fact in all_facts(excerpt("2025-04-rate.log"))}
    assert facts["verification steps"] == Fact(
        "verification steps", "unknown", "", "neither printed nor to be worked out from what is"
    )
    assert facts["n_max"].how == facts["p_min"].how == facts["regime"].how == "unknown"
    assert facts["depth"].how == "printed"
    whole = {fact.quantity: fact.value for _, fact in all_facts(excerpt("2026-10-whole-life.log"))}
    assert (whole["n_max"], whole["depth"], whole["build"]) == ("5", "1,024", "10480 0c1e570")


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_tables_are_written_while_files_are_read(tmp_path, kind) -> None:
    folder = tmp_path / "tables with blanks ä"
    folder.mkdir()
    (folder / f"mine.{kind}").touch()  # what lies there already is not said to be written
    with Tables(folder, kind) as writer:
        found = ingest([LOGS / "bundled-dspark.log", LOGS / "speed-bench.json"], writer.add)
    written = {path.stem: path for path in writer.finish(tables(found))}
    read = pd.read_parquet if kind == "parquet" else pd.read_csv
    assert (
        {"reports", "positions", "steps", "estimates", "known", "gates", "files"}
        <= written.keys() - {"mine"}
        == written.keys()
    )
    assert len(read(written["reports"])) == len(found.readings)
    steps = read(written["steps"])
    assert steps["accepted"].sum() == 125
    assert not list(folder.glob("*.partial"))


def test_a_failed_reading_leaves_no_half_table(tmp_path, excerpt) -> None:
    reading = excerpt("vllm-v1.log").readings[0]

    def interrupted() -> None:
        with Tables(tmp_path, "csv") as writer:
            for _ in range(6000):
                writer.add(reading)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert list(tmp_path.iterdir()) == []


def test_tables_are_plain_enough_for_json(excerpt) -> None:
    for frame in tables(excerpt("bundled-dspark.log", "impossible.log")).values():
        json.dumps(frame.astype(object).where(frame.notna(), None).to_dict("records"))


def test_a_server_none_of_whose_reports_is_held_has_its_sums(monkeypatch, tmp_path) -> None:
    monkeypatch.setattr("analysis.ingest.gather.KEPT", 5)
    life = (LOGS / "bundled-ngram-twenty.log").read_bytes()
    (tmp_path / "twice.log").write_bytes(life + life)
    found = ingest([tmp_path / "twice.log"])
    assert [totals.reports for totals in found.totals] == [20, 20]
    shown = tables(found)["estimates"]
    assert set(shown["server"]) == {"1", "2"}
    assert shown["value"].notna().all()
    assert set(shown["note"]) == {"more reports than are held"}
