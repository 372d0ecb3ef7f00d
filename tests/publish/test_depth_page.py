"""Chapter 04 on a recorded run: what gates refused, by the kind of what they saw."""

from collections import Counter

import pytest

from analysis.publish.chapters import depth_regime


@pytest.fixture(scope="module")
def page():
    return depth_regime(run="smollm2-ngram-quick-f5d417")


def test_every_kind_of_refused_text_has_its_own_row_and_count(page):
    seen = Counter(f.saw.split(":")[0] for f in page.study.findings if f.gate == "text-of-its-regime")
    rows = [line.strip("| ").split(" | ") for line in page.refused_table().text.splitlines()]
    shown = {row[3].split(":")[0]: int(row[2]) for row in rows if row[0] == "text-of-its-regime"}
    assert shown == seen
    assert len(shown) > 1


def test_numbers_do_not_make_a_kind(page):
    loads = [line for line in page.refused_table().text.splitlines() if "on 2 cores at its start" in line]
    assert len(loads) <= 1


@pytest.mark.parametrize("run", ["smollm2-ngram-quick-2a2692", "smollm2-dspark-reference-15068b"])
def test_samples_of_other_legs_are_left_to_the_chapter_that_shows_them(run):
    page = depth_regime(run=run)
    legs = {str(sample.index): sample.leg for sample in page.study.samples}
    refused = [f for f in page.study.findings if f.gate == "text-of-its-regime"]
    rows = [line.strip("| ").split(" | ") for line in page.refused_table().text.splitlines()]
    shown = sum(int(row[2]) for row in rows if row[0] == "text-of-its-regime")
    assert shown == sum(legs[f.where.id] == "drafted" for f in refused) < len(refused)
