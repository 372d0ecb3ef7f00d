import hashlib
import json

import pytest

from analysis.convert.pairs import load_pair
from analysis.drafter import card, shapes
from analysis.records.places import data_dir, repo_dir


@pytest.fixture(scope="module")
def result():
    return json.loads((data_dir() / "drafters" / "smollm2-dspark-training.json").read_text())


@pytest.fixture(scope="module")
def first():
    return json.loads((data_dir() / "drafters" / "smollm2-dspark-first-training.json").read_text())


@pytest.fixture(scope="module")
def thin():
    return json.loads((data_dir() / "drafters" / "smollm2-dspark-thin-training.json").read_text())


@pytest.fixture(scope="module")
def page():
    return (data_dir() / "drafters" / "README.md").read_text()


def test_the_recipes_of_the_shipped_drafter_are_those_a_user_runs(result, first):
    assert first["recipe"] == json.loads(json.dumps(shapes.gpu_recipe().plain()))
    assert result["recipe"] == json.loads(json.dumps(shapes.recipe_for("gpu", 2).plain()))


def test_the_cards_tables_are_what_was_recorded(result, thin, page):
    assert card.training_table(result) in page
    assert card.training_table(thin) in page


def test_the_smaller_drafter_was_made_as_the_card_says(thin, page):
    recipe = shapes.recipe_for("gpu", 3, layers=1, block=4)
    assert thin["recipe"] == json.loads(json.dumps(recipe.plain()))
    assert "--seed 3 --layers 1 --block 4" in page
    assert f"{recipe.shape.parameters():,} weights" in page
    assert served_hash() in page


def served_hash() -> str:
    """Return the hash of the smaller drafter's file that its recorded run names."""
    run = json.loads((data_dir() / "runs" / "smollm2-dspark-thin-machines-8d81d9" / "run.json").read_text())
    return next(cell["drafter_sha256"] for cell in run["cells"] if cell["drafter_sha256"])


def test_the_table_of_served_drafters_is_what_was_recorded(page):
    served = json.loads((data_dir() / "drafters" / "smollm2-dspark-served.json").read_text())
    assert served["drafters"][0] == "this drafter"
    for other in served["drafters"][1:]:
        assert card.served_table(served, other) in page
    assert served["files"]["this drafter"]["sha256"] == load_pair("smollm2-dspark").drafter.sha256
    assert all(len(set(texts)) == 1 for texts in _texts_by_prompt(served))


def test_the_cards_counts_are_what_was_recorded(result, first, thin, page):
    flat = " ".join(page.split())
    for one in (first, result, thin):
        assert f"{sum(one['texts'].values()):,} answers" in flat
        assert f"{sum(one['answer_tokens'].values()) / 1e6:.1f} million tokens" in flat
        assert f"training {one['history'][-1]['seconds']:.0f} s" in flat
    assert f"{shapes.gpu_recipe().shape.parameters():,}" in flat


def test_summaries_follow_from_the_recorded_texts(result):
    for kind in (*shapes.KINDS, "all"):
        accepted = [a for text in result["replay"]["texts"] if kind in (text["kind"], "all") for a in text["accepted"]]
        summary = result["replay"]["summary"][kind]
        assert summary["mean_length"] == pytest.approx(1 + sum(accepted) / len(accepted))
        assert summary["survival"][0] == pytest.approx(sum(a >= 1 for a in accepted) / len(accepted))


def test_the_pair_names_the_file_that_is_here(page):
    source = load_pair("smollm2-dspark").drafter
    content = (repo_dir() / source.file).read_bytes()
    assert (source.size, source.sha256) == (len(content), hashlib.sha256(content).hexdigest())
    assert len(content) < 20_000_000
    assert source.sha256 in page


def _texts_by_prompt(served):
    hashes = [
        {r["prompt"]: r["text_sha256"] for r in served["requests"] if r["drafter"] == d} for d in served["drafters"]
    ]
    return [[texts[prompt] for texts in hashes] for prompt in served["prompts"]]


@pytest.mark.parametrize("name", ["first-training", "training", "second-repeat"])
def test_the_agreement_that_the_card_prints_is_that_of_the_log(name):
    folder = data_dir() / "drafters"
    last = json.loads((folder / f"smollm2-dspark-{name}.json").read_text())["history"][-20:]
    means = [sum(record["agreement"][place] for record in last) / len(last) for place in range(6)]
    row = " | ".join([f"{last[0]['step']:,} to {last[-1]['step']:,}", *(f"{mean:.3f}" for mean in means)])
    assert f"| {row} |" in (folder / "README.md").read_text()


def test_one_seed_on_two_machines_took_the_same_course(result, page):
    repeat = json.loads((data_dir() / "drafters" / "smollm2-dspark-second-repeat.json").read_text())
    assert repeat["recipe"] == result["recipe"]
    apart = [abs(a["loss"] - b["loss"]) for a, b in zip(repeat["history"], result["history"], strict=False)]
    assert f"apart by at most {max(apart):.4f}" in " ".join(page.split())
