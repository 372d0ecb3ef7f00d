"""The log, the stream and the counters of the real server, read as somebody else's: all three tell the same steps."""

from io import BytesIO

import pytest

from analysis.ingest.checks import check
from analysis.ingest.gather import gather, ingest
from analysis.ingest.read import read_stream
from analysis.launch import Server, ServerConfig

pytestmark = pytest.mark.engine

PROMPTS = (
    "def add(a, b):\n    return a + b\n\ndef sub(a, b):\n    return a - b\n\ndef mul(a, b):\n    return",
    "The quick brown fox jumps over the lazy dog. The quick brown fox",
)


def test_a_log_is_read_into_the_steps_that_the_stream_showed(engine, local_target) -> None:
    config = ServerConfig(
        model=local_target,
        spec_type="ngram-simple",
        n_max=8,
        context=1024,
        extra_args=("--spec-ngram-simple-size-n", "3", "-lv", "5"),
    )
    with Server(engine, config) as server:
        streamed = [server.client.complete(prompt, n_predict=48, seed=1) for prompt in PROMPTS]
        counters = server.client.metrics()
        log = server.log
    found = ingest([log])
    requests = [r for r in found.readings if r.format == "llama-server request" and r.drafted]
    drafted = [found for found in streamed if found.draft_n]
    assert [(r.drafted, r.accepted) for r in requests] == [(s.draft_n, s.draft_n_accepted) for s in drafted]
    assert sum(r.steps.value or 0 for r in requests) == counters.drafts
    assert [r.step_drafted for r in requests] == [tuple(d for d in s.drafted if d) for s in drafted]
    assert [r.depth for r in requests] == [s.cache_n + s.prompt_n for s in drafted]
    levels = {one.gate: one.level for one in check(found)}
    assert levels["drafts-happened"] == levels["counters-sound"] == "pass"


def test_a_page_of_metrics_is_the_clients_counters(ngram_server) -> None:
    ngram_server.client.complete(PROMPTS[0], n_predict=32, seed=3)
    counters = ngram_server.client.metrics()
    page = "".join(
        f"llamacpp:spec_decode_num_{name}_total {value}\n"
        for name, value in (
            ("drafts", counters.drafts),
            ("draft_tokens", counters.draft_tokens),
            ("accepted_tokens", counters.accepted_tokens),
        )
    ) + "".join(
        f'llamacpp:spec_decode_num_accepted_tokens_per_pos_total{{position="{k}"}} {count}\n'
        for k, count in enumerate(counters.accepted_per_pos)
    )
    (reading,) = gather(read_stream(BytesIO(page.encode()), "metrics")).readings
    assert reading.fit
    assert reading.survival_counts == counters.accepted_per_pos
    assert reading.steps.value == counters.drafts
