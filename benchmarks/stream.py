"""Decode rate of the streamed, per-step measurement over that of plain requests: one server, interleaved.

What the instrument costs while a model decodes is what it asks of the server beyond a plain request: a message for
every token with the counters in it, written and fetched beside the decoding. Everything else it does (counters, the
host's state, the journal) is done between requests. Both rates are the server's own, over the same prompts, without and
with a drafter.
"""

from statistics import harmonic_mean

from analysis.launch import Server, resolve_engine
from analysis.measure.corpus import Corpus
from analysis.measure.legs import leg_of
from analysis.measure.prompts import build_prompts
from analysis.measure.serving import serving_of
from analysis.stats import Interval, speed_ratio

PAIRS = {"smollm2-raw": "without a drafter", "smollm2-dspark": "with one"}
PROMPTS, N_PREDICT, DEPTH = 24, 128, 128
ORDERS = ((True, False, False, True), (False, True, True, False))  # both ways twice a prompt, so that drift cancels


def measure() -> list[dict[str, str]]:
    """Return the rows of the README's table."""
    rows = []
    for name, words in PAIRS.items():
        ratio = streamed_over_plain(name)
        low, high = ratio.limits or (float("nan"), float("nan"))
        rows.append(
            {
                "quantity": f"decode rate of the streamed measurement over plain requests, {words}",
                "measured": f"{ratio.estimate:.3f} [{low:.3f}, {high:.3f}]",
                "target": "≥ 0.98",
                "note": f"{ratio.n} prompts of {N_PREDICT} tokens, each way twice, interleaved, 95 % {ratio.method}",
            }
        )
    return rows


def streamed_over_plain(pair: str) -> Interval:
    """Return the ratio of decode rates with its interval over prompts, each of which is asked for both ways."""
    leg, _ = leg_of(serving_of(pair))
    rates: dict[bool, list[float]] = {True: [], False: []}
    with Server(resolve_engine(), leg.config) as server:
        prompts = build_prompts(
            Corpus.standard_library(),
            server.client.tokenize,
            regime="continuation",
            depths=[DEPTH],
            count=PROMPTS + 1,
            local_tokens=DEPTH,
            bos=server.client.beginning(),
        )
        for number, prompt in enumerate(prompts):
            found: dict[bool, list[float]] = {True: [], False: []}
            for stream in ORDERS[number % 2]:
                # Without the cache a prompt may be asked for again; past the end of the text all go on.
                done = server.client.complete(
                    prompt.tokens(DEPTH),
                    n_predict=N_PREDICT,
                    seed=number,
                    cache_prompt=False,
                    ignore_eos=True,
                    stream=stream,
                )
                found[stream].append(done.decode_per_s)
            if number:  # the first prompt warms up
                for stream, of_prompt in found.items():
                    rates[stream].append(harmonic_mean(of_prompt))  # both emitted as many tokens
    return speed_ratio(rates[False], rates[True])


if __name__ == "__main__":
    for line in measure():
        print("; ".join(line.values()))
