import hashlib
import shutil

import pytest
from evidence_for_tests import drafted_sample, make_evidence

from analysis.convert.broken import permute_rotary
from analysis.convert.pairs import load_pair
from analysis.gates.fit import PairFits
from analysis.records import FileHash
from analysis.records.places import repo_dir
from factories import make_cell, make_run


@pytest.fixture
def pair(dsv4_target, dsv4_drafter, tmp_path, monkeypatch):
    """Evidence of a run of the synthetic pair, with the given factors and a cache that holds its files."""
    monkeypatch.setenv("SPECBOOK_CACHE", str(tmp_path))

    def evidence(*, drafter=dsv4_drafter, present=True, **changes):
        files = []
        for name, path in (("target", dsv4_target), ("drafter", drafter)):
            here = tmp_path / f"{name}.gguf"
            shutil.copyfile(path, here)
            digest = hashlib.sha256(here.read_bytes()).hexdigest()
            files.append(FileHash(path=f"$CACHE/{here.name}", sha256=digest, size=here.stat().st_size))
            if not present:
                here.unlink()
        cell = make_cell(
            **(
                {
                    "spec_type": "draft-dspark",
                    "n_max": 5,
                    "target_sha256": files[0].sha256,
                    "drafter_sha256": files[1].sha256,
                }
                | changes
            )
        )
        return make_evidence(run=make_run(cells=(cell,), files=tuple(files)), samples=[drafted_sample(0, cell)])

    return evidence


def levels(evidence):
    return [(f.level, f.saw) for f in PairFits().check(evidence)]


def test_a_pair_that_fits_has_nothing_said_against_it(pair):
    assert levels(pair()) == []


def test_a_dspark_file_run_as_dflash_is_refused(pair):
    ((level, saw),) = levels(pair(spec_type="draft-dflash"))
    assert level == "refuse"
    assert "draft-dflash for a drafter of type dflash with a Markov head; expected draft-dspark" in saw


def test_a_file_that_lost_its_end_is_refused(pair, dsv4_drafter, tmp_path):
    torn = tmp_path / "torn.gguf"
    torn.write_bytes(dsv4_drafter.read_bytes()[:2000])
    assert [level for level, _ in levels(pair(drafter=torn))] == ["refuse"]


def test_files_of_another_machine_are_unchecked(pair):
    assert levels(pair(present=False)) == [("unchecked", "its model files are not here")]


def test_pairs_without_a_drafter_have_nothing_to_fit():
    assert levels(make_evidence()) == []


def test_heads_in_another_order_are_a_warning(pair, tmp_path):
    shipped = repo_dir() / load_pair("smollm2-dspark").drafter.file
    broken = permute_rotary(shipped, tmp_path / "broken.gguf", "to pairs").path
    found = levels(pair(drafter=broken))
    (saw,) = [saw for level, saw in found if level == "warn"]
    assert saw.startswith("order of heads: the weights stand in pairs, say 3")
    assert saw.endswith("; expected halves (NeoX), as the engine turns them: convert it again")
