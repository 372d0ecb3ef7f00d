"""One request to a pair's server, with everything that was seen on the way. Nothing of it is recorded."""

from dataclasses import dataclass

from analysis.launch import Completion, Memory
from analysis.launch.doctor import Report, examine
from analysis.measure.access import ServerAccess, corpus_of, open_server
from analysis.measure.plan import load_grid
from analysis.measure.prompts import build_prompts
from analysis.measure.serving import serving_as_published, serving_of
from analysis.records import Regime

REGIME: Regime = "recall"


@dataclass(frozen=True)
class FirstRequest:
    """The examination of engine and machine, the server as it ran, and what it answered.

    `context` is what one slot holds in tokens, as the server says; None where it does not.
    """

    report: Report
    argv: tuple[str, ...]
    spec_type: str
    memory: Memory
    context: int | None
    completion: Completion


def first_request(
    pair: str,
    *,
    profile: str = "quick",
    serving: str = "",
    corpus: str = "",
    server: ServerAccess | None = None,
    n_predict: int = 48,
) -> FirstRequest:
    """Start a pair's server, ask it to finish a function that stands in its context, and stop it.

    Args:
        pair: as for `measure_study`.
        profile: as for `measure_study`; its shallowest depth is used.
        serving: as for `measure_study`.
        corpus: as for `measure_study`.
        server: as for `measure_study`.
        n_predict: tokens to generate.

    Raises:
        Problem: see `measure_study`.
    """
    served = serving_as_published(serving) if serving else serving_of(pair)
    grid = load_grid(profile, prompts=1, regimes=[REGIME], n_predict=n_predict, **served.size)
    with open_server(served, server or ServerAccess()) as (running, found):
        report = examine(found)
        prompt = build_prompts(
            corpus_of(corpus),
            running.client.tokenize,
            regime=REGIME,
            depths=grid.depths[:1],
            count=1,
            local_tokens=grid.local_tokens,
            seed=grid.seed,
            bos=running.client.beginning(),
        )[0]
        completion = running.client.complete(prompt.tokens(grid.depths[0]), n_predict=n_predict, seed=grid.seed)
        return FirstRequest(
            report=report,
            argv=running.argv,
            spec_type=served.pair.spec_type,
            memory=running.memory(),
            context=running.client.props().get("default_generation_settings", {}).get("n_ctx"),
            completion=completion,
        )
