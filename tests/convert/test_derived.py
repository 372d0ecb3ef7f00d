"""A quantized variant is made from the shipped file by a recipe, once, and is the file the pair names."""

import pytest

from analysis.convert import derived as deriving
from analysis.convert.compare import compare_models
from analysis.convert.fetch import fetch
from analysis.convert.gguf import read_gguf
from analysis.convert.pairs import load_pair
from analysis.records import Problem, Source

pytestmark = pytest.mark.engine

SHIPPED = load_pair("smollm2-dspark").drafter


@pytest.fixture(scope="module")
def variants(tmp_path_factory):
    """The drafter of each variant as it was made into an empty cache."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SPECBOOK_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield {
            kind: fetch(load_pair(f"smollm2-dspark-{kind}").drafter, progress=False)
            for kind in ("f16", "q4_0", "q4_k_m")
        }


def test_every_variant_is_the_file_its_pair_names(variants):
    for kind, path in variants.items():
        assert path.name.endswith(f"-smollm2-dspark-{kind}.gguf")
    assert variants["q4_0"].stat().st_size < variants["q4_k_m"].stat().st_size < variants["f16"].stat().st_size


def test_sixteen_bits_lose_nothing_and_four_do(variants):
    shipped = read_gguf(fetch(SHIPPED))
    worst = {
        kind: max(change.rms for change in compare_models(shipped, read_gguf(path), progress=False))
        for kind, path in variants.items()
    }
    assert worst["f16"] == 0
    assert 0.01 < worst["q4_k_m"] < 0.2
    assert 0.01 < worst["q4_0"] < 0.2


def test_a_variant_is_made_once(variants, monkeypatch):
    monkeypatch.setattr(deriving, "quantize", lambda *a, **k: pytest.fail("made again"))
    again = fetch(load_pair("smollm2-dspark-q4_0").drafter, progress=False)
    assert again == variants["q4_0"]


@pytest.mark.parametrize("kind", ["q4_0", "q4_k_m"])
def test_a_damaged_variant_is_refused(variants, kind):
    path = variants[kind]
    whole = path.read_bytes()
    path.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    try:
        with pytest.raises(Problem, match=r"is not the file that was made here; remove .* and fetch it again"):
            fetch(load_pair(f"smollm2-dspark-{kind}").drafter, progress=False)
    finally:
        path.write_bytes(whole)


def test_another_source_is_another_file(variants):
    """Q4_0 of the F16 file holds the same numbers, and is still a file of its own."""
    origin = Source(kind="path", file=str(variants["f16"]))
    made = fetch(Source(kind="quantized", file="q4_0.gguf", recipe="q4_0", made_from=origin), progress=False)
    assert made.name[:16] != variants["q4_0"].name[:16]
    changes = compare_models(read_gguf(made), read_gguf(variants["q4_0"]), progress=False)
    assert max(change.rms for change in changes) == 0


def test_a_source_says_what_it_is_made_from():
    for wrong in ({"kind": "quantized"}, {"kind": "quantized", "recipe": "f16"}, {"kind": "path", "recipe": "f16"}):
        with pytest.raises(ValueError, match="goes with a recipe and"):
            Source(file="m.gguf", **wrong)
