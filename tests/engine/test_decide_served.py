"""`specbook decide` against real servers: a pair of this machine, two addresses, and keys that leave no trace."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from analysis.cli import app, load
from analysis.launch import Server, ServerConfig
from analysis.measure.access import ServerAccess
from analysis.measure.between import Said, decide_between
from analysis.measure.decide import decide
from analysis.measure.study import measure_study
from analysis.publish.card import card_text
from analysis.publish.validate import validate_run
from analysis.records import Problem

pytestmark = pytest.mark.engine
SIZE = {"depths": [160], "regimes": ["continuation", "recall"], "n_predict": 12}
LOOKUP = ("--spec-ngram-simple-size-n", "3")


@pytest.fixture
def local(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty place for runs, with a name that is not plain."""
    monkeypatch.setenv("SPECBOOK_LOCAL", str(tmp_path / "für mich"))
    return tmp_path / "für mich"


@pytest.fixture(scope="module")
def servers(engine, local_target):
    """Two servers of one target, without and with a draft-free method."""
    raw = ServerConfig(model=local_target, context=1024, flash_attn="off")
    drafted = ServerConfig(
        model=local_target, context=1024, flash_attn="off", spec_type="ngram-simple", n_max=8, extra_args=LOOKUP
    )
    with Server(engine, raw) as first, Server(engine, drafted) as second:
        yield first, second


def access(server: Server, folder: Path) -> ServerAccess:
    key = folder / f"key of {server.pid}"
    key.write_text(server._key + "\n")
    return ServerAccess(server.url, str(key))


def test_a_pair_of_this_machine_gets_answers_a_command_and_a_run(local):
    outcome = decide("smollm2-ngram", seconds=6, size=SIZE)
    assert [(answer.regime, answer.depth) for answer in outcome.answers] == [("continuation", 160), ("recall", 160)]
    assert all(answer.verdict in ("pays", "loses", "undecided") for answer in outcome.answers)
    assert outcome.tried
    assert outcome.pair.n_max == outcome.tried[0].n_max == max(outcome.tried, key=lambda t: t.rate).n_max
    assert outcome.command[0] == "llama-server"
    legs = {sample.leg for sample in outcome.study.samples}
    assert legs == {"raw", "drafted"}
    # Six seconds are too few for a run that others read; nothing else may keep it from being one.
    bad = {check.name for check in validate_run(str(outcome.study.directory.path)) if check.level == "bad"}
    assert bad <= {"prompts"}
    assert "## Does it pay?" in card_text(outcome.study)
    again = decide("smollm2-ngram", seconds=2, size=SIZE)
    assert (again.study.run.id, again.chosen, again.tried) == (outcome.study.run.id, "begun", ())
    assert again.extended == (len(again.study.samples) > len(outcome.study.samples))
    chosen_on = {s.prompt_sha256 for run in local.glob("runs/*decide-try*") for s in _samples(run)}
    assert not chosen_on & {sample.prompt_sha256 for sample in outcome.study.samples}


def test_a_setting_that_is_given_is_not_chosen(local):
    outcome = decide("smollm2-ngram", seconds=2, size=SIZE | {"regimes": ["recall"]}, n_max=6)
    assert (outcome.chosen, outcome.pair.n_max, outcome.pair.p_min, outcome.tried) == ("given", 6, 0.0, ())
    assert not list(local.glob("runs/*decide-try*"))


def test_two_addresses_get_answers_and_their_keys_leave_no_trace(servers, local, tmp_path, capfd):
    outcome = decide_between(
        access(servers[0], tmp_path), access(servers[1], tmp_path), Said("ngram-simple"), seconds=4, size=SIZE
    )
    assert len(outcome.answers) == 2
    assert outcome.study.run.cells[0].context == 1024
    written = b"".join(file.read_bytes() for file in local.rglob("*") if file.is_file())
    said = "".join(capfd.readouterr())
    for server in servers:
        assert server._key.encode() not in written
        assert server._key not in said + card_text(outcome.study) + repr(outcome)
        assert server.url.encode() not in written


def test_servers_that_were_started_again_are_not_added_unless_it_is_said_that_they_are_alike(
    servers, engine, local_target, local, tmp_path
):
    again = {"seconds": 1, "size": SIZE}
    drafted = access(servers[1], tmp_path)
    first = decide_between(access(servers[0], tmp_path), drafted, **again)
    assert (first.pair.spec_type, first.method) == ("ngram-simple", "told")
    second = decide_between(access(servers[0], tmp_path), drafted, **again)
    before = len(first.study.directory.samples())
    assert second.extended == (before > len(first.study.samples))
    other = ServerConfig(model=local_target, context=1024, flash_attn="off", kv_k="q8_0")
    with Server(engine, other) as restarted:
        raw = access(restarted, tmp_path)
        with pytest.raises(Problem, match=r"raw server was started again: .* --again .* --same-servers") as caught:
            decide_between(raw, drafted, **again)
        assert "\n" not in str(caught.value)
        assert len(first.study.directory.samples()) == before
        said = decide_between(raw, drafted, Said(same_servers=True), **again)
        assert said.study.run.id == first.study.run.id
        assert [life.continued for life in said.study.lives if life.id.startswith("raw")] == [
            "first",
            "same",
            "restarted",
        ]
        assert [life.said_alike for life in said.study.lives][-2:] == [True, True]
        fresh = decide_between(raw, drafted, again=True, **again)
    assert not fresh.extended
    assert {life.continued for life in fresh.study.lives} == {"first"}
    assert len(list((local / "runs").iterdir())) == 2


def test_what_a_server_says_of_its_drafting_is_not_contradicted(servers, local, tmp_path):
    both = access(servers[0], tmp_path), access(servers[1], tmp_path)
    with pytest.raises(Problem, match="drafts by ngram-simple; expected draft-simple"):
        decide_between(*both, Said("draft-simple"), size=SIZE)
    with pytest.raises(Problem, match="longest draft seen is 8 tokens; expected at most 3"):
        decide_between(*both, Said(n_max=3), size=SIZE)
    assert not (local / "runs").exists()


def test_addresses_in_the_wrong_order_are_said(servers, local, tmp_path):
    with pytest.raises(Problem, match="at --raw-url says that it drafts.*exchange the two addresses|drafted nothing"):
        decide_between(access(servers[1], tmp_path), access(servers[0], tmp_path), Said("ngram-simple"), size=SIZE)
    assert not (local / "runs").exists()


def test_a_notebooks_server_url_says_what_could_not_be_checked(servers, local, tmp_path):
    size = SIZE | {"prompts": 1, "regimes": ["recall"]}
    study = measure_study("smollm2-ngram", profile="smoke", size=size, server=access(servers[1], tmp_path))
    assert {sample.leg for sample in study.samples} == {"drafted"}
    unchecked = {found.gate for found in study.findings if found.level == "unchecked"}
    assert "counters-agree" in unchecked or study.lives[0].metrics is not None
    with pytest.raises(Problem, match="says that it drafts"):
        measure_study("smollm2-raw", profile="smoke", size=size, server=access(servers[1], tmp_path))


def test_the_command_prints_the_answers(local):
    load("decide")
    words = ["decide", "--pair", "smollm2-ngram", "--depths", "160", "--regimes", "recall", "--budget", "3s"]
    result = CliRunner().invoke(app, words, env={"COLUMNS": "200"}, catch_exceptions=False)
    assert result.exit_code == 0
    assert "Best of the settings (" in result.output or "One setting was tried, and taken" in result.output
    assert "specbook chapter 05_economics -p run smollm2-ngram" in result.output
    for phase in ("trying settings: ", "measuring with and without the drafter: "):
        assert result.output.count("\r" + phase) > 1
    assert "sample/s" not in result.output


def _samples(run: Path):
    from analysis.records.store import RunDir

    return RunDir.open(run).samples()
