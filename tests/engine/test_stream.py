"""What the real server streams: tokens, totals and steps agree with each other and with its own counters."""

import pytest

from analysis.launch import ServerFailed
from analysis.records import Counters

pytestmark = pytest.mark.engine

CODE = "def add(a, b):\n    return a + b\n\ndef sub(a, b):\n    return a - b\n\ndef mul(a, b):\n    return"
SENTENCES = "The quick brown fox jumps over the lazy dog. " * 3
EMOJI = "Emoji: 😀 😁 😂 🤣 😃 😄 😅 😆 😉 😊"
CHINESE = "你好，今天天气很好。我们去公园玩。"
CHAT = "<|im_start|>user\nSay only: yes<|im_end|>\n<|im_start|>assistant\n"


def counted(before: Counters, after: Counters) -> tuple[int, int, int]:
    """What the server's counters moved by: drafts, drafted tokens, accepted tokens."""
    return (
        after.drafts - before.drafts,
        after.draft_tokens - before.draft_tokens,
        after.accepted_tokens - before.accepted_tokens,
    )


def test_raw_decoding_is_one_evaluation_a_token(raw_server):
    found = raw_server.client.complete(CODE, n_predict=24, seed=1)
    assert found.predicted_n == len(found.tokens) == 24
    assert set(found.drafted) == {0}
    assert len(found.step_ms) == 23
    assert sum(found.step_ms) == pytest.approx(found.predicted_ms, abs=1.0)
    assert found.stop == "limit"
    assert raw_server.client.metrics() == Counters(drafts=0, draft_tokens=0, accepted_tokens=0)


@pytest.mark.parametrize("prompt", [CODE, SENTENCES], ids=["code", "sentences"])
def test_drafted_decoding_agrees_with_the_servers_own_counters(ngram_server, prompt):
    client = ngram_server.client
    before = client.metrics()
    found = client.complete(prompt, n_predict=48, seed=1)
    assert found.blurred == 0
    assert sum(found.drafted) == found.draft_n > 0
    assert sum(found.accepted) + found.trimmed == found.draft_n_accepted
    assert len(found.tokens) == 1 + sum(accepted + 1 for accepted in found.accepted)
    drafts = sum(drafted > 0 for drafted in found.drafted)
    assert counted(before, client.metrics()) == (drafts, found.draft_n, found.draft_n_accepted)


def test_a_stream_and_a_plain_answer_emit_the_same(raw_server):
    client = raw_server.client
    streamed = client.complete(CODE, n_predict=24, seed=1, cache_prompt=False)
    plain = client.complete(CODE, n_predict=24, seed=1, cache_prompt=False, stream=False)
    assert (plain.tokens, plain.text) == (streamed.tokens, streamed.text)
    assert plain.drafted == ()


@pytest.mark.parametrize("prompt", [EMOJI, CHINESE], ids=["emoji", "chinese"])
def test_tokens_of_unfinished_characters_are_not_lost(raw_server, prompt):
    """The stream withholds them; a plain answer does not."""
    client = raw_server.client
    streamed = client.complete(prompt, n_predict=20, seed=1, cache_prompt=False)
    plain = client.complete(prompt, n_predict=20, seed=1, cache_prompt=False, stream=False)
    assert streamed.blurred > 0
    assert streamed.tokens == plain.tokens[: len(streamed.tokens)]
    assert len(streamed.tokens) + streamed.withheld == len(plain.tokens) == 20
    assert len(streamed.step_ms) == len(streamed.tokens) - 1


def test_an_end_of_text_token_is_emitted_and_has_no_text(raw_server):
    client = raw_server.client
    prompt = client.tokenize(CHAT, parse_special=True)
    found = client.complete(prompt, n_predict=64, seed=1)
    assert found.stop == "eos"
    assert len(found.tokens) == found.predicted_n < 64
    assert client.detokenize(found.tokens[:-1]) == found.text


def test_a_prefix_is_reused_and_its_length_is_known(raw_server):
    client = raw_server.client
    prompt = client.tokenize(CODE)
    client.complete(prompt, n_predict=2, seed=1, cache_prompt=False)
    found = client.complete([*prompt, *prompt[:5]], n_predict=2, seed=1)
    assert (found.cache_n, found.prompt_n) == (len(prompt), 5)
    cold = client.complete([*prompt, *prompt[:5]], n_predict=2, seed=1, cache_prompt=False)
    assert (cold.cache_n, cold.prompt_n) == (0, len(prompt) + 5)


def test_a_prompt_longer_than_the_context_is_refused(raw_server):
    with pytest.raises(ServerFailed, match="answered 400: .*exceeds the available context size"):
        raw_server.client.complete([1] * 2000, n_predict=2, seed=1)


def test_text_and_tokens_are_each_other(raw_server):
    tokens = raw_server.client.tokenize("naïve <|im_start|> text")
    assert raw_server.client.detokenize(tokens) == "naïve <|im_start|> text"
    assert len(raw_server.client.tokenize("<|im_start|>", parse_special=True)) == 1


def test_properties_and_slots(ngram_server, local_target):
    assert ngram_server.client.props()["model_path"] == str(local_target)
    (slot,) = ngram_server.client.slots()
    assert slot["speculative"] is True
    assert slot["n_ctx"] == 1024
