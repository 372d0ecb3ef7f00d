"""Perplexity beside a reference, on the real tool and the real target."""

import pytest

from analysis.measure.corpus import Corpus
from analysis.measure.quality import measure_quality

pytestmark = pytest.mark.engine


def test_a_file_beside_itself_keeps_its_quality(local_target):
    found = measure_quality(local_target, local_target, Corpus.standard_library(), context=64, chunks=2)
    assert found.quality.ratio[0] == pytest.approx(1, abs=1e-3)
    assert found.quality.verdict() == "keeps"
    assert found.reference.sha256 == found.changed.sha256
    assert found.engine.commit
