"""A run as one file: the same bytes everywhere, and nothing in it is trusted when it comes back."""

import json
import stat
import zipfile

import pytest
from typer.testing import CliRunner

from analysis.cli import app, load
from analysis.publish.archive import archive_bytes, read_archive, write_archive
from analysis.publish.validate import validate_run
from analysis.records import Problem
from analysis.records.places import data_dir
from analysis.records.store import find_run

RUN = sorted(path.parent.name for path in (data_dir() / "runs").glob("*/run.json"))[0]


@pytest.fixture(scope="module")
def archive(tmp_path_factory):
    return write_archive(RUN, tmp_path_factory.mktemp("Ärchiv für alle"), creators=("Doe, Jo",))


@pytest.fixture
def spoiled(archive, tmp_path):
    """A function that writes a changed copy of the archive: entries renamed or rewritten, links among them."""

    def spoil(change):
        path = tmp_path / "spoiled.zip"
        with zipfile.ZipFile(archive) as source, zipfile.ZipFile(path, "w") as out:
            for entry in source.infolist():
                content = source.read(entry)
                name, content, mode = change(entry.filename, content)
                made = zipfile.ZipInfo(name)
                made.external_attr = mode << 16
                out.writestr(made, content)
        return path

    return spoil


def test_it_comes_back_byte_for_byte(archive, tmp_path):
    directory = read_archive(archive, tmp_path / "runs")
    for name in ("run.json", "samples.jsonl", "servers.jsonl", "steps.parquet"):
        assert (directory.path / name).read_bytes() == (data_dir() / "runs" / RUN / name).read_bytes()
    assert [check.level for check in validate_run(str(directory.path))].count("bad") == 0


def test_the_same_run_gives_the_same_bytes(archive):
    assert archive_bytes(find_run(RUN), ("Doe, Jo",)) == archive.read_bytes()


def test_it_holds_what_zenodo_asks_for(archive):
    with zipfile.ZipFile(archive) as packed:
        metadata = json.loads(packed.read(f"{RUN}/.zenodo.json"))
        assert "Creative Commons" in packed.read(f"{RUN}/LICENSE").decode()
        assert f"run `{RUN}`" in packed.read(f"{RUN}/README.md").decode()
    assert metadata["upload_type"] == "dataset"
    assert metadata["license"] == "cc-by-4.0"
    assert metadata["creators"] == [{"name": "Doe, Jo"}]
    assert RUN in metadata["title"]


@pytest.mark.parametrize(
    "name",
    [
        "../run.json",
        "/etc/run.json",
        f"{RUN}/../../run.json",
        f"{RUN}/sub/run.json",
        f"{RUN}\\..\\run.json",
        "../../samples.jsonl",
        f"{RUN}/evil.py",
        "run.json",
    ],
)
def test_a_path_that_points_elsewhere_is_refused(spoiled, tmp_path, name):
    path = spoiled(lambda entry, content: (name if entry.endswith("run.json") else entry, content, 0o100644))
    with pytest.raises(Problem, match="nothing was unpacked"):
        read_archive(path, tmp_path / "runs")
    assert not (tmp_path / "runs").exists()


def test_a_link_is_refused(spoiled, tmp_path):
    mode = stat.S_IFLNK | 0o777
    path = spoiled(lambda entry, content: (entry, b"/etc/passwd" if "servers" in entry else content, mode))
    with pytest.raises(Problem, match="nothing was unpacked"):
        read_archive(path, tmp_path / "runs")


def test_a_changed_byte_is_refused(spoiled, tmp_path):
    change = lambda entry, content: (entry, content + b" " if "samples" in entry else content, 0o100644)  # noqa: E731  # a table of one
    with pytest.raises(Problem, match=r"samples.jsonl in spoiled.zip is not what SHA256SUMS says"):
        read_archive(spoiled(change), tmp_path / "runs")


def test_another_folder_name_is_refused(spoiled, tmp_path):
    path = spoiled(lambda entry, content: (entry.replace(RUN, "other"), content, 0o100644))
    with pytest.raises(Problem, match="a folder named like it"):
        read_archive(path, tmp_path / "runs")


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 garbage", b"\x00" * 1000])
def test_garbage_is_one_line(tmp_path, content):
    path = tmp_path / "x.zip"
    path.write_bytes(content)
    with pytest.raises(Problem, match="no archive that can be read|folders"):
        read_archive(path, tmp_path / "runs")


def test_a_damaged_stream_is_one_line(tmp_path):
    path = tmp_path / "x.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as out:
        out.writestr("run/run.json", "{}" * 1000)
    content = bytearray(path.read_bytes())
    start = len("run/run.json") + 30  # a zip entry's header, then its name
    content[start : start + 4] = b"\xff" * 4
    path.write_bytes(content)
    with pytest.raises(Problem, match="no archive that can be read"):
        read_archive(path, tmp_path / "runs")


def test_an_archive_that_unpacks_to_too_much_is_refused(tmp_path, monkeypatch, archive):
    monkeypatch.setattr("analysis.publish.archive.MOST_UNPACKED", 1000)
    with pytest.raises(Problem, match="unpacks to"):
        read_archive(archive, tmp_path / "runs")


def test_a_run_that_is_there_is_not_overwritten(archive, tmp_path):
    read_archive(archive, tmp_path)
    with pytest.raises(Problem, match="is there already"):
        read_archive(archive, tmp_path)


def test_the_commands_pack_and_unpack(tmp_path):
    for name in ("archive", "unpack", "validate"):
        load(name)
    runner = CliRunner()
    packed = runner.invoke(app, ["archive", RUN, "-o", str(tmp_path)])
    assert packed.exit_code == 0
    unpacked = runner.invoke(app, ["unpack", str(tmp_path / f"{RUN}.zip"), "--into", str(tmp_path / "runs")])
    assert unpacked.exit_code == 0
    checked = runner.invoke(app, ["validate", str(tmp_path / "runs" / RUN)])
    assert checked.exit_code == 0
    assert "It can be contributed" in checked.output


def test_another_file_of_that_name_is_kept_without_force(archive, tmp_path):
    load("archive")
    there = tmp_path / f"{RUN}.zip"
    there.write_bytes(b"somebody's")
    runner = CliRunner()
    refused = runner.invoke(app, ["archive", RUN, "-o", str(tmp_path)])
    assert f"{there} exists and is not this archive" in str(refused.exception)
    assert there.read_bytes() == b"somebody's"
    assert runner.invoke(app, ["archive", RUN, "-o", str(tmp_path), "--force"]).exit_code == 0
    assert there.read_bytes() != b"somebody's"
    assert runner.invoke(app, ["archive", RUN, "-o", str(tmp_path)]).exit_code == 0  # the same bytes again
