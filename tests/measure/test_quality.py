"""What a changed file costs in quality: the record, its text and the page's table; tests/engine runs the tool."""

from dataclasses import replace

import pytest

from analysis.measure.corpus import Corpus, Text
from analysis.measure.exact.perplexity import Quality
from analysis.measure.knee import RecordedSweep
from analysis.measure.quality import PASSAGE, RecordedQuality, load_quality, passages, save_quality
from analysis.publish.chapters.sweeps import SweepsPage
from analysis.records import Engine, FileHash, Problem

FOUND = RecordedQuality(
    reference=FileHash(path="$CACHE/models/one.gguf", sha256="a" * 64, size=100),
    changed=FileHash(path="$CACHE/models/other.gguf", sha256="b" * 64, size=90),
    corpus="made up",
    corpus_sha256="c" * 64,
    context=256,
    chunks=40,
    engine=Engine(source="bundled", version="1", build=1, commit="abc", backend="CPU", path="llama-server"),
    at="2026-11-29T00:00:00+00:00",
    commit="d" * 40,
    dirty=False,
    quality=Quality(
        changed=(20.5, 0.5), reference=(20.0, 0.5), ratio=(1.025, 0.002), divergence=(0.01, 0.001), same_top=(93.2, 0.3)
    ),
)


def test_a_record_comes_back(tmp_path):
    save_quality(FOUND, tmp_path / "made-q4_0.json")
    assert load_quality(tmp_path / "made-q4_0.json") == FOUND


@pytest.mark.parametrize(("content", "said"), [("{", "no record of a quality"), ("{}", "is not a valid Recorded")])
def test_what_is_no_record_is_refused(tmp_path, content, said):
    (tmp_path / "made.json").write_text(content)
    with pytest.raises(Problem, match=said):
        load_quality(tmp_path / "made.json")
    with pytest.raises(Problem, match="no record of a quality"):
        load_quality(tmp_path / "nowhere.json")


def test_code_and_prose_take_turns_and_no_long_file_says_most():
    texts = [Text(f"{i}.py", "code", f"code {i} " * 1000) for i in range(3)] + [Text("topics/a", "prose", "prose")]
    text = passages(Corpus.of("made up", texts), 10**6)
    assert len(text) < 4 * (PASSAGE + 2)
    assert text.index("code 0") < text.index("prose") < text.index("code 1")
    assert len(passages(Corpus.of("made up", texts), 50)) == 50


def test_the_page_shows_it_beside_the_speeds():
    page = SweepsPage(RecordedSweep(name="made", title="Made up", factors=()), (), (FOUND,))
    text = page.quality_table().text
    assert "other.gguf" in text
    assert "1.029" in text
    assert "loses" in text
    assert "No changed target" in replace(page, qualities=()).quality_table().text
