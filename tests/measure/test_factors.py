from pathlib import Path

import pytest

from analysis.launch.config import server_argv
from analysis.measure.duel import plan_duel
from analysis.measure.factors import FACTORS, read_factor, variant, variants
from analysis.measure.serving import serving_of
from analysis.records import Problem


def test_every_combination_is_a_variant_and_the_last_factor_varies_fastest():
    found = variants(serving_of("smollm2-dspark"), ["n_max=1,3", "kv=f16,q8_0"])
    assert [one.title for one in found] == [
        "n_max=1, kv=f16",
        "n_max=1, kv=q8_0",
        "n_max=3, kv=f16",
        "n_max=3, kv=q8_0",
    ]
    assert [one.served.pair.n_max for one in found] == [1, 1, 3, 3]
    assert found[1].served.changes == {"kv_k": "q8_0", "kv_v": "q8_0"}


def test_a_factor_of_the_server_reaches_its_command_line(tmp_path):
    drafter = tmp_path / "other.gguf"
    drafter.write_bytes(b"GGUF")
    found = variant(serving_of("smollm2-dspark"), {"threads": "1", "context": "2048", "drafter": str(drafter)})
    config = found.served.config(tmp_path / "target.gguf", drafter)
    assert (config.threads, config.context) == (1, 2048)
    assert found.served.pair.drafter.file == str(drafter)
    assert found.title == "threads=1, context=2048, drafter=other.gguf"


def test_a_factor_of_the_request_changes_the_grid():
    found = variant(serving_of("smollm2-ngram"), {"n_predict": "128", "depth": "512", "regime": "recall"})
    assert found.size == {"n_predict": 128, "depths": [512], "regimes": ["recall"]}


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("n_mx=1", "no factor named 'n_mx'.*did you mean n_max"),
        ("n_max", "names no values"),
        ("n_max=1,,2", "names no values"),
        ("n_max=1,1", "names a value twice"),
        ("n_max=-1", "n_max cannot be '-1'; expected a whole number of at least 0"),
        ("p_min=1.5", "expected a number from 0 to 1"),
        ("p_min=nan", "expected a number from 0 to 1"),
        ("kv=q9", "expected one of f32, f16"),
        ("drafter=/no/such/file", "expected the path of a file"),
    ],
)
def test_a_factor_that_cannot_be_is_refused_in_one_line(text, complaint):
    with pytest.raises(Problem, match=complaint):
        read_factor(text)


def test_a_factor_twice_or_against_its_pair_is_refused():
    with pytest.raises(Problem, match="n_max is named twice"):
        variants(serving_of("smollm2-dspark"), ["n_max=1", "n_max=2"])
    with pytest.raises(Problem, match="n_max=3: .*drafts nothing"):
        variant(serving_of("smollm2-raw"), {"n_max": "3"})


def test_every_factor_the_brief_of_a_sweep_names_is_there():
    named = {"n_max", "p_min", "kv", "drafter", "engine", "threads", "context", "n_predict", "temperature", "parallel"}
    assert named <= set(FACTORS)


def test_requests_at_once_need_as_many_slots_each_with_the_whole_context(tmp_path):
    served = variant(serving_of("smollm2-dspark"), {"parallel": "4", "context": "2048"}).served
    config = served.config(tmp_path / "target.gguf", tmp_path / "drafter.gguf")
    argv = server_argv(Path("llama-server"), config, 0, Path("key"), _Everything())
    assert argv[argv.index("--parallel") + 1] == "4"
    assert argv[argv.index("--ctx-size") + 1] == "8192"


def test_a_duel_makes_one_request_at_a_time():
    with pytest.raises(Problem, match="parallel=4 on one side of a duel; expected one request at a time"):
        plan_duel("smollm2-ngram", "raw", changes=(["parallel=4"], []))


class _Everything(frozenset):
    """The options of a build that knows all of them."""

    def __contains__(self, option):
        return True
