import pytest

from analysis.gates import contrast
from analysis.records import Problem
from factories import make_cell

RAW = {"pair": "smollm2-raw", "spec_type": "none", "n_max": 0}


@pytest.mark.parametrize(
    ("first", "second", "factor"),
    [
        ({}, {"depth": 2048}, "depth"),
        ({}, {"regime": "recall"}, "regime"),
        ({}, {"backend": "Vulkan"}, "backend"),
        ({}, {"n_max": 8}, "n_max"),
        ({}, RAW, "speculation"),
        ({}, RAW | {"pair": "smollm2-ngram"}, "speculation"),
        (
            {"pair": "v4-q8", "spec_type": "draft-dspark", "drafter_sha256": "a" * 64, "p_min": 0.5, "n_min": 1},
            RAW | {"pair": "v4-raw"},
            "speculation",
        ),
        ({"pair": "a", "drafter_sha256": "a"}, {"pair": "b", "drafter_sha256": "b"}, "drafter"),
        ({"pair": "a", "target_sha256": "a"}, {"pair": "b", "target_sha256": "b"}, "target"),
    ],
)
def test_a_contrast_names_its_factor(first, second, factor):
    assert contrast(make_cell(**first), make_cell(**second)).factor == factor


@pytest.mark.parametrize(
    ("second", "complaint"),
    [
        ({}, "differ in nothing;"),
        ({"pair": "another-name"}, "nothing but a name"),
        ({"depth": 2048, "regime": "recall"}, "differ in depth, regime"),
        (RAW | {"depth": 2048}, "depth"),
        (RAW | {"flash_attn": "off"}, "flash_attn"),
        ({"pair": "b", "drafter_sha256": "b", "n_max": 8}, "pair, n_max, drafter_sha256"),
        ({"engine": "1.0 abc", "backend": "Vulkan"}, "engine, backend"),
    ],
)
def test_anything_but_one_factor_is_refused(second, complaint):
    with pytest.raises(Problem, match=complaint):
        contrast(make_cell(), make_cell(**second))
