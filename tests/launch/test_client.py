"""Every way a server can fail is one clear line. A fake server provokes them; the real one is in tests/engine."""

import json
import math
import socket
import time

import pytest

from analysis.launch import Client, ServerFailed, Timeouts, TokensLost
from analysis.launch.metrics import parse_metrics, parse_past
from analysis.records import Counters, Past, Problem

FINAL = {
    "stop": True,
    "content": "",
    "tokens": [],
    "stop_type": "limit",
    "timings": {"cache_n": 5, "prompt_n": 2, "prompt_ms": 3.5, "predicted_n": 4, "predicted_ms": 9.0,
                "draft_n": 3, "draft_n_accepted": 2},
}  # fmt: skip


def token(number: int, content: str, ms: float, draft_n: int = 0, accepted: int = 0, *, count: int = 0) -> dict:
    timings = {"predicted_n": count or number, "predicted_ms": ms}
    if draft_n:
        timings |= {"draft_n": draft_n, "draft_n_accepted": accepted}
    return {"stop": False, "content": content, "tokens": [number], "timings": timings}


def whole_answer(conversation) -> None:
    conversation.begin_stream()
    conversation.event(token(1, "a", 0.001))
    for number in (2, 3, 4):
        conversation.event(token(number, "b", 9.0, 3, 2))
    conversation.event(FINAL)
    conversation.end_stream()


def ask(client: Client):
    return client.complete([1, 2, 3], n_predict=4, seed=7)


def test_a_streamed_request_gives_tokens_text_totals_and_steps(fake_server):
    found = ask(fake_server({"/completion": whole_answer}))
    assert found.tokens == (1, 2, 3, 4)
    assert found.text == "abbb"
    assert (found.cache_n, found.prompt_n, found.prompt_ms) == (5, 2, 3.5)
    assert (found.drafted, found.accepted) == ((3,), (2,))
    assert found.step_ms == pytest.approx((8.999,))
    assert found.stop == "limit"
    assert found.ttft_ms > 0
    assert found.decode_per_s == pytest.approx(1000 / 3)


def test_what_a_request_measured_fills_a_sample(fake_server):
    found = ask(fake_server({"/completion": whole_answer})).measured()
    assert {"tokens", "drafted", "accepted", "step_ms", "cache_n", "ttft_ms", "stop"} <= found.keys()
    assert "trimmed" not in found


def test_every_sampling_setting_is_said(fake_server):
    seen = {}

    def remember(conversation) -> None:
        seen.update(conversation.asked)
        whole_answer(conversation)

    ask(fake_server({"/completion": remember}))
    assert seen["seed"] == 7
    assert seen["temperature"] == 0.0
    assert seen["samplers"] == ["temperature"]
    assert (seen["top_k"], seen["top_p"], seen["min_p"], seen["repeat_penalty"]) == (0, 1.0, 0.0, 1.0)
    assert seen["cache_prompt"] is True
    assert seen["id_slot"] == -1
    assert seen["timings_per_token"] is True


def test_the_key_travels_in_the_header_and_is_in_no_message(fake_server):
    def refuse(conversation) -> None:
        assert conversation.headers["Authorization"] == "Bearer secret"
        conversation.answer({"error": {"code": 401, "message": "Invalid API Key"}}, status=401)

    with pytest.raises(ServerFailed, match=r"answered 401: Invalid API Key; give the server's key") as caught:
        fake_server({"/props": refuse}).props()
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("plain", "whole", "front"),
    [([5], [5], ()), ([5], [1, 5], (1,)), ([5], [1, 5, 2], (1,)), ([5], [5, 2], ()), ([1, 5], [1, 1, 5], (1,))],
)
def test_what_a_model_wants_in_front_is_what_the_server_adds_there(fake_server, plain, whole, front):
    def tokenize(conversation) -> None:
        conversation.answer({"tokens": whole if conversation.asked["add_special"] else plain})

    assert fake_server({"/tokenize": tokenize}).beginning() == front


def test_a_500_is_one_line_with_what_the_server_said(fake_server):
    def fail(conversation) -> None:
        conversation.answer({"error": {"code": 500, "message": "the\nbackend gave up", "type": "server_error"}}, 500)

    with pytest.raises(ServerFailed, match="answered 500: the backend gave up") as caught:
        ask(fake_server({"/completion": fail}))
    assert "\n" not in str(caught.value)


def test_a_page_that_is_no_json_is_said(fake_server):
    client = fake_server({"/props": lambda conversation: conversation.answer("<html>hello</html>")})
    with pytest.raises(ServerFailed, match="did not answer with JSON"):
        client.props()


@pytest.mark.parametrize("tokens", [5, "abc", ["a"], [1.5], [True], {"a": 1}])
def test_tokens_that_are_none_are_said(fake_server, tokens):
    with pytest.raises(ServerFailed, match="did not answer with a list of tokens"):
        fake_server({"/tokenize": lambda c: c.answer({"tokens": tokens})}).tokenize("a")


def test_nesting_without_end_is_no_answer(fake_server):
    with pytest.raises(ServerFailed, match="did not answer with JSON"):
        fake_server({"/props": lambda c: c.answer("[" * 100_000)}).props()


@pytest.mark.parametrize("count", ["1e400", "1.2.3", "e"])
def test_a_counter_that_is_no_number_is_said(fake_server, count):
    page = f"llamacpp:spec_decode_num_drafts_total {count}\n"
    with pytest.raises(ServerFailed, match="holds a counter that is no number"):
        fake_server({"/metrics": lambda c: c.answer(page)}).metrics()


def test_what_a_server_is_is_not_waited_for_as_long_as_what_it_decodes(fake_server, monkeypatch):
    monkeypatch.setattr("analysis.launch.client.FACTS_S", 0.05)
    with pytest.raises(ServerFailed, match=r"GET /health was silent for 0\.05 s"):
        fake_server({"/health": lambda _: time.sleep(0.5)}).health()


@pytest.mark.parametrize("address", ["http://127.0.0.1:99999", f"http://{'x' * 70}.example"])
def test_an_address_that_nobody_can_have(address):
    with pytest.raises(ServerFailed, match="no server answers at"):
        Client(address, timeouts=Timeouts(connect_s=1)).health()


def test_a_server_that_hangs_before_the_answer(fake_server):
    client = fake_server({"/completion": lambda conversation: time.sleep(1)}, read_s=0.2)
    with pytest.raises(ServerFailed, match=r"was silent for 0\.2 s"):
        ask(client)


def test_a_server_that_hangs_in_the_middle(fake_server):
    def hang(conversation) -> None:
        conversation.begin_stream()
        conversation.event(token(1, "a", 0.001))
        time.sleep(1)

    with pytest.raises(ServerFailed, match=r"was silent for 0\.2 s"):
        ask(fake_server({"/completion": hang}, read_s=0.2))


def test_half_a_line_of_json(fake_server):
    def tear(conversation) -> None:
        conversation.begin_stream()
        conversation.event(token(1, "a", 0.001))
        conversation.send("data: " + json.dumps(token(2, "b", 9.0))[:40])
        conversation.end_stream()

    with pytest.raises(ServerFailed, match="broke off inside a message"):
        ask(fake_server({"/completion": tear}))


def test_a_stream_that_is_cut(fake_server):
    def cut(conversation) -> None:
        conversation.begin_stream()
        conversation.event(token(1, "a", 0.001))
        conversation.connection.shutdown(socket.SHUT_RDWR)

    with pytest.raises(ServerFailed, match="the stream of /completion broke off"):
        ask(fake_server({"/completion": cut}))


def test_a_stream_that_just_stops(fake_server):
    def stop(conversation) -> None:
        conversation.begin_stream()
        conversation.event(token(1, "a", 0.001))
        conversation.end_stream()

    with pytest.raises(ServerFailed, match="ended after 1 tokens without its last message"):
        ask(fake_server({"/completion": stop}))


def test_an_error_inside_the_stream(fake_server):
    def fail(conversation) -> None:
        conversation.begin_stream()
        conversation.event(token(1, "a", 0.001))
        conversation.event({"error": {"code": 500, "message": "context is full"}})
        conversation.end_stream()

    with pytest.raises(ServerFailed, match="gave up during the request: context is full"):
        ask(fake_server({"/completion": fail}))


@pytest.mark.parametrize(
    "message",
    [{"content": "x"}, {"stop": False, "content": "x", "tokens": [1]}, {"stop": True, "timings": {}},
     {"stop": False, "content": "x", "tokens": [], "timings": {"predicted_n": 1, "predicted_ms": 1}},
     {"stop": False, "content": "x", "tokens": [1], "timings": {"predicted_n": math.inf, "predicted_ms": 1}}],
    ids=["no stop", "no timings", "empty timings", "no token", "endless"],
)  # fmt: skip
def test_a_build_that_does_not_send_what_is_needed(fake_server, message):
    def send(conversation) -> None:
        conversation.begin_stream()
        conversation.event(message)
        conversation.end_stream()

    with pytest.raises(ServerFailed, match="lacks what was asked for"):
        ask(fake_server({"/completion": send}))


def test_counters_that_contradict_each_other_are_a_problem(fake_server):
    def lie(conversation) -> None:
        conversation.begin_stream()
        conversation.event(token(1, "a", 0.001))
        conversation.event(token(2, "b", 9.0, 3, 3))
        conversation.event(token(3, "c", 19.0, 3, 3))
        conversation.event(FINAL)
        conversation.end_stream()

    with pytest.raises(Problem, match="contradict each other"):
        ask(fake_server({"/completion": lie}))


def withheld(conversation) -> None:
    """Token 2 was withheld: it began a character that token 3 completes."""
    conversation.begin_stream()
    conversation.event(token(1, "a", 0.001))
    conversation.event(token(3, "é", 9.0, count=3))
    final = {**FINAL, "timings": {**FINAL["timings"], "predicted_n": 4, "draft_n": 0, "draft_n_accepted": 0}}
    conversation.event(final)
    conversation.end_stream()


def test_withheld_tokens_are_worked_out_from_the_text(fake_server):
    found = ask(fake_server({"/completion": withheld, "/tokenize": lambda c: c.answer({"tokens": [2, 3]})}))
    assert found.tokens == (1, 2, 3)
    assert found.drafted == (0, 0)
    assert found.blurred == 2
    assert found.withheld == 1  # the fourth token was generated and never sent


def test_withheld_tokens_that_cannot_be_worked_out_are_refused(fake_server):
    client = fake_server({"/completion": withheld, "/tokenize": lambda c: c.answer({"tokens": [4, 5, 3]})})
    with pytest.raises(TokensLost, match="leave this prompt out"):
        ask(client)


def test_nobody_listens():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with pytest.raises(ServerFailed, match="no server answers at"):
        Client(f"http://127.0.0.1:{port}", timeouts=Timeouts(connect_s=1)).health()


@pytest.mark.parametrize("address", ["nonsense", "ftp://127.0.0.1", "http://[::1", ""])
def test_an_address_that_is_none(address):
    with pytest.raises(Problem, match="no address"):
        Client(address)


def test_a_failure_asks_first_whether_the_process_died(fake_server):
    def died() -> None:
        raise Problem("it died")

    client = fake_server({})
    client._when_failed = died
    with pytest.raises(Problem, match="it died"):
        client.props()


def test_metrics_are_none_where_the_server_offers_none(fake_server):
    refuse = {"error": {"code": 501, "message": "This server does not support metrics endpoint."}}
    assert fake_server({"/metrics": lambda c: c.answer(refuse, status=501)}).metrics() is None


def test_metrics_of_speculation_are_read():
    page = """# TYPE llamacpp:spec_decode_num_drafts_total counter
llamacpp:spec_decode_num_drafts_total 93
llamacpp:spec_decode_num_draft_tokens_total 451
llamacpp:spec_decode_num_accepted_tokens_total 1.5e+02
llamacpp:spec_decode_num_accepted_tokens_per_pos_total{position="0"} 100
llamacpp:spec_decode_num_accepted_tokens_per_pos_total{position="1"} 50
"""
    assert parse_metrics(page) == Counters(drafts=93, draft_tokens=451, accepted_tokens=150, accepted_per_pos=(100, 50))


def test_what_a_server_counts_tells_its_process():
    page = "llamacpp:prompt_tokens_total 386\nllamacpp:tokens_predicted_total 1.86e+02\nllamacpp:n_decode_total 79\n"
    assert parse_past(page, "68141307851") == Past(
        began="68141307851", prompt_tokens=386, predicted_tokens=186, decodes=79
    )
    assert parse_past(page, "<script>").began == ""
    assert parse_past("llamacpp:n_decode_total 79\n", "68141307851") is None


def test_metrics_of_a_server_that_never_drafted_are_zero():
    assert parse_metrics("llamacpp:prompt_tokens_total 5\n") == Counters(drafts=0, draft_tokens=0, accepted_tokens=0)


@pytest.mark.parametrize("place", ["http://%s127.0.0.1:8080", "ftp://%shost", "%shost", "http://%shost:port"])
def test_an_address_with_a_password_is_refused_without_repeating_it(place):
    with pytest.raises(Problem, match="--api-key-file") as caught:
        Client(place % "me:hidden@")
    assert "hidden" not in str(caught.value)
