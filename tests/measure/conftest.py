from pathlib import Path

import pytest

from analysis.measure.corpus import Corpus
from analysis.measure.vocabulary import Vocabulary, tokenizer_of


@pytest.fixture(scope="session")
def vocabulary(local_target: Path) -> Vocabulary:
    return tokenizer_of(local_target)


@pytest.fixture(scope="session")
def library() -> Corpus:
    return Corpus.standard_library()
