"""What a running server says of itself; what is no llama-server; and an address that is this machine's own."""

import pytest

from analysis.launch import describe, is_local, resolve_engine
from analysis.launch.errors import ServerFailed
from analysis.records import Problem

PROPS = {
    "build_info": "b10300-0c1e570",
    "model_path": "/srv/models/Target <b>.gguf",
    "model_alias": "target",
    "total_slots": 2,
    "default_generation_settings": {"n_ctx": 4096, "params": {}},
}
SLOTS = [{"id": 0, "n_ctx": 4096, "speculative": True, "params": {"speculative.types": "draft-dspark"}}]
MODELS = {"data": [{"id": "target", "meta": {"n_vocab": 49152, "n_params": 134515008}}]}


def saying(answers):
    """Return acts that answer each path with data, or with a status."""

    def act(answer):
        if isinstance(answer, int):
            return lambda conversation: conversation.answer({"error": {"message": "no"}}, status=answer)
        return lambda conversation: conversation.answer(answer)

    return {path: act(answer) for path, answer in answers.items()}


WHOLE = {"/health": {"status": "ok"}, "/props": PROPS, "/slots": SLOTS, "/v1/models": MODELS}


def test_a_server_says_what_it_is(fake_server):
    seen = describe(fake_server(saying(WHOLE)))
    assert seen.model == "Target <b>.gguf"
    assert (seen.context, seen.slots, seen.speculative, seen.kinds) == (4096, 2, True, "draft-dspark")
    assert (seen.vocabulary, seen.parameters) == (49152, 134515008)
    assert seen.silent == ()


def test_what_an_older_server_does_not_say_is_named(fake_server):
    props = {name: value for name, value in PROPS.items() if name != "total_slots"}
    props |= {"default_generation_settings": {}}
    seen = describe(fake_server(saying(WHOLE | {"/props": props, "/slots": 501, "/v1/models": {"data": [{}]}})))
    assert seen.silent == ("context", "slots", "speculative", "vocabulary", "parameters")


def test_the_folder_of_a_servers_file_is_told_nowhere(fake_server):
    props = PROPS | {"model_alias": PROPS["model_path"]}
    seen = describe(fake_server(saying(WHOLE | {"/props": props})))
    assert (seen.model, seen.alias) == ("Target <b>.gguf", "Target <b>.gguf")


def test_a_windows_path_is_a_path(fake_server):
    props = PROPS | {"model_path": r"C:\models\Größe 7B.gguf"}
    assert describe(fake_server(saying(WHOLE | {"/props": props}))).model == "Größe 7B.gguf"


@pytest.mark.parametrize(
    "answers",
    [
        {},
        {"/health": "<html>\x1b[31mhello</html>"},
        {"/health": {"status": "ok"}},
        {"/health": {"status": "ok"}, "/props": {"version": "0.9"}},
        {"/health": []},
    ],
)
def test_what_is_no_llama_server_is_one_line_that_says_so(fake_server, answers):
    with pytest.raises(Problem, match="no llama-server") as caught:
        describe(fake_server(saying(answers)))
    assert str(caught.value).isprintable()
    assert "expected the address of a llama-server" in str(caught.value)


@pytest.mark.parametrize("status", [401, 503])
def test_a_llama_server_that_cannot_answer_now_is_not_called_another(fake_server, status):
    with pytest.raises(ServerFailed, match=f"answered {status}"):
        describe(fake_server(saying(WHOLE | {"/props": status})))


def test_nobody_there_is_one_line():
    with pytest.raises(Problem, match="no server answers at"):
        resolve_engine("http://127.0.0.1:9")


@pytest.mark.parametrize(
    ("url", "local"),
    [
        ("http://127.0.0.1:8080", True),
        ("http://localhost:8080/", True),
        ("http://[::1]:8080", True),
        ("http://10.0.0.7:8080", False),
        ("https://127.0.0.1.example.com", False),
    ],
)
def test_an_address_is_this_machines_own_or_not(url, local):
    assert is_local(url) is local
