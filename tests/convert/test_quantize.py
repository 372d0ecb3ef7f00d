"""Quantizing in process gives the tool's bytes; what it did is told group by group, and faults are one line."""

import os
import subprocess
from dataclasses import replace
from pathlib import Path

import llama_cpp
import numpy as np
import pytest
from gguf import GGUFWriter

from analysis.convert.compare import compare_models
from analysis.convert.gguf import read_gguf
from analysis.convert.quantize import quantize, read_importance
from analysis.convert.recipes import QuantRecipe, list_recipes, load_recipe
from analysis.convert.widen import widen
from analysis.records import Problem

pytestmark = pytest.mark.engine

TOOL = Path(llama_cpp.__file__).parents[1] / "bin" / "llama-quantize"


@pytest.mark.parametrize(
    "recipe", [recipe for recipe in list_recipes() if not recipe.importance], ids=lambda recipe: recipe.name
)
def test_the_bytes_are_the_tools(dsv4_drafter, tmp_path, recipe):
    ours, theirs = tmp_path / "ours.gguf", tmp_path / "theirs.gguf"
    quantize(dsv4_drafter, ours, recipe, threads=1, progress=False)
    types = [word for pattern, kind in recipe.types.items() for word in ("--tensor-type", f"{pattern}={kind}")]
    subprocess.run(
        [TOOL, "--allow-requantize", *types, dsv4_drafter, theirs, recipe.base, "1"], check=True, capture_output=True
    )
    assert ours.read_bytes() == theirs.read_bytes()


def test_a_plain_target(local_target, tmp_path):
    recipe = QuantRecipe(name="q4_0", title="Four bits", base="Q4_0")
    ours, theirs = tmp_path / "ours.gguf", tmp_path / "theirs.gguf"
    quantize(local_target, ours, recipe, progress=False)
    subprocess.run([TOOL, "--allow-requantize", local_target, theirs, "Q4_0"], check=True, capture_output=True)
    assert ours.read_bytes() == theirs.read_bytes()


def test_what_q2k_q4k_does(dsv4_drafter, tmp_path):
    after = quantize(dsv4_drafter, tmp_path / "q.gguf", load_recipe("q2k-q4k"), progress=False)
    changes = {change.name: change for change in compare_models(read_gguf(dsv4_drafter), after, progress=False)}
    experts = changes.pop("experts")
    assert (experts.types_before, experts.types_after) == (("MXFP4",), ("Q2_K", "Q4_K"))
    assert (experts.bits_before, experts.bits_after) == (4.25, (2 * 2.625 + 4.5) / 3)
    assert 0.1 < experts.rms < 0.4
    for change in changes.values():
        assert change.types_before == change.types_after
        assert change.rms == 0


def test_the_printed_command_also_changes_critical_tensors(dsv4_drafter, tmp_path):
    after = quantize(dsv4_drafter, tmp_path / "q.gguf", load_recipe("q2k-q4k-card"), progress=False)
    changes = {change.name: change for change in compare_models(read_gguf(dsv4_drafter), after, progress=False)}
    assert changes["drafter: Markov head"].types_after == ("Q8_0",)
    assert 0 < changes["drafter: Markov head"].rms < 0.02
    assert "Q8_0" in changes["hyper-connections"].types_after


def test_more_bits_mean_less_error(dsv4_drafter, tmp_path):
    errors = []
    for name in ("q2k-q4k", "q3k", "q8_0"):
        after = quantize(dsv4_drafter, tmp_path / f"{name}.gguf", load_recipe(name), progress=False)
        (experts,) = (c for c in compare_models(read_gguf(dsv4_drafter), after, progress=False) if c.name == "experts")
        errors.append(experts.rms)
    assert errors == sorted(errors, reverse=True)
    assert errors[-1] < 0.01


def test_two_bits_with_equal_importance(dsv4_drafter, tmp_path):
    after = quantize(dsv4_drafter, tmp_path / "q.gguf", load_recipe("iq2xxs-q4k"), progress=False)
    types = {tensor.name: tensor.type for tensor in after.tensors}
    assert types["blk.0.ffn_gate_exps.weight"] == types["blk.2.ffn_up_exps.weight"] == "IQ2_XXS"
    assert types["blk.1.ffn_down_exps.weight"] == "Q4_K"


def test_two_bits_without_importance_are_refused(dsv4_drafter, tmp_path):
    recipe = replace(load_recipe("iq2xxs-q4k"), importance="")
    with pytest.raises(Problem, match=r"requires an imatrix!; expected importance for this type; pass a file"):
        quantize(dsv4_drafter, tmp_path / "q.gguf", recipe, progress=False)
    assert list(tmp_path.iterdir()) == []


def importance_file(path: Path, model: Path, recipe: QuantRecipe) -> Path:
    """Write a file as llama-imatrix does: sums of squares and how often they were added to, by expert."""
    generator = np.random.default_rng(5)
    writer = GGUFWriter(path, "imatrix")
    writer.add_type("imatrix")
    writer.add_array("imatrix.datasets", ["made up"])
    writer.add_uint32("imatrix.chunk_count", 1)
    writer.add_uint32("imatrix.chunk_size", 512)
    for tensor in read_gguf(model).tensors:
        if "_exps" in tensor.name:
            inner, _, experts = tensor.shape
            writer.add_tensor(f"{tensor.name}.in_sum2", generator.random((experts, inner), np.float32) * 7)
            writer.add_tensor(f"{tensor.name}.counts", np.array([[7.0]] * (experts - 1) + [[0.0]], np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def test_importance_from_a_file_is_used_as_the_tool_uses_it(dsv4_drafter, tmp_path):
    """The tool also writes where the importance came from, so tensors are compared."""
    recipe = load_recipe("iq2xxs-q4k")
    weights = importance_file(tmp_path / "imatrix.gguf", dsv4_drafter, recipe)
    ours, theirs = tmp_path / "ours.gguf", tmp_path / "theirs.gguf"
    quantize(dsv4_drafter, ours, recipe, importance=weights, progress=False)
    types = [word for pattern, kind in recipe.types.items() for word in ("--tensor-type", f"{pattern}={kind}")]
    command = [TOOL, "--allow-requantize", "--imatrix", weights, *types, dsv4_drafter, theirs, "Q8_0"]
    subprocess.run(command, check=True, capture_output=True)
    assert tensor_bytes(ours) == tensor_bytes(theirs)
    equal = quantize(dsv4_drafter, tmp_path / "equal.gguf", recipe, progress=False)
    assert tensor_bytes(equal.path) != tensor_bytes(ours)


def test_a_file_without_importance(dsv4_drafter):
    with pytest.raises(Problem, match="holds no importance; expected a GGUF file of llama-imatrix"):
        read_importance(dsv4_drafter)


def tensor_bytes(path: Path) -> dict[str, bytes]:
    content = path.read_bytes()
    return {t.name: content[t.offset : t.offset + t.nbytes] for t in read_gguf(path).tensors}


def test_the_way_over_f16_loses_nothing(dsv4_drafter, tmp_path):
    wide = widen(dsv4_drafter, tmp_path / "wide.gguf", progress=False)
    assert set(wide.bytes_by_type) == {"F16", "Q8_0", "F32", "BF16"}
    before = read_gguf(dsv4_drafter)
    assert all(change.rms == 0 for change in compare_models(before, wide, progress=False))
    assert {key: value for key, value in wide.metadata.items() if key != "general.file_type"} == dict(before.metadata)
    direct = quantize(dsv4_drafter, tmp_path / "direct.gguf", load_recipe("q2k-q4k"), progress=False)
    round_about = quantize(wide.path, tmp_path / "round.gguf", load_recipe("q2k-q4k"), progress=False)
    assert tensor_bytes(direct.path) == tensor_bytes(round_about.path)


def test_a_scale_beyond_f16_is_refused(dsv4_drafter, tmp_path):
    file = read_gguf(dsv4_drafter)
    experts = next(tensor for tensor in file.tensors if tensor.type == "MXFP4")
    content = bytearray(dsv4_drafter.read_bytes())
    content[experts.offset] = 200  # a scale of 2^73
    damaged = tmp_path / "damaged.gguf"
    damaged.write_bytes(content)
    with pytest.raises(Problem, match="holds values that F16 cannot"):
        widen(damaged, tmp_path / "wide.gguf", progress=False)
    assert not (tmp_path / "wide.gguf").exists()


def test_a_full_disk_is_seen_before_writing(dsv4_drafter, tmp_path, monkeypatch):
    monkeypatch.setattr("shutil.disk_usage", lambda _: type("Usage", (), {"free": 1000})())
    with pytest.raises(Problem, match=r"has 1000 bytes free; expected about \d+ for q.gguf"):
        quantize(dsv4_drafter, tmp_path / "q.gguf", load_recipe("q8_0"), progress=False)


def test_a_disk_that_fills_up_leaves_nothing(dsv4_drafter, tmp_path):
    """Every write to /dev/full fails as on a full disk."""
    partial = tmp_path / f".q.gguf.{os.getpid()}.partial"
    partial.symlink_to("/dev/full")
    with pytest.raises(Problem, match="could not be written to its end; expected room on the disk"):
        quantize(dsv4_drafter, tmp_path / "q.gguf", load_recipe("q8_0"), progress=False)
    assert list(tmp_path.iterdir()) == []


def test_source_and_target_are_the_same(dsv4_drafter):
    with pytest.raises(Problem, match="is the source"):
        quantize(dsv4_drafter, dsv4_drafter, load_recipe("q8_0"), progress=False)


def test_a_truncated_source(dsv4_drafter, tmp_path):
    cut = tmp_path / "cut.gguf"
    cut.write_bytes(dsv4_drafter.read_bytes()[:100_000])
    with pytest.raises(Problem, match="is truncated"):
        quantize(cut, tmp_path / "q.gguf", load_recipe("q8_0"), progress=False)


def test_an_unknown_file_type(dsv4_drafter, tmp_path):
    with pytest.raises(Problem, match="the engine has no file type 'Q9'"):
        quantize(dsv4_drafter, tmp_path / "q.gguf", QuantRecipe(name="x", title="", base="Q9"), progress=False)


def test_files_of_different_models_are_not_compared(dsv4_drafter, dsv4_target):
    with pytest.raises(Problem, match="hold different tensors"):
        compare_models(read_gguf(dsv4_target), read_gguf(dsv4_drafter), progress=False)
