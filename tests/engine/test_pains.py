"""What goes wrong in public, provoked on the real server; `docs/pains.md` lists where each symptom is answered."""

import ctypes
import os
from dataclasses import replace
from pathlib import Path

import pytest

from analysis.convert.fetch import fetch
from analysis.convert.fit import check_fit
from analysis.convert.gguf import read_gguf
from analysis.convert.pairs import load_pair
from analysis.gates import Evidence, check_all
from analysis.gates.base import Where
from analysis.launch import Client, Server, ServerConfig, ServerFailed, read_host_state
from analysis.measure.study import measure_study
from analysis.measure.sweep import measure_sweep, sweep_frame
from analysis.records import Cell
from factories import make_cell, make_life, make_run, make_sample

pytestmark = pytest.mark.engine
SIZE = {"depths": [160], "regimes": ["recall"], "prompts": 2, "n_predict": 8}
FILLS = ("reused", "cold", "uncached", "restored")


@pytest.fixture
def local(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SPECBOOK_LOCAL", str(tmp_path))
    return tmp_path


def refusals(study) -> set[tuple[str, str]]:
    return {(f.gate, f.where.kind) for f in study.findings if f.level == "refuse"}


def test_row_7_a_repeated_prompt_is_drafted_from_what_was_said_before(engine, local_target):
    """A method that remembers past requests drafts a repetition far better; the gate refuses the second use."""
    config = ServerConfig(model=local_target, spec_type="ngram-mod", n_max=16, context=1024)
    with Server(engine, config) as server:
        prompt = server.client.tokenize("def parse_header(line):\n    name, value = line.split(':', 1)\n")
        first, second = (server.client.complete(prompt, n_predict=48, seed=1, cache_prompt=False) for _ in range(2))
    assert first.tokens == second.tokens
    assert second.draft_n_accepted > 2 * first.draft_n_accepted
    digest = {"prompt_sha256": "7" * 64}
    samples = [make_sample(index=0, **digest), make_sample(index=1, **digest)]
    findings = check_all(Evidence(run=make_run(), samples=samples, lives=(make_life(),)))
    refused = [f.where for f in findings if f.gate == "prompt-not-repeated" and f.level == "refuse"]
    assert refused == [Where("sample", "1")]


def test_rows_8_9_and_10_the_same_cell_by_every_way_of_filling(local: Path):
    """Reused, cold, without the prompt cache, and restored: every context is as deep as it says, or refused."""
    points = measure_sweep("smollm2-dspark", [f"fill={','.join(FILLS)}"], profile="smoke", size=SIZE, raw=False)
    for fill, point in zip(FILLS, points, strict=True):
        assert not {gate for gate, _ in refusals(point.study)} & {"depth-real", "counters-agree"}
        for sample in point.study.samples:
            assert sample.depth == 160
            assert (sample.cache_n == 0) == (fill in ("cold", "uncached"))
    frame = sweep_frame(points)
    assert list(frame[frame["quantity"] == "acceptance"]["fill"]) == list(FILLS)
    drafted = {fill: [s.prompt_id for s in point.study.samples] for fill, point in zip(FILLS, points, strict=True)}
    assert len({tuple(prompts) for prompts in drafted.values()}) == 1, "the same prompts, filled in four ways"


def test_row_8_a_restore_that_restores_nothing_is_refused(local: Path, monkeypatch: pytest.MonkeyPatch):
    slot = Client.slot

    def lie(client, number, action, *rest):
        return slot(client, number, "erase") if action == "restore" else slot(client, number, action, *rest)

    monkeypatch.setattr(Client, "slot", lie)
    study = measure_study("smollm2-ngram", profile="smoke", size=SIZE | {"fill": "restored", "prompts": 1}, raw=False)
    assert all(sample.cache_n == 0 for sample in study.samples)
    assert ("depth-real", "sample") in refusals(study)


def test_row_11_a_dspark_file_run_as_dflash_is_refused_before_it_drafts_nonsense(engine, dsv4_target, dsv4_drafter):
    fit = check_fit(read_gguf(dsv4_target), read_gguf(dsv4_drafter), spec_type="draft-dflash")
    assert [found.check for found in fit.refused] == ["speculation type"]
    accepted = {}
    for kind in ("draft-dspark", "draft-dflash"):
        config = ServerConfig(model=dsv4_target, drafter=dsv4_drafter, spec_type=kind, n_max=4, context=512)
        try:
            with Server(engine, config) as server:
                found = server.client.complete([5, 9, 40], n_predict=48, seed=1)
        except ServerFailed:
            continue  # a build that refuses the file does what it should
        accepted[kind] = sum(found.accepted) / max(sum(found.drafted), 1)
    assert accepted["draft-dspark"] > 0.3
    assert accepted.get("draft-dflash", 0.0) < accepted["draft-dspark"] / 2


@pytest.mark.parametrize("words", [(), ("--spec-type", "none")], ids=["no type", "type none"])
def test_row_12_a_drafter_that_does_not_draft_is_refused(engine, dsv4_target, dsv4_drafter, words):
    """This build takes the type from the file where none is given; told `none`, it drafts nothing and says nothing."""
    words = (*words, "--spec-draft-model", str(dsv4_drafter))
    with Server(engine, ServerConfig(model=dsv4_target, context=512, extra_args=words)) as server:
        found = server.client.complete([5, 9, 40], n_predict=12, seed=1)
    cell: Cell = make_cell(spec_type="draft-dspark", n_max=5, n_predict=12)
    measured = found.measured() | {"cache_n": 64, "prompt_n": 192}
    sample = replace(make_sample(), cell=cell.id, **measured)
    findings = check_all(Evidence(run=make_run(cells=(cell,)), samples=[sample], lives=(make_life(),)))
    refused = ("drafts-happened", "refuse") in {(f.gate, f.level) for f in findings}
    assert refused == (found.draft_n == 0)
    assert refused or "none" not in words


def test_row_27_pages_that_must_be_read_again_are_counted_and_refuse_the_server(engine, tmp_path):
    """The model's pages are taken from the server while it idles; the next request reads them from the disk."""
    model = tmp_path / "model.gguf"
    model.write_bytes(fetch(load_pair("smollm2-raw").target).read_bytes())
    with Server(engine, ServerConfig(model=model, context=512, extra_args=("--no-repack",))) as server:
        prompt = server.client.tokenize("The history of the postal service begins")
        server.client.complete(prompt, n_predict=2, seed=1)
        before = read_host_state(server.pid)
        take_pages(server.pid, model)
        server.client.complete(prompt, n_predict=2, seed=1)
        after = read_host_state(server.pid)
    if after.major_faults == before.major_faults:
        pytest.skip("this kernel keeps the pages of a mapped file, or serves them without a disk")
    life = make_life(host_before=before, host_after=after)
    findings = check_all(Evidence(run=make_run(), samples=[make_sample()], lives=(life,)))
    (refused,) = [f for f in findings if f.gate == "memory-still"]
    assert refused.level == "refuse"
    assert "major page faults" in refused.saw


def take_pages(pid: int, model: Path) -> None:
    """Page out what a process has mapped of a file, then drop the file from the page cache."""
    libc = ctypes.CDLL(None, use_errno=True)
    pages_out, by_pidfd = 21, 440
    ranges = []
    for line in Path(f"/proc/{pid}/maps").read_text().splitlines():
        if line.endswith(str(model)):
            begin, end = (int(part, 16) for part in line.split()[0].split("-"))
            ranges.append((begin, end - begin))
    handle = os.pidfd_open(pid)
    try:
        for begin, length in ranges:
            vector = (ctypes.c_uint64 * 2)(begin, length)
            libc.syscall(by_pidfd, handle, vector, 1, pages_out, 0)
    finally:
        os.close(handle)
    with model.open("rb") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
