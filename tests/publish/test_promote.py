"""Promoting: what is committed was executed, holds no error and says nothing of the machine it came from."""

import json
import socket
from pathlib import Path
from types import SimpleNamespace

import pytest
from nbformat import v4

from analysis.publish.ipynb import write_notebook
from analysis.publish.promote import promote
from analysis.records import Problem
from analysis.records.places import repo_dir

RUN = "quick-smollm2-ngram-1"


@pytest.fixture
def places(tmp_path: Path) -> SimpleNamespace:
    """A local book with one chapter that shows one local run, and empty committed folders."""
    found = SimpleNamespace(
        **{name: tmp_path / name for name in ("local_book", "book", "local_runs", "runs")},
    )
    for folder in (found.book, found.runs, found.local_book / "chapters", found.local_runs / RUN):
        folder.mkdir(parents=True)
    (found.local_runs / RUN / "run.json").write_text('{"id": "quick-smollm2-ngram-1"}')
    (found.local_runs / RUN / "samples.jsonl").write_text("{}\n")
    (found.local_runs / RUN / ".lock").touch()
    show(found, f"run {RUN}, 5 samples")
    return found


def show(places: SimpleNamespace, text: str, name: str = "03_acceptance") -> None:
    """Write a local chapter whose one output is the text."""
    output = v4.new_output("stream", text=text)
    cell = v4.new_code_cell("page", execution_count=1, outputs=[output])
    write_notebook(places.local_book / "chapters" / f"{name}.ipynb", v4.new_notebook(cells=[cell]))


def promote_from(places: SimpleNamespace, names: list[str] | None = None, *, dry_run: bool = False) -> list[Path]:
    return promote(
        places.local_book, places.book, local_runs=places.local_runs, runs=places.runs, names=names, dry_run=dry_run
    )


def refused(places: SimpleNamespace, message: str) -> None:
    with pytest.raises(Problem, match=message):
        promote_from(places)
    assert not (places.book / "chapters").exists()
    assert list(places.runs.iterdir()) == []


def test_a_chapter_goes_with_the_run_that_it_names(places: SimpleNamespace) -> None:
    written = promote_from(places)
    assert written == [places.runs / RUN, places.book / "chapters" / "03_acceptance.ipynb"]
    assert sorted(path.name for path in (places.runs / RUN).iterdir()) == ["run.json", "samples.jsonl"]


def test_a_dry_run_checks_and_writes_nothing(places: SimpleNamespace) -> None:
    told = promote_from(places, dry_run=True)
    assert not (places.book / "chapters").exists()
    assert list(places.runs.iterdir()) == []
    assert promote_from(places) == told
    show(places, "a second, in the folder /home/somebody/models/")
    with pytest.raises(Problem, match="names the folder"):
        promote_from(places, dry_run=True)


def test_a_run_that_no_chapter_names_stays_local(places: SimpleNamespace) -> None:
    show(places, f"run {RUN}0, 5 samples")
    assert promote_from(places) == [places.book / "chapters" / "03_acceptance.ipynb"]


def test_promoting_twice_changes_nothing(places: SimpleNamespace) -> None:
    promote_from(places)
    assert promote_from(places) == [places.book / "chapters" / "03_acceptance.ipynb"]


def test_one_chapter_by_name(places: SimpleNamespace) -> None:
    show(places, "nothing", name="01_convert")
    assert promote_from(places, ["01_convert"]) == [places.book / "chapters" / "01_convert.ipynb"]
    with pytest.raises(Problem, match="has no chapter 09_none; expected one of 01_convert, 03_acceptance"):
        promote_from(places, ["09_none"])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f"read {repo_dir()}/data/pairs", "03_acceptance.ipynb names the folder"),
        (f"read {Path.home()}/models", "03_acceptance.ipynb names the folder"),
        ("read /home/somebody/models", "names the folder /home/somebody/"),
        ("data:image/svg+xml,%2Fhome%2Fsomebody%2Fx", "names the folder /home/somebody/"),
        ("on workstation-7 today", "names this host"),
        ("token hf_" + "a1" * 12, "holds an access token"),
        ("--api-key " + "0123456789abcdef", "holds an API key"),
        ("-----BEGIN RSA PRIVATE KEY-----", "holds a private key"),
    ],
)
def test_what_names_the_machine_or_a_secret_is_refused(
    places: SimpleNamespace, text: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(socket, "gethostname", lambda: "workstation-7")
    show(places, text)
    refused(places, message)


def test_a_secret_is_not_repeated(places: SimpleNamespace) -> None:
    show(places, "hf_" + "a1" * 12)
    with pytest.raises(Problem) as problem:
        promote_from(places)
    assert "hf_" not in str(problem.value)


def test_a_redacted_key_is_no_secret(places: SimpleNamespace) -> None:
    show(places, "llama-server --api-key $KEY --port 8080")
    assert promote_from(places)


def test_a_run_that_names_an_address_is_refused(places: SimpleNamespace) -> None:
    (places.local_runs / RUN / "run.json").write_text('{"argv": ["-p", "server_url", "http://gpu.example.org:8080"]}')
    refused(places, f"{RUN}/run.json names an address")


def test_a_run_that_names_the_machine_is_refused(places: SimpleNamespace) -> None:
    (places.local_runs / RUN / "run.json").write_text('{"argv": ["/home/somebody/llama-server"]}')
    refused(places, f"{RUN}/run.json names the folder")


def test_a_run_that_names_a_temporary_file_is_refused(places: SimpleNamespace) -> None:
    (places.local_runs / RUN / "servers.jsonl").write_text('{"argv": ["-md", "/tmp/specbook-abc/broken.gguf"]}')
    refused(places, f"{RUN}/servers.jsonl names /tmp/specbook-abc/broken.gguf")


def test_a_run_of_many_megabytes_is_refused(places: SimpleNamespace) -> None:
    (places.local_runs / RUN / "samples.jsonl").write_bytes(b" " * 3_000_001)
    refused(places, "expected at most 3,000,000 in a committed run")


def test_a_run_with_few_prompts_in_a_cell_is_refused(places: SimpleNamespace) -> None:
    lines = [
        json.dumps({"cell": cell, "prompt_id": f"p{n}"}) for cell, count in (("a", 5), ("b", 4)) for n in range(count)
    ]
    (places.local_runs / RUN / "samples.jsonl").write_text("\n".join(lines) + "\n")
    refused(places, f"cell b of {RUN} was measured with 4 prompts; expected at least 5 in a committed run")


@pytest.mark.parametrize("torn", [b'{"cell": "a", "prom', b"\xff\n"])
def test_a_run_whose_journal_is_torn_is_refused(places: SimpleNamespace, torn: bytes) -> None:
    journal = places.local_runs / RUN / "samples.jsonl"
    journal.write_bytes(journal.read_bytes() + torn)
    refused(places, f"{RUN}/samples.jsonl:2 is not JSON; expected a whole run; resume the run")


def test_a_committed_run_is_never_replaced(places: SimpleNamespace) -> None:
    promote_from(places)
    (places.local_runs / RUN / "samples.jsonl").write_text("{}\n{}\n")
    with pytest.raises(Problem, match=f"{RUN} is committed already and differs"):
        promote_from(places)
    assert (places.runs / RUN / "samples.jsonl").read_text() == "{}\n"


def test_a_chapter_with_an_error_takes_nothing_with_it(places: SimpleNamespace) -> None:
    cell = v4.new_code_cell("page", execution_count=1)
    cell.outputs = [v4.new_output("error", ename="ValueError", evalue="no", traceback=[])]
    write_notebook(places.local_book / "chapters" / "04_depth_regime.ipynb", v4.new_notebook(cells=[cell]))
    refused(places, "ended with ValueError")


def test_an_empty_local_book_is_said(places: SimpleNamespace) -> None:
    (places.local_book / "chapters" / "03_acceptance.ipynb").unlink()
    refused(places, "has no chapters; make book measures them")
