"""The published tables: valid by three readers, and bad rows stop with file, row and reason."""

import contextlib
import csv
import json
from fractions import Fraction

import frictionless
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from analysis.evidence import frames, published, tables
from analysis.evidence.audit import audit
from analysis.evidence.claims import claims
from analysis.evidence.corrections import corrections
from analysis.records import Problem

TABLES = ("values", "claims", "uncovered", "constants", "corrections", "models")


def rewrite(folder, table, **changes):
    """Change cells of one row of a copied table: a number with one formula, else the first."""
    path = folder / f"{table}.csv"
    with path.open(encoding="utf-8", newline="") as file:
        lines = list(csv.DictReader(file))
    next((line for line in lines if line.get("id") == "a_c_ceiling"), lines[0]).update(changes)
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(lines[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(lines)


def test_the_data_package_is_valid():
    report = frictionless.validate(str(tables.published_dir() / "datapackage.json"))
    assert report.valid, report.flatten(["title", "rowNumber", "fieldName", "note"])
    assert [task.name for task in report.tasks] == list(TABLES)


def test_every_table_of_the_folder_is_described():
    package = json.loads((tables.published_dir() / "datapackage.json").read_text())
    files = {path.name for path in tables.published_dir().glob("*.csv")}
    assert files == {resource["path"] for resource in package["resources"]}
    assert all(field["description"] for r in package["resources"] for field in r["schema"]["fields"] if field["name"])


def test_values_are_frames_with_types_and_bounds():
    frame = frames.measured()
    assert len(frame) == len(published.rows())
    row = frame.loc["b_85k_hip_raw"]
    assert (row["value"], row["unit"], row["depth_tokens"], row["drafter_file"]) == (9.05, "t/s", 84829, "none")
    assert (row["least"], row["most"]) == (9.045, 9.055)
    assert (frame["least"] <= frame["centre"]).all()
    assert (frame["centre"] <= frame["most"]).all()


def test_other_tables_are_frames():
    assert len(frames.audited()) == len(audit())
    assert frames.verdicts().to_numpy().sum() == len(audit())
    assert len(frames.corrections()) == len(corrections())
    assert len(frames.validated("uncovered")) == len(tables.read("uncovered"))


def test_factors_that_differ_between_rows():
    rows = published.rows()
    assert published.factors_that_differ(rows["b_12k_raw"], rows["b_12k_hip_raw"]) == ("build",)
    assert "context_size" in published.factors_that_differ(rows["b_25k_raw"], rows["b_40k_raw"])


def test_constants_are_exact():
    assert published.constants()["bpw_q2_k"].interval.centre == Fraction(21, 8)


@pytest.mark.parametrize(
    ("table", "changes", "reason"),
    [
        ("values", {"unit": "furlong"}, "unit 'furlong' is unknown"),
        ("values", {"id": ""}, "id is empty"),
        ("values", {"id": "a_block_size"}, "id 'a_block_size' is there already"),
        ("values", {"card": "C"}, "card 'C' is unknown"),
        ("values", {"value": "10.8"}, "10.8 is not what '10.9 GB' says"),
        ("values", {"value": "ten"}, "value 'ten' is not a number"),
        ("values", {"value": "", "low": "11", "high": "10"}, "the interval 11 to 10 is upside down"),
        ("values", {"low": "10", "high": "11"}, "either a value or both"),
        ("values", {"value": "", "low": "10"}, "either a value or both"),
        ("values", {"printed": "12 GB"}, "'12 GB' is not in the quote"),
        ("values", {"quote": "word " * 26}, "more than 25 words"),
        ("values", {"printed": "DSV4"}, "not a printed number"),
        ("values", {"depth": "deep"}, "does not look like"),
        ("claims", {"formula": "a_nothing / 2"}, "the formula names 'a_nothing', which no row has"),
        ("claims", {"formula": "import os"}, "cannot be read"),
        ("claims", {"formula": "open(a_block_size)"}, "uses 'open"),
        ("claims", {"formula": ""}, "needs a formula"),
        ("claims", {"kind": "guess"}, "kind 'guess' is unknown"),
        ("claims", {"kind": "range"}, "a range has a formula for either end"),
        ("claims", {"kind": "word", "formula": "1"}, "a word's formula must be a predicate"),
        ("claims", {"formula": "above(1, 0)"}, "must not be a predicate"),
        ("claims", {"formula": "1 / 0"}, "holds zero"),
        ("corrections", {"applies_to": "a_nothing"}, "neither a row nor a claim"),
        ("corrections", {"kind": "later fact"}, "needs a source"),
        ("corrections", {"quote": ""}, "needs the card and a quote"),
    ],
)
def test_a_bad_row_stops_with_file_row_and_reason(copied, table, changes, reason):
    rewrite(copied, table, **changes)
    said = refusal(copied)
    assert said is not None
    assert reason in said
    assert said.startswith(f"{table}.csv:")


def test_pandera_refuses_the_same_bad_cell(copied):
    rewrite(copied, "values", unit="furlong")
    with pytest.raises(Problem, match=r"values\.csv:2: unit 'furlong'"):
        frames.measured(copied)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "columns are"),
        (b"id,card\n", "columns are"),
        (b"\xff\xfe", "cannot be read"),
        (b"id,value,per,unit,what,source\na,1\n", "2 cells"),
        (b'id,value,per,unit,what,source\n"a,1,,bits,w,s\n', "unexpected end of data"),
    ],
)
def test_a_broken_file_is_a_problem(copied, content, reason):
    (copied / "constants.csv").write_bytes(content)
    with pytest.raises(Problem, match=reason):
        audit(folder=copied)


def test_a_missing_table_is_a_problem(copied):
    (copied / "claims.csv").unlink()
    with pytest.raises(Problem, match="missing"):
        audit(folder=copied)


cell = st.text(max_size=12) | st.sampled_from(
    ["A", "B", "t/s", "1", "-1", "1e9", "nan", "a_x", "~5", "0.5–0.4", "\r\n", '"', ","]
)


@given(st.dictionaries(st.sampled_from(list(claims()["a_c_ceiling"].line.cells)), cell, min_size=1, max_size=4))
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_cells_in_a_claim_are_read_or_refused(copied, cells):
    fuzz(copied, "claims", cells)


@given(st.dictionaries(st.sampled_from(list(published.rows()["a_vk_raw"].line.cells)), cell, min_size=1, max_size=4))
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_cells_in_a_row_are_read_or_refused(copied, cells):
    fuzz(copied, "values", cells)


def fuzz(folder, table, cells):
    path = folder / f"{table}.csv"
    path.write_text((tables.published_dir() / path.name).read_text(encoding="utf-8"), encoding="utf-8")
    rewrite(folder, table, **cells)
    claims.cache_clear()
    published.rows.cache_clear()
    said = refusal(folder)
    assert said is None or said.startswith(("values.csv:", "claims.csv:", "corrections.csv:"))


def refusal(folder) -> str | None:
    """Return why the tables of a folder are refused, None where they are not."""
    try:
        audit(folder=folder)
        corrections(folder=folder)
    except Problem as problem:
        return str(problem)
    return None


@given(st.binary(max_size=200))
@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_bytes_are_read_or_refused(copied, content):
    (copied / "uncovered.csv").write_bytes(content)
    with contextlib.suppress(Problem):
        assert tables.read("uncovered", copied) == []
