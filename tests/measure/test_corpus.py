import gzip
import tracemalloc
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.measure.access import corpus_of
from analysis.measure.corpus import Corpus, Text
from analysis.records import Problem

names = st.text("abc/.", min_size=1, max_size=6)
texts = st.lists(
    st.builds(Text, name=names, kind=st.sampled_from(["code", "prose"]), content=st.text(max_size=8)),
    max_size=6,
    unique_by=lambda text: (text.kind, text.name),
)


def test_the_standard_library_is_code_and_its_help_topics_are_prose(library):
    code = {text.name for text in library.of_kind("code")}
    prose = {text.name for text in library.of_kind("prose")}
    assert {"argparse.py", "email/message.py"} <= code
    assert {"topics/assignment", "topics/try"} <= prose
    assert library.holds("class ArgumentParser(")


def test_tests_installed_packages_and_build_data_are_no_library_text(library):
    parts = {part for text in library.texts for part in text.name.split("/")}
    assert parts.isdisjoint({"test", "tests", "idlelib", "site-packages", "dist-packages", "ensurepip"})
    assert not any(part.startswith("_sysconfigdata") for part in parts)


def test_a_directory_gives_code_and_prose_by_suffix(tmp_path):
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "tool.py").write_text("x = 1\n")
    (tmp_path / "README.md").write_text("Some words.\n")
    (tmp_path / "data.csv").write_text("1,2\n")
    (tmp_path / "empty.py").write_text("\n")
    for hidden in (".git", "__pycache__", "node_modules"):
        (tmp_path / hidden).mkdir()
        (tmp_path / hidden / "hook.py").write_text("y = 2\n")
    corpus = Corpus.from_directory(tmp_path)
    assert [(text.kind, text.name) for text in corpus.texts] == [("code", "inner/tool.py"), ("prose", "README.md")]
    assert str(tmp_path.parent) not in corpus.title


def test_the_hash_is_of_names_and_contents(tmp_path):
    one = Corpus.of("one", [Text("a.py", "code", "x"), Text("b.py", "code", "y")])
    assert one.sha256 != Corpus.of("one", [Text("a.py", "code", "y"), Text("b.py", "code", "x")]).sha256
    assert one.sha256 != Corpus.of("one", [Text("a.py", "code", "xy"), Text("b.py", "code", "")]).sha256
    assert one.sha256 != Corpus.of("one", [Text("a.py", "prose", "x"), Text("b.py", "code", "y")]).sha256


@given(texts, st.randoms())
def test_the_order_in_which_files_are_found_changes_nothing(items, random):
    mixed = list(items)
    random.shuffle(mixed)
    assert Corpus.of("corpus", items) == Corpus.of("corpus", mixed)


@pytest.mark.parametrize(
    ("files", "complaint"),
    [
        ({}, "holds 0 files of text and no code"),
        ({"a.md": b"words"}, "holds 1 files of text and no code"),
        ({"a.py": b"\n"}, "no code"),
        ({"a.py": b"name = '\xe9'"}, "cannot be read as text"),
    ],
)
def test_a_directory_without_usable_code_is_refused_in_one_line(tmp_path, files, complaint):
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    with pytest.raises(Problem, match=complaint) as problem:
        Corpus.from_directory(tmp_path)
    assert "\n" not in str(problem.value)


def test_a_missing_directory_is_named(tmp_path):
    with pytest.raises(Problem, match="no directory .*nowhere"):
        Corpus.from_directory(tmp_path / "nowhere")


def test_a_saved_corpus_is_the_same_corpus_and_always_the_same_file(library, tmp_path):
    for name in ("one.json.gz", "other.json.gz"):
        library.save(tmp_path / name)
    assert Corpus.load(tmp_path / "one.json.gz") == library
    assert (tmp_path / "one.json.gz").read_bytes() == (tmp_path / "other.json.gz").read_bytes()
    assert corpus_of(str(tmp_path / "one.json.gz")).sha256 == library.sha256


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: data[:-9],
        lambda data: b"text, not gzip",
        lambda data: gzip.compress(b"{}"),
        lambda data: gzip.compress(b'{"title": "t", "sha256": "0", "texts": [["a"]]}'),
        lambda data: gzip.compress(b'{"title": "t", "sha256": "0", "texts": 5}'),
        lambda data: gzip.compress(b"[]"),
        lambda data: gzip.compress(b"[" * 100_000),
        lambda data: gzip.compress(gzip.decompress(data).replace(b"x = 1", b"x = 2")),
    ],
)
def test_a_damaged_corpus_is_refused(tmp_path, damage):
    file = tmp_path / "text.json.gz"
    Corpus.of("made up", [Text("a.py", "code", "x = 1")]).save(file)
    file.write_bytes(damage(file.read_bytes()))
    with pytest.raises(Problem, match=r"text\.json\.gz"):
        Corpus.load(file)


def test_a_file_that_unpacks_to_more_than_a_corpus_may_is_refused_before_it_fills_the_memory(tmp_path, monkeypatch):
    monkeypatch.setattr("analysis.measure.corpus.MAX_SAVED", 1 << 20)
    file = tmp_path / "bomb.json.gz"
    file.write_bytes(gzip.compress(b" " * (64 << 20)))
    tracemalloc.start()
    with pytest.raises(Problem, match=r"bomb\.json\.gz unpacks to more than 1,048,576 bytes; expected a file that"):
        Corpus.load(file)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 8 << 20


def test_a_corpus_that_could_not_be_loaded_again_is_not_saved(library, tmp_path, monkeypatch):
    monkeypatch.setattr("analysis.measure.corpus.MAX_SAVED", 1 << 20)
    with pytest.raises(Problem, match="at most 1,048,576"):
        library.save(tmp_path / "text.json.gz")
    assert not any(tmp_path.iterdir())


@given(texts)
def test_any_corpus_comes_back(written):
    with TemporaryDirectory() as folder:
        corpus = Corpus.of("made up", written)
        corpus.save(Path(folder) / "text.json.gz")
        assert Corpus.load(Path(folder) / "text.json.gz") == corpus
