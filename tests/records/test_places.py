from pathlib import Path

import pytest

from analysis.records import Problem, places


def test_a_recorded_path_is_found_again_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("SPECBOOK_CACHE", str(tmp_path / "cache"))
    recorded = places.portable(tmp_path / "cache" / "models" / "target.gguf")
    assert recorded == "$CACHE/models/target.gguf"
    monkeypatch.setenv("SPECBOOK_CACHE", str(tmp_path / "elsewhere"))
    assert places.located(recorded) == tmp_path / "elsewhere" / "models" / "target.gguf"


def test_a_path_of_nowhere_keeps_only_its_name():
    assert places.portable("/some/where/else/model.gguf") == "model.gguf"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("--server-url http://10.0.0.7:8080/v1", "--server-url $URL"),
        ("https://user:secret@example.org/x and more", "$URL and more"),
        ("--api-key abc123 --port 1", "--api-key $KEY --port 1"),
        ("--api-key-file=/run/key", "--api-key-file=$KEY"),
        ("Authorization: Bearer abc.def", "Authorization: Bearer $KEY"),
    ],
)
def test_addresses_and_keys_never_reach_a_record(text: str, shown: str):
    assert places.redact(text) == shown


def test_home_user_and_host_never_reach_a_record(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(places.socket, "gethostname", lambda: "lab-7")
    monkeypatch.setattr(places.getpass, "getuser", lambda: "mallory")
    monkeypatch.setattr(places.Path, "home", staticmethod(lambda: Path("/home/mallory")))
    assert places.redact("/home/mallory/x by mallory on lab-7") == "$HOME/x by $USER on $HOST"
    assert places.redact("mallory-like") == "mallory-like"


def test_away_from_a_checkout_it_says_what_to_do(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.delenv("SPECBOOK_DATA", raising=False)
    monkeypatch.setattr(places, "__file__", str(tmp_path / "a" / "b" / "c" / "places.py"))
    with pytest.raises(Problem, match=r"no data/ folder .* set SPECBOOK_DATA"):
        places.repo_dir()


def test_a_word_of_a_command_names_no_folder_of_another_place(tmp_path, monkeypatch):
    monkeypatch.setenv("SPECBOOK_CACHE", str(tmp_path / "cache"))
    assert places.redact_word("/opt/of/somebody/bin/llama-server") == "llama-server"
    assert places.redact_word(str(tmp_path / "cache" / "models" / "a.gguf")) == "$CACHE/models/a.gguf"
    assert places.redact_word("--ctx-size") == "--ctx-size"
