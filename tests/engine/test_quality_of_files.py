"""Perplexity beside a reference, on the real tool and the real target."""

import pytest

from analysis.measure.corpus import Corpus
from analysis.measure.exact.perplexity import STORED
from analysis.measure.quality import measure_quality
from analysis.records import Problem

pytestmark = pytest.mark.engine


def test_a_file_beside_itself_does_not_lose(local_target):
    found = measure_quality(local_target, local_target, Corpus.standard_library(), context=64, chunks=6)
    # The tool keeps the reference's logits in 16 bits, so that even a file differs from itself in the third decimal.
    assert found.quality.ratio[0] == pytest.approx(1, abs=STORED)
    assert found.quality.verdict() != "loses"
    assert found.quality.same_top[0] > 95
    assert found.reference.sha256 == found.changed.sha256
    assert found.engine.commit


def test_too_little_text_is_said_at_once(local_target):
    with pytest.raises(Problem, match="2 chunks of 64 tokens are too few"):
        measure_quality(local_target, local_target, Corpus.standard_library(), context=64, chunks=2)
