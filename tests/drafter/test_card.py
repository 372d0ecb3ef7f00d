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
def page():
    return (data_dir() / "drafters" / "README.md").read_text()


def test_the_recipe_of_the_shipped_drafter_is_the_one_a_user_runs(result):
    assert result["recipe"] == json.loads(json.dumps(shapes.gpu_recipe().plain()))


def test_the_cards_table_is_what_was_recorded(result, page):
    assert card.training_table(result) in page


def test_the_table_of_served_drafters_is_what_was_recorded(page):
    served = json.loads((data_dir() / "drafters" / "smollm2-dspark-served.json").read_text())
    assert card.served_table(served) in page
    assert served["files"]["this drafter"]["sha256"] == load_pair("smollm2-dspark").drafter.sha256
    assert all(text == other for text, other in _texts_by_prompt(served))


def test_the_cards_counts_are_what_was_recorded(result, page):
    flat = " ".join(page.split())
    assert f"{sum(result['texts'].values()):,} answers" in flat
    assert f"{sum(result['answer_tokens'].values()) / 1e6:.1f} million tokens" in flat
    assert f"training {result['history'][-1]['seconds']:.0f} s" in flat
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
    return [(hashes[0][prompt], hashes[1][prompt]) for prompt in served["prompts"]]


@pytest.mark.parametrize("name", ["training", "second-training"])
def test_the_agreement_that_the_card_prints_is_that_of_the_log(name):
    folder = data_dir() / "drafters"
    last = json.loads((folder / f"smollm2-dspark-{name}.json").read_text())["history"][-20:]
    means = [sum(record["agreement"][place] for record in last) / len(last) for place in range(6)]
    row = " | ".join([f"{last[0]['step']:,} to {last[-1]['step']:,}", *(f"{mean:.3f}" for mean in means)])
    assert f"| {row} |" in (folder / "README.md").read_text()
