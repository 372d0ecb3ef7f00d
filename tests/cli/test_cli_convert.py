"""What the commands about model files print, and how they end."""

import pytest

from analysis.cli.show import harmless, size
from analysis.convert.pairs import DEFAULT_PAIR, list_pairs, list_profiles
from analysis.publish.parameters import declared
from analysis.records.places import repo_dir


def test_pairs_lists_every_pair(specbook):
    status, out, _ = specbook("pairs")
    assert status == 0
    assert all(pair.name in out for pair in list_pairs())


def test_pairs_names_the_default_of_the_notebooks_and_what_is_to_fetch(specbook, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    _, out, _ = specbook("pairs")
    rows = {line.split()[0]: line for line in out.splitlines() if line.startswith(" ")}
    assert [name for name, row in rows.items() if "the default: " in row] == [DEFAULT_PAIR]
    for notebook in ("03_acceptance", "04_depth_regime", "05_economics"):
        assert declared(repo_dir() / "notebooks" / f"{notebook}.ipynb")["pair"].default.strip('"') == DEFAULT_PAIR
    assert size(98362432) in rows["smollm2-dspark"]
    assert size(98362432) in rows["smollm2-dspark-q4_0"]
    assert "97 GB + 10.9 GB" in rows["card-a-vision"]
    assert rows["dsv4-tiny"].split()[3] == "–"


def test_profiles_lists_every_profile(specbook, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    status, out, _ = specbook("profiles")
    assert status == 0
    assert all(profile.name in out for profile in list_profiles())


@pytest.mark.engine
def test_fetch_prints_where_the_file_lies(specbook, local_target):
    status, out, _ = specbook("fetch", "smollm2-raw")
    assert status == 0
    assert out == f"smollm2-raw target: {local_target} (93.8 MiB)\n"


def test_fetch_of_an_unknown_pair_is_one_line(specbook):
    status, out, err = specbook("fetch", "smollm2-rwa")
    assert (status, out) == (1, "")
    assert err.startswith("specbook: unknown pair 'smollm2-rwa' (did you mean smollm2-raw")
    assert err.count("\n") == 1


@pytest.mark.engine
def test_inspect_the_local_target(specbook, local_target):
    status, out, _ = specbook("inspect", str(local_target), "--metadata", "--tensors")
    assert status == 0
    for fact in ("llama", "49,152 tokens", "8,192 tokens", "embedded", "134,515,008", "feed-forward", "Q4_1"):
        assert fact in out
    assert "tokenizer.ggml.tokens = 49,152 x str" in out
    assert "blk.29.ffn_down.weight" in out


def test_inspect_of_a_text_file_is_one_line(specbook, tmp_path):
    file = tmp_path / "m.gguf"
    file.write_text("hello")
    status, out, err = specbook("inspect", str(file))
    assert (status, out) == (1, "")
    assert err.endswith("m.gguf is a text file; expected a GGUF file; fetch it again\n")


def test_text_from_files_is_made_harmless():
    assert harmless("a\x1b[31m [red]b\u202e\n") == "a\ufffd[31m \\[red]b\ufffd\ufffd"
    assert harmless("x" * 300) == "x" * 200 + "…"


@pytest.mark.parametrize(("nbytes", "text"), [(0, "0 B"), (1023, "1023 B"), (98362432, "93.8 MiB"), (3 << 40, "3 TiB")])
def test_sizes(nbytes, text):
    assert size(nbytes) == text


def test_fixture_writes_a_checkpoint(specbook, tmp_path):
    status, out, _ = specbook("fixture", "dsv4", str(tmp_path / "tiny-0731"), "--agree", "0.5")
    assert status == 0
    assert out == f"{tmp_path / 'tiny-0731'}: 15 files, 11.5 MiB\n"
    status, _, err = specbook("fixture", "dsv4", str(tmp_path / "tiny-0731"))
    assert status == 1
    assert "is not empty" in err


def test_fixture_writes_both_models(specbook, tmp_path):
    assert specbook("fixture", "dsv4", str(tmp_path / "tiny"), "--gguf")[0] == 0
    status, out, _ = specbook("inspect", str(tmp_path / "tiny" / "drafter.gguf"))
    assert status == 0
    assert "drafter: Markov head" in out
    status, _, err = specbook("fixture", "dsv4", str(tmp_path / "large"), "--gguf", "--large")
    assert (status, (tmp_path / "large").exists()) == (1, False)
    assert "specbook convert" in err


def test_check_of_a_pair_that_fits(specbook, dsv4_target, dsv4_drafter, monkeypatch):
    monkeypatch.setenv("COLUMNS", "160")
    status, out, err = specbook("check", str(dsv4_target), str(dsv4_drafter), "--context", "1024")
    assert (status, err) == (0, "")
    assert "Markov head" in out
    assert "an estimate fitted to the CPU build" in out


def test_check_shows_every_finding_and_ends_with_one_line(specbook, dsv4_target, dsv4_drafter, monkeypatch):
    monkeypatch.setenv("COLUMNS", "160")
    status, out, err = specbook("check", str(dsv4_target), str(dsv4_drafter), "--spec-type", "draft-dflash")
    assert status == 1
    assert "refused" in out
    expected = "speculation type: draft-dflash for a drafter of type dflash with a Markov head; expected draft-dspark"
    assert err == f"specbook: {expected}\n"


def test_check_of_an_unknown_speculation_type(specbook, dsv4_target):
    status, _, err = specbook("check", str(dsv4_target), "--spec-type", "draft-dspork")
    assert status == 1
    assert err.startswith("specbook: unknown speculation type 'draft-dspork'; expected one of none, ngram-simple")


def test_check_against_another_machines_memory(specbook, dsv4_target):
    status, _, err = specbook("check", str(dsv4_target), "--memory", "0.001")
    assert status == 1
    assert "a shorter context or smaller files" in err


@pytest.mark.engine
@pytest.mark.parametrize("way", [(), ("--via-f16",)], ids=["direct", "over f16"])
def test_quantize_tells_what_it_did(specbook, dsv4_drafter, tmp_path, monkeypatch, way):
    monkeypatch.setenv("COLUMNS", "160")
    status, out, _ = specbook("quantize", str(dsv4_drafter), str(tmp_path / "q.gguf"), "--recipe", "q2k-q4k", *way)
    assert status == 0
    assert "Q2_K Q4_K" in out
    assert f"{tmp_path / 'q.gguf'}: 3.63 MiB -> 3.35 MiB" in out
    assert [file.name for file in tmp_path.iterdir()] == ["q.gguf"]


def test_quantize_with_an_unknown_recipe(specbook, tmp_path):
    status, _, err = specbook("quantize", "a.gguf", str(tmp_path / "q.gguf"), "--recipe", "q2k")
    assert status == 1
    assert err.startswith("specbook: unknown recipe 'q2k'")


def test_recipes_are_listed(specbook, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    status, out, _ = specbook("recipes")
    assert status == 0
    assert "iq2xxs-q4k" in out


def test_convert_says_what_it_needs_before_anything(specbook, dsv4_checkpoint):
    status, out, _ = specbook("convert", str(dsv4_checkpoint), "--part", "drafter", "--plan")
    assert status == 0
    assert "drafter: DeepseekV4ForCausalLM, flags --dspark" in out
    assert "weights in 3 of 10 files: model-00008-of-00010.safetensors" in out
    assert "result: 81 tensors, 3.61 MiB, the largest" in out


def test_convert_explains_mtp(specbook, dsv4_checkpoint):
    status, _, err = specbook("convert", str(dsv4_checkpoint), "--part", "mtp")
    assert status == 1
    assert "convert the drafter (--part drafter)" in err


@pytest.mark.parametrize(
    ("arguments", "saw"), [((), "no file to write was named"), (("--part", "head"), "unknown part 'head'")]
)
def test_convert_without_what_it_needs(specbook, dsv4_checkpoint, arguments, saw):
    status, _, err = specbook("convert", str(dsv4_checkpoint), *arguments)
    assert status == 1
    assert err.startswith(f"specbook: {saw}")


@pytest.mark.parametrize("way", [(), ("--via-f16",)])
def test_quantizing_a_file_onto_itself_is_refused(specbook, tmp_path, way):
    file = tmp_path / "model.gguf"
    file.write_bytes(b"GGUF")
    status, out, err = specbook("quantize", str(file), str(file), "--recipe", "q8_0", *way)
    assert (status, out) == (1, "")
    assert err == f"specbook: {file} is the source; expected another file to write\n"
    assert file.read_bytes() == b"GGUF"


def test_a_comparison_is_not_recorded_over_a_model(specbook, tmp_path):
    file = tmp_path / "model.gguf"
    file.write_bytes(b"GGUF")
    status, out, err = specbook("perplexity", str(file), str(file), "--write", str(file))
    assert (status, out) == (1, "")
    assert err.startswith(f"specbook: {file} is no record of a quality")
    assert file.read_bytes() == b"GGUF"
