"""The drafter's forms hold the same numbers; with the converter's environment that is proved with the official one."""

import gguf
import numpy as np
import pytest

from analysis.convert.compare import compare_models
from analysis.convert.gguf import read_gguf
from analysis.convert.pairs import load_pair
from analysis.convert.quantize import quantize
from analysis.convert.recipes import load_recipe
from analysis.drafter import export, forms
from analysis.records import Problem
from analysis.records.places import repo_dir

SHIPPED = repo_dir() / load_pair("smollm2-dspark").drafter.file


@pytest.fixture
def small_file(tmp_path):
    """A file of two tensors; `value` is what the second one holds."""

    def write(name: str, value: float):
        writer = gguf.GGUFWriter(tmp_path / name, "dflash")
        writer.add_tensor("a", np.ones((2, 32), np.float32))
        writer.add_tensor("b", np.full(4, value, np.float32))
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()
        return tmp_path / name

    return write


def test_files_are_compared_byte_by_byte(small_file):
    one, same, other = small_file("one.gguf", 1.0), small_file("same.gguf", 1.0), small_file("other.gguf", 2.0)
    assert forms.require_equal_tensors(one, same) == 2
    with pytest.raises(Problem, match=r"1 tensors of .*one.gguf are not those of .*other.gguf, first b"):
        forms.require_equal_tensors(one, other)


def test_the_shipped_file_unpacks_to_what_the_converter_reads(tiny_target, tmp_path):
    forms.unpack(SHIPPED, tiny_target, tmp_path)
    weights, shape = export.load_checkpoint(tmp_path / "hf")
    packed, described = export.checkpoint_of_gguf(SHIPPED)
    assert shape == described
    assert all((weights[name] == packed[name]).all() for name in packed)
    assert {file.name for file in (tmp_path / "target").iterdir()} == {
        "config.json",
        "tokenizer.json",
        "tokenizer_config.json",
    }


def test_a_file_without_a_markov_head_is_no_dspark_drafter(tiny_target, tmp_path):
    with pytest.raises(Problem, match=r"has no Markov head; expected a DSpark drafter"):
        forms.unpack(tiny_target, tiny_target, tmp_path)


@pytest.mark.engine
def test_f16_and_q8_0_are_made_from_each_other_without_a_loss(tmp_path):
    quantize(SHIPPED, tmp_path / "f16.gguf", load_recipe("f16"), progress=False)
    quantize(tmp_path / "f16.gguf", tmp_path / "q8_0.gguf", load_recipe("q8_0-plain"), progress=False)
    assert forms.require_equal_tensors(tmp_path / "q8_0.gguf", SHIPPED) == len(gguf.GGUFReader(SHIPPED).tensors)


@pytest.mark.engine
@pytest.mark.timeout(280)
def test_the_official_converter_makes_the_shipped_file_from_its_checkpoint(local_target, converter, tmp_path):
    forms.unpack(SHIPPED, local_target, tmp_path)
    made = forms.make_forms(tmp_path, converter, progress=False)
    assert forms.require_equal_tensors(made.q8_0, SHIPPED) == made.tensors
    # The quantizer may keep a tensor of one row in another type than the converter; its numbers are the same.
    ours = quantize(SHIPPED, tmp_path / "ours.gguf", load_recipe("f16"), progress=False)
    changes = compare_models(read_gguf(made.f16), ours, progress=False)
    assert max(change.rms for change in changes) == 0


def test_without_a_checkpoint_there_is_nothing_to_convert(tmp_path):
    with pytest.raises(Problem, match="is no checkpoint"):
        forms.make_forms(tmp_path, converter=None, progress=False)
