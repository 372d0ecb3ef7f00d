"""Driving the converter: the right files and flags, whole results or none, and the official one's tensors."""

import json
import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from analysis.convert import converter as converting
from analysis.convert.checkpoint import BESIDE, plan_conversion, read_checkpoint
from analysis.convert.converter import Converter, convert, find_converter, set_up_converter
from analysis.convert.gguf import read_gguf
from analysis.convert.safetensors import INDEX
from analysis.convert.verify import verify_conversion
from analysis.records import Problem
from analysis.records.places import repo_dir

WRITES = """
import json, pathlib, shutil, sys
out = sys.argv[sys.argv.index("--outfile") + 1]
model = pathlib.Path(sys.argv[1])
seen = {"arguments": sys.argv[1:], "files": sorted(file.name for file in model.iterdir()),
        "weights": json.loads((model / "model.safetensors.index.json").read_text())["weight_map"]}
pathlib.Path(%(report)r).write_text(json.dumps(seen))
print("INFO:hf-to-gguf:fc.weight,   torch.bfloat16 --> Q8_0, shape = {768, 256}")
shutil.copy(%(source)r, out)
"""


@pytest.fixture
def pretend(tmp_path):
    """Make a converter out of a script of a few lines, run by this Python."""

    def make(text: str, **values: object) -> Converter:
        script = tmp_path / "pretend_converter.py"
        script.write_text(textwrap.dedent(text) % values if values else textwrap.dedent(text))
        return Converter(Path(sys.executable), script)

    return make


@pytest.fixture
def plan(dsv4_checkpoint):
    return plan_conversion(read_checkpoint(dsv4_checkpoint), "drafter")


def test_the_converter_sees_just_the_files_of_the_part(plan, pretend, dsv4_drafter, tmp_path):
    report = tmp_path / "seen.json"
    done = convert(
        plan, tmp_path / "d.gguf", pretend(WRITES, report=str(report), source=str(dsv4_drafter)), progress=False
    )
    seen = json.loads(report.read_text())
    assert len(done.file.tensors) == 81
    assert set(seen["files"]) == {*BESIDE, *plan.files, INDEX}
    assert all(name.startswith("mtp.") for name in seen["weights"])
    assert Path(seen["arguments"][0]).name == "tiny-0731"  # its name decides which chat template is added
    assert "--use-temp-file" in seen["arguments"]
    assert seen["arguments"][-3:-1] == ["--dspark", "--target-model-dir"]


def test_nothing_is_left_beside_the_result(plan, pretend, dsv4_drafter, tmp_path):
    out = tmp_path / "out"
    convert(plan, out / "d.gguf", pretend(WRITES, report=str(tmp_path / "r"), source=str(dsv4_drafter)), progress=False)
    assert [file.name for file in out.iterdir()] == ["d.gguf"]


def test_a_result_that_is_there_is_not_made_again(plan, pretend, dsv4_drafter, tmp_path):
    shutil.copy(dsv4_drafter, tmp_path / "d.gguf")
    done = convert(plan, tmp_path / "d.gguf", pretend("raise SystemExit('must not run')"), progress=False)
    assert done.seconds == 0


@pytest.mark.parametrize(
    ("script", "saw"),
    [
        (
            "raise ValueError('Unexpected DeepSeek-V4 MTP layer 1')",
            "failed: ValueError: Unexpected DeepSeek-V4 MTP layer 1",
        ),
        ("raise NotImplementedError('BPE pre-tokenizer was not recognized')", "does not know this tokenizer"),
        (
            "import torch_that_is_not_here",
            "the converter's Python has no torch_that_is_not_here; expected the packages of data/converter/",
        ),
        ("raise OSError(28, 'No space left on device')", "the disk is full while converting"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", "killed by signal 9; expected enough memory"),
        ("raise SystemExit(3)", "failed: no message"),
    ],
)
def test_a_converter_that_fails_is_one_line(plan, pretend, tmp_path, script, saw):
    with pytest.raises(Problem, match=saw):
        convert(plan, tmp_path / "out" / "d.gguf", pretend(script), progress=False)
    assert list((tmp_path / "out").iterdir()) == []


def test_a_converter_that_writes_half_a_file(plan, pretend, dsv4_drafter, tmp_path):
    half = tmp_path / "half.gguf"
    half.write_bytes(dsv4_drafter.read_bytes()[:100_000])
    with pytest.raises(Problem, match="is truncated"):
        convert(
            plan,
            tmp_path / "out" / "d.gguf",
            pretend(WRITES, report=str(tmp_path / "r"), source=str(half)),
            progress=False,
        )
    assert list((tmp_path / "out").iterdir()) == []


def test_an_interrupt_ends_the_converter_and_leaves_nothing(plan, pretend, tmp_path, monkeypatch):
    started = []
    popen = subprocess.Popen

    def start(*arguments, **settings):
        started.append(popen(*arguments, **settings))
        return started[0]

    def interrupt(pid):
        raise KeyboardInterrupt

    monkeypatch.setattr(subprocess, "Popen", start)
    monkeypatch.setattr(converting, "_private_memory", interrupt)
    with pytest.raises(KeyboardInterrupt):
        convert(plan, tmp_path / "out" / "d.gguf", pretend("import time; time.sleep(60)"), progress=False)
    assert started[0].poll() is not None
    assert list((tmp_path / "out").iterdir()) == []


def test_what_a_killed_conversion_left_goes_at_the_next_start(plan, pretend, dsv4_drafter, tmp_path):
    """A process that is killed by signal 9 tidies nothing; its half file is as large as a model."""
    out = tmp_path / "out"
    out.mkdir()
    stop = f"""
        import sys, time; sys.path.insert(0, {str(repo_dir() / "src")!r})
        from pathlib import Path
        from analysis.convert.converter import _working_folder
        from analysis.convert.files import whole_file
        with whole_file(Path({str(out)!r}) / "d.gguf") as half, _working_folder(Path({str(out)!r})) as work:
            half.write_bytes(b"half")
            (work / "scratch").write_bytes(b"more")
            print("written", flush=True)
            time.sleep(60)
    """
    killed = subprocess.Popen([sys.executable, "-c", textwrap.dedent(stop)], stdout=subprocess.PIPE)
    assert killed.stdout.readline() == b"written\n"
    killed.kill()
    killed.wait()
    killed.stdout.close()
    (out / f".d.gguf.{os.getppid()}.partial").write_bytes(b"of a process that lives")
    assert len(list(out.iterdir())) == 3
    convert(plan, out / "d.gguf", pretend(WRITES, report=str(tmp_path / "r"), source=str(dsv4_drafter)), progress=False)
    assert sorted(file.name for file in out.iterdir()) == [f".d.gguf.{os.getppid()}.partial", "d.gguf"]


def test_a_disk_that_is_too_small_is_seen_before(plan, pretend, tmp_path, monkeypatch):
    monkeypatch.setattr("shutil.disk_usage", lambda _: type("Usage", (), {"free": 1000})())
    with pytest.raises(Problem, match="has 1000 bytes free"):
        convert(plan, tmp_path / "d.gguf", pretend(""), progress=False)


def test_a_checkpoint_without_its_weights(dsv4_checkpoint, pretend, tmp_path):
    copy = tmp_path / "copy"
    shutil.copytree(dsv4_checkpoint, copy)
    (copy / "model-00009-of-00010.safetensors").unlink()
    plan = plan_conversion(read_checkpoint(copy), "drafter")
    with pytest.raises(Problem, match="hf download REPOSITORY model-00009-of-00010.safetensors"):
        convert(plan, tmp_path / "d.gguf", pretend(""), progress=False)


def test_no_network_while_setting_up(cache, monkeypatch):
    monkeypatch.delenv("SPECBOOK_CONVERTER_PYTHON", raising=False)
    for name in ("PIP_NO_INDEX", "PIP_FIND_LINKS", "PIP_EXTRA_INDEX_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    monkeypatch.setenv("PIP_RETRIES", "0")
    monkeypatch.setenv("PIP_NO_CACHE_DIR", "1")
    assert find_converter() is None
    with pytest.raises(Problem, match=r"pip could not bring llama-cpp-python 0\.3\.36"):
        set_up_converter(progress=False)
    assert find_converter() is None


def test_an_interpreter_that_is_not_there(cache, monkeypatch):
    monkeypatch.setenv("SPECBOOK_CONVERTER_PYTHON", "/nowhere/python")
    with pytest.raises(Problem, match=r"SPECBOOK_CONVERTER_PYTHON names /nowhere/python, which is not there"):
        set_up_converter(progress=False)


def test_an_environment_that_cannot_be_made(cache, monkeypatch):
    monkeypatch.delenv("SPECBOOK_CONVERTER_PYTHON", raising=False)
    monkeypatch.setattr(converting, "_unpack_source", lambda folder: None)
    (cache / "converter").mkdir(parents=True)
    folder = converting._folder()
    folder.mkdir()
    (folder / "venv").write_text("a file where the folder should stand")
    with pytest.raises(Problem, match=r"no environment could be made in .*venv"):
        set_up_converter(progress=False)
    assert find_converter() is None


def test_another_archive_than_the_locked_one(cache, monkeypatch):
    def bring(python, arguments, what):
        Path(arguments[-1], "llama_cpp_python.tar.gz").write_bytes(b"something else")

    monkeypatch.setattr(converting, "_pip", bring)
    with pytest.raises(Problem, match=r"has SHA-256 .*; expected 832db069.* as locked"):
        set_up_converter(progress=False)
    assert find_converter() is None


@pytest.mark.parametrize("part", ["target", "drafter"])
def test_a_file_is_verified_bit_by_bit(dsv4_checkpoint, dsv4_target, dsv4_drafter, part):
    plan = plan_conversion(read_checkpoint(dsv4_checkpoint), part)
    found = verify_conversion(plan, read_gguf(dsv4_target if part == "target" else dsv4_drafter), progress=False)
    assert (found.tensors, found.nbytes) == (plan.tensors, plan.nbytes)


def test_one_wrong_bit_is_found(plan, dsv4_drafter, tmp_path):
    tensor = next(tensor for tensor in read_gguf(dsv4_drafter).tensors if tensor.name == "blk.1.ffn_down_exps.weight")
    content = bytearray(dsv4_drafter.read_bytes())
    content[tensor.offset + 12345] ^= 1
    damaged = tmp_path / "d.gguf"
    damaged.write_bytes(content)
    with pytest.raises(Problem, match=r"blk.1.ffn_down_exps.weight of .* is not the checkpoint's"):
        verify_conversion(plan, read_gguf(damaged), progress=False)


def test_a_lost_and_an_added_tensor_are_found(plan, dsv4_drafter, dsv4_target, changed_gguf):
    with pytest.raises(Problem, match=r"lacks fc.weight"):
        verify_conversion(plan, read_gguf(changed_gguf(dsv4_drafter, drop=["fc.weight"])), progress=False)
    import numpy as np

    more = changed_gguf(dsv4_drafter, tensors={"d2t": np.zeros(4, np.float32)})
    with pytest.raises(Problem, match="has tensors the checkpoint has not: d2t"):
        verify_conversion(plan, read_gguf(more), progress=False)


@pytest.mark.parametrize("part", ["target", "drafter"])
def test_the_official_converter_gives_the_checkpoints_tensors(converter, dsv4_checkpoint, tmp_path, part):
    plan = plan_conversion(read_checkpoint(dsv4_checkpoint), part)
    done = convert(plan, tmp_path / f"{part}.gguf", converter, progress=False)
    found = verify_conversion(plan, done.file, progress=False)
    assert found.tensors == (150 if part == "target" else 81)
    assert done.file.has_chat_template
    assert done.file.text("tokenizer.ggml.pre") == "smollm"


def test_the_official_converter_stops_at_mtp_as_we_say(converter, dsv4_checkpoint, tmp_path):
    command = [converter.python, converter.script, dsv4_checkpoint, "--mtp", "--outfile", tmp_path / "mtp.gguf"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode
    assert "Unexpected DeepSeek-V4 MTP layer 1" in done.stderr


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_the_memory_of_a_large_conversion(converter, tmp_path, record_soak):
    """1.5 times the largest tensor and 500 MB, on a checkpoint of 3.5 GB."""
    from analysis.convert.dsv4 import LARGE, write_checkpoint

    write_checkpoint(tmp_path / "large-0731", LARGE, progress=False)
    size = sum(file.stat().st_size for file in (tmp_path / "large-0731").iterdir())
    assert size > 3e9
    figures = {"checkpoint_bytes": size}
    for part in ("target", "drafter"):
        plan = plan_conversion(read_checkpoint(tmp_path / "large-0731"), part)
        done = convert(plan, tmp_path / f"{part}.gguf", converter, progress=False)
        assert done.peak_memory < 1.5 * plan.largest + 500e6
        assert verify_conversion(plan, done.file, progress=False).nbytes == plan.nbytes
        figures[part] = {
            "bytes": done.file.size,
            "tensors": plan.tensors,
            "largest_tensor_bytes": plan.largest,
            "allowed_memory_bytes": round(1.5 * plan.largest + 500e6),
            "peak_memory_bytes": done.peak_memory,
            "seconds": round(done.seconds, 1),
        }
    record_soak("conversion", **figures)
