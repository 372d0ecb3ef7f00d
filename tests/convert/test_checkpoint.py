"""Which flags and which files a conversion needs, from configuration and index alone."""

import json
import shutil

import pytest

from analysis.convert.checkpoint import Checkpoint, plan_conversion, read_checkpoint, shape_of
from analysis.convert.dsv4 import FLASH, TINY, checkpoint_tensors, config, shards
from analysis.records import Problem


@pytest.fixture(scope="module")
def release(tmp_path_factory) -> Checkpoint:
    """Configuration and index of a checkpoint with the sizes of the 0731 release; no weights."""
    folder = tmp_path_factory.mktemp("release")
    names = [f"model-{number:05d}-of-00048.safetensors" for number in range(1, 49)]
    weights = {tensor.name: name for name, file in zip(names, shards(FLASH), strict=True) for tensor in file}
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": weights}))
    (folder / "config.json").write_text(json.dumps(config(FLASH, noise_token=128799)))
    for name in ("tokenizer.json", "tokenizer_config.json"):
        (folder / name).write_text("{}")
    return read_checkpoint(folder)


def test_the_drafter_needs_three_of_48_files(release):
    plan = plan_conversion(release, "drafter")
    assert plan.flags == ("--dspark",)
    assert plan.files == tuple(f"model-{number:05d}-of-00048.safetensors" for number in (46, 47, 48))
    assert plan.missing == plan.files
    assert plan.tensors == 81
    assert round(plan.nbytes / 2**30, 2) == 10.14
    assert plan.largest == 256 * 2048 * 4096 * 17 // 32


def test_what_is_missing_is_said_before_anything_is_downloaded(release):
    with pytest.raises(Problem) as raised:
        plan_conversion(release, "drafter").require_files()
    assert str(raised.value).startswith("3 of the files for the drafter are not in")
    assert "expected 3 of 48 files with weights; download these alone: hf download REPOSITORY model-00046" in str(
        raised.value
    )


def test_the_target_needs_the_others(release):
    plan = plan_conversion(release, "target")
    assert plan.flags == ("--no-nextn",)
    assert plan.files == tuple(f"model-{number:05d}-of-00048.safetensors" for number in range(1, 46))


def test_mtp_on_a_dspark_checkpoint_is_explained(release):
    with pytest.raises(Problem) as raised:
        plan_conversion(release, "mtp")
    assert "3 DSpark blocks and states num_nextn_predict_layers 1" in str(raised.value)
    assert "Unexpected DeepSeek-V4 MTP layer 1" in str(raised.value)
    assert "convert the drafter (--part drafter), which uses --dspark" in str(raised.value)


def test_a_plain_mtp_head(release):
    """The first release of V4-Flash has one MTP block and no DSpark."""
    settings = {key: value for key, value in release.config.items() if not key.startswith("dspark")}
    older = Checkpoint(release.path, settings, release.weights)
    assert plan_conversion(older, "mtp").flags == ("--mtp",)
    with pytest.raises(Problem, match="no dspark_block_size; expected a DSpark checkpoint; convert its MTP head"):
        plan_conversion(older, "drafter")


def test_a_checkpoint_without_a_drafter(dsv4_checkpoint, tmp_path):
    kept = {
        name: file for name, file in read_checkpoint(dsv4_checkpoint).weights.items() if not name.startswith("mtp.")
    }
    bare = Checkpoint(dsv4_checkpoint, {"architectures": ["LlamaForCausalLM"]}, kept)
    for part in ("drafter", "mtp"):
        with pytest.raises(Problem, match=r"holds no mtp.\* tensors \(LlamaForCausalLM\)"):
            plan_conversion(bare, part)
    plan = plan_conversion(bare, "target")
    assert (plan.flags, plan.nbytes) == ((), None)


def test_a_whole_checkpoint_misses_nothing(dsv4_checkpoint):
    plan = plan_conversion(read_checkpoint(dsv4_checkpoint), "drafter")
    assert plan.missing == ()
    plan.require_files()


def test_the_shape_is_read_back():
    assert shape_of(config(FLASH, noise_token=1)) == FLASH
    assert shape_of(config(TINY, noise_token=1)) == TINY
    with pytest.raises(Problem, match="config.json lacks 'hidden_size'"):
        shape_of({})


def test_no_checkpoint(tmp_path):
    with pytest.raises(Problem, match="no config.json in"):
        read_checkpoint(tmp_path)
    (tmp_path / "config.json").write_text("{")
    with pytest.raises(Problem, match=r"config.json cannot be read"):
        read_checkpoint(tmp_path)
    (tmp_path / "config.json").write_text("[]")
    with pytest.raises(Problem, match="is not a JSON object"):
        read_checkpoint(tmp_path)


def test_a_checkpoint_of_the_hub_that_cannot_be_reached(cache, monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(Problem, match=r"config.json of nobody/nothing is not here"):
        read_checkpoint("nobody/nothing")


def test_a_missing_tokenizer_is_named(dsv4_checkpoint, tmp_path):
    copy = tmp_path / "copy"
    shutil.copytree(dsv4_checkpoint, copy)
    (copy / "tokenizer.json").unlink()
    assert plan_conversion(read_checkpoint(copy), "target").missing == ("tokenizer.json",)


def test_every_tensor_is_in_one_of_the_parts(release):
    target, drafter = (set(plan_conversion(release, part).files) for part in ("target", "drafter"))
    assert target | drafter == set(release.weights.values())
    assert not target & drafter
    assert len(release.weights) == len(checkpoint_tensors(FLASH))
