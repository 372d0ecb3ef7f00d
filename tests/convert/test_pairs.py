"""Every pair and profile that ships is valid, and a misspelt name is answered with what exists."""

import re
from dataclasses import fields, replace

import pytest

from analysis.convert.pairs import list_pairs, list_profiles, load_pair, load_profile, with_files
from analysis.records import Pair, Problem, Profile, Source
from analysis.records.places import data_dir, repo_dir

# What a card can leave open beside the fields of a profile itself.
ELSEWHERE = {"drafter.file", "engine.commit"}


def test_the_local_pairs_name_one_target():
    raw, ngram = load_pair("smollm2-raw"), load_pair("smollm2-ngram")
    assert raw.target == ngram.target
    assert raw.target.licence == "Apache-2.0"
    assert raw.spec_type == "none"
    assert ngram.spec_type == "ngram-simple"


def test_the_ngram_pair_can_draft_at_all():
    """ngram-simple never proposes fewer tokens than it looks up."""
    pair = load_pair("smollm2-ngram")
    size_n = int(pair.extra_args[pair.extra_args.index("--spec-ngram-simple-size-n") + 1])
    assert pair.n_max >= size_n


@pytest.mark.parametrize("kind", ["f16", "q8_0", "q4_k_m", "q4_0"])
def test_a_quantized_variant_differs_from_the_shipped_pair_in_its_drafter_alone(kind):
    shipped, variant = load_pair("smollm2-dspark"), load_pair(f"smollm2-dspark-{kind}")
    kept = {"name": shipped.name, "title": shipped.title, "note": shipped.note, "drafter": shipped.drafter}
    assert replace(variant, **kept) == shipped
    assert shipped.drafter in (variant.drafter, variant.drafter.made_from)


@pytest.mark.parametrize("pair", list_pairs(), ids=lambda pair: pair.name)
def test_a_pair_says_what_is_open(pair):
    """A source without a hash, a file or a repository is either complete or listed as not stated."""
    for part in ("target", "drafter"):
        source = getattr(pair, part)
        if source is None:
            continue
        for field in (
            "sha256",
            "file",
            *(("repo", "revision") if source.kind == "hub" and source.repo else ()),
        ):
            made_here = field == "sha256" and source.made_from is not None and source.made_from.sha256
            if not getattr(source, field) and not made_here:
                assert f"{part}.{field}" in pair.not_stated or f"{part}.repo" in pair.not_stated
    for name in pair.not_stated:
        part, _, field = name.partition(".")
        value = getattr(getattr(pair, part), field) if field else None
        assert not value, f"{pair.name} lists {name} as not stated and gives {value!r}"


@pytest.mark.parametrize("profile", list_profiles(), ids=lambda profile: profile.name)
def test_a_profile_names_a_pair_that_exists(profile):
    assert load_pair(profile.pair)


@pytest.mark.parametrize("profile", list_profiles(), ids=lambda profile: profile.name)
def test_a_profile_says_what_is_open(profile):
    known = {field.name for field in fields(Profile)}
    assert set(profile.not_stated) <= known | ELSEWHERE
    silent = {"n_min", "p_min", "context", "depth", "fill", "temperature", "n_predict", "regime"}
    drafts = load_pair(profile.pair).spec_type != "none"
    for name in silent - (set() if drafts else {"n_min", "p_min"}):
        assert (getattr(profile, name) is None) == (name in profile.not_stated), name


def test_both_cards_are_there():
    cards = [profile.card for profile in list_profiles()]
    assert cards.count("A") == 16
    assert cards.count("B") == 41


def test_names_are_unique_and_sorted():
    for items in (list_pairs(), list_profiles()):
        names = [item.name for item in items]
        assert names == sorted(set(names))


def test_an_unknown_pair_is_answered_with_close_names():
    with pytest.raises(
        Problem,
        match=r"unknown pair 'smollm-raw' \(did you mean smollm2-raw.*expected one of .*smollm2-ngram",
    ):
        load_pair("smollm-raw")


def test_an_unknown_profile_is_answered_with_close_names():
    with pytest.raises(Problem, match=r"unknown profile .*did you mean card-a-vision"):
        load_profile("card-a-visoin")


def test_a_pair_of_the_users_own(tmp_path):
    file = tmp_path / "mine.toml"
    file.write_text('name = "other"\ntitle = "Mine"\n[target]\nkind = "path"\nfile = "m.gguf"\n')
    assert load_pair(file).name == "other"
    with pytest.raises(Problem, match="no file .*absent.toml"):
        load_pair(tmp_path / "absent.toml")


@pytest.mark.parametrize(
    ("text", "saw"),
    [
        ("name = ", "not readable TOML"),
        ('name = "bad"\ntitle = "T"\n', "target: Field required"),
        ('name = "bad"\ntitle = "T"\nspeed = 3\n[target]\nkind = "path"\nfile = "m"\n', "speed: Unexpected"),
        (
            'name = "bad"\ntitle = "T"\nspec_type = "draft-dspark"\n[target]\nkind = "path"\nfile = "m"\n',
            r"needs a \[drafter\]",
        ),
    ],
)
def test_a_damaged_pair_is_refused(tmp_path, text, saw):
    file = tmp_path / "bad.toml"
    file.write_text(text)
    with pytest.raises(Problem, match=saw):
        load_pair(file)


def test_a_shipped_pair_must_be_named_like_its_file(tmp_path, monkeypatch):
    (tmp_path / "pairs").mkdir()
    text = (data_dir() / "pairs" / "smollm2-raw.toml").read_text()
    (tmp_path / "pairs" / "renamed.toml").write_text(text)
    monkeypatch.setenv("SPECBOOK_DATA", str(tmp_path))
    with pytest.raises(Problem, match="expected name = 'renamed'"):
        load_pair("renamed")


def test_an_owner_puts_in_files_of_their_own(tmp_path):
    pair = with_files(load_pair("card-a-text"), target=tmp_path / "t.gguf", drafter=tmp_path / "d.gguf")
    assert isinstance(pair, Pair)
    assert pair.target == Source(kind="path", file=str(tmp_path / "t.gguf"))
    assert pair.drafter == Source(kind="path", file=str(tmp_path / "d.gguf"))


def test_the_pair_that_the_book_shows_loads(tmp_path):
    page = (repo_dir() / "book" / "machine.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"```toml\n(.*?)```", page, re.DOTALL)
    (tmp_path / "my-pair.toml").write_text(block, encoding="utf-8")
    pair = load_pair(tmp_path / "my-pair.toml")
    assert (pair.target.kind, pair.drafter.kind) == ("path", "path")
