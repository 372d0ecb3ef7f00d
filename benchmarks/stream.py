"""Decode rate of the streamed, per-step measurement over that of plain requests: one server, interleaved."""

import psutil

from analysis.convert.fetch import fetch
from analysis.convert.pairs import load_pair
from analysis.launch import Server, ServerConfig, resolve_engine
from analysis.measure.corpus import Corpus
from analysis.measure.prompts import build_prompts
from analysis.stats import speed_ratio

PAIRS = 24
N_PREDICT = 192


def measure(pair_name: str = "smollm2-raw") -> list[dict[str, str]]:
    """Return the ratio of decode rates, streamed over plain, with its interval over prompts."""
    pair = load_pair(pair_name)
    config = ServerConfig(model=fetch(pair.target), context=pair.context, threads=psutil.cpu_count(logical=False) or 1)
    plain_rate, streamed_rate = [], []
    with Server(resolve_engine(), config) as server:
        prompts = build_prompts(
            Corpus.standard_library(),
            server.client.tokenize,
            regime="continuation",
            depths=[256],
            count=PAIRS + 1,
            local_tokens=256,
        )
        for number, prompt in enumerate(prompts):
            arms = [(True, streamed_rate), (False, plain_rate)]
            for stream, rates in arms if number % 2 else reversed(arms):
                # a prompt repeated in one life is safe here: the cache is off and nothing drafts
                done = server.client.complete(
                    prompt.tokens(256), n_predict=N_PREDICT, seed=number, cache_prompt=False, stream=stream
                )
                if number:  # the first pair warms up
                    rates.append(done.decode_per_s)
    ratio = speed_ratio(plain_rate, streamed_rate, range(len(plain_rate)))
    return [
        {
            "quantity": "streamed over plain decode rate",
            "measured": f"{ratio.estimate:.3f} [{ratio.low:.3f}, {ratio.high:.3f}]",
            "target": "≥ 0.98",
            "note": f"{PAIRS} prompts of {N_PREDICT} tokens, interleaved, 95 % {ratio.method}",
        }
    ]
