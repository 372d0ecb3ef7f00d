"""Which builds of llama-server are known to count rightly."""

import pytest

from analysis.records import Engine
from analysis.records.builds import counts_soundly


@pytest.mark.parametrize(
    ("build", "commit", "verdict"),
    [
        (1, "0c1e570", "sound"),
        (None, "000547513f15", "sound"),
        (10210, "", "sound"),
        (10209, "abcdef0", "faulty"),
        (1, "abcdef0", "unknown"),
        (None, "", "unknown"),
    ],
    ids=["the bundled commit", "the repair itself", "the first repaired build", "the last faulty build",
         "a build without history", "a build without a number"],
)  # fmt: skip
def test_a_build_is_judged_by_commit_and_number(build, commit, verdict):
    assert counts_soundly(Engine(source="path", version="1.0", build=build, commit=commit)) == verdict
