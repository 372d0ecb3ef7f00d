"""Logs of two older servers that were built and run for this, held against what each of their responses said.

`llama-server` from the source distributions of llama-cpp-python 0.3.8 (March 2025) and 0.3.16 (August 2025), two slots,
SmolLM2-135M-Instruct Q4_1 with its own Q3_K_M file as drafter, `--draft-max 8 --draft-min 1 --draft-p-min 0.4`; six
requests one after the other, then up to two at a time. Of the logs only lines about the models' files and contexts
were left out, and the folders of the files.
"""

import pandas as pd
import pytest

from analysis.ingest.frames import all_estimates, all_facts, report_row
from analysis.ingest.gather import Ingested, Totals
from analysis.ingest.model import Known

# From the `timings` of each response, in the order of the requests: slot, accepted and drafted tokens, generated ones,
# prompt tokens evaluated, milliseconds for the prompt and for the reply.
RESPONSES = {
    "2025-03-built.log": [
        (0, None, None, 48, 7, 11.086, 559.35),
        (1, None, None, 64, 7, 10.546, 538.226),
        (0, None, None, 80, 11, 14.191, 594.064),
        (1, None, None, 96, 7, 11.864, 1015.219),
        (0, None, None, 112, 11, 13.283, 842.901),
        (1, None, None, 67, 3, 9.763, 648.84),
        (0, None, None, 144, 14, 14.448, 2615.449),
        (1, None, None, 160, 14, 16.002, 2500.7),
        (1, None, None, 176, 22, 24.612, 2218.939),
        (0, None, None, 192, 14, 18.419, 5419.429),
        (1, None, None, 208, 22, 25.073, 3181.437),
        (1, None, None, 107, 6, 12.427, 1139.264),
    ],
    "2025-08-built.log": [
        (1, 26, 65, 48, 7, 12.753, 575.784),
        (0, 37, 51, 64, 7, 13.522, 565.307),
        (1, 58, 68, 80, 11, 15.997, 650.149),
        (0, 38, 110, 96, 7, 13.27, 1261.835),
        (1, 86, 87, 112, 11, 17.124, 833.348),
        (0, 56, 84, 102, 3, 10.502, 1001.971),
        (1, 90, 165, 144, 14, 28.271, 2990.045),
        (0, 108, 136, 160, 14, 28.09, 2967.096),
        (0, 130, 160, 176, 22, 26.223, 2401.434),
        (1, 103, 184, 192, 14, 26.276, 5047.877),
        (0, 160, 172, 208, 22, 32.249, 2751.631),
        (1, 53, 64, 95, 6, 13.708, 914.184),
    ],
}
COLUMNS = ["slot", "accepted", "drafted", "emitted", "prompt_n", "prompt_ms", "predicted_ms"]


def table(ingested: Ingested) -> pd.DataFrame:
    return pd.DataFrame(map(report_row, ingested.readings))


def total(ingested: Ingested) -> Totals:
    (totals,) = ingested.totals
    return totals


@pytest.mark.parametrize("name", RESPONSES)
def test_every_request_is_what_its_response_said(excerpt, name: str) -> None:
    # Two requests at a time: the log has them in the order of their ends.
    order = ["prompt_n", "emitted"]
    said = pd.DataFrame(RESPONSES[name], columns=COLUMNS).sort_values(order, ignore_index=True)
    read = table(excerpt(name))[COLUMNS].sort_values(order, ignore_index=True)
    pd.testing.assert_frame_equal(read, said, check_dtype=False, atol=0.0051, rtol=0)  # the log has two decimals


@pytest.mark.parametrize("name", RESPONSES)
def test_nothing_was_reused_and_the_depth_is_the_prompt(excerpt, name: str) -> None:
    reports = table(excerpt(name))
    assert set(reports["cache_n"]) == {0}
    assert list(reports["depth"]) == list(reports["prompt_n"])
    assert set(reports["problems"]) == {""}
    assert set(reports["server"]) == {"1"}


def test_of_august_2025_acceptance_is_known_and_its_steps_are_not(excerpt) -> None:
    found = excerpt("2025-08-built.log")
    totals = total(found)
    assert (totals.reports, totals.drafting, totals.refused) == (12, 12, 0)
    assert (totals.accepted, totals.drafted, totals.emitted) == (945, 1346, 1477)
    assert totals.steps == Known()
    acceptances = [one for one in all_estimates(found) if one.meaning != "decode rate"]
    assert [(one.meaning, one.successes, one.trials) for one in acceptances] == [("aggregate", 945, 1346)]


def test_of_march_2025_no_draft_is_known_though_all_were_made(excerpt) -> None:
    found = excerpt("2025-03-built.log")
    totals = total(found)
    assert (totals.reports, totals.drafting, totals.emitted) == (12, 0, 1454)
    assert {one.meaning for one in all_estimates(found)} == {"decode rate"}
    unknown = {fact.quantity for _, fact in all_facts(found) if fact.how == "unknown"}
    assert {"drafted tokens", "accepted tokens", "verification steps"} <= unknown
