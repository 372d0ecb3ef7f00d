"""A pair may name a file that is made on this machine."""

import pytest

from analysis.convert.dsv4 import Recipe
from analysis.convert.fetch import fetch
from analysis.convert.fit import check_fit
from analysis.convert.fixtures import fixture_recipe
from analysis.convert.gguf import read_gguf
from analysis.convert.pairs import load_pair
from analysis.records import Problem, Source


def source(**changes):
    return Source(**({"kind": "fixture", "package": "dsv4", "file": "target.gguf"} | changes))


def test_the_shipped_pair_is_made_checked_and_kept(cache):
    pair = load_pair("dsv4-tiny")
    target, drafter = fetch(pair.target), fetch(pair.drafter)
    assert target.parent == drafter.parent
    assert not check_fit(read_gguf(target), read_gguf(drafter), spec_type=pair.spec_type).refused
    stamp = target.stat().st_mtime_ns
    assert fetch(pair.target, verify=True).stat().st_mtime_ns == stamp
    assert [file.name for file in (cache / "models").iterdir()] == [target.parent.name]


def test_other_settings_are_another_file(cache):
    assert fetch(source(revision="seed=1")) != fetch(source(revision="seed=2"))


def test_settings_are_read():
    assert fixture_recipe("seed=3 agree=0.5 margin=0.1") == Recipe(seed=3, agree=0.5, margin=0.1)
    assert fixture_recipe("") == Recipe()


@pytest.mark.parametrize("settings", ["sed=1", "seed=one", "agree"])
def test_a_setting_that_cannot_be_read(settings):
    with pytest.raises(Problem, match="cannot read .* of a fixture; expected seed, mode, agree, margin"):
        fixture_recipe(settings)


@pytest.mark.parametrize("changes", [{"package": "dsv5"}, {"file": "model.gguf"}])
def test_there_is_no_such_fixture(cache, changes):
    with pytest.raises(Problem, match="no fixture .*; expected dsv4 with target.gguf or drafter.gguf"):
        fetch(source(**changes))
