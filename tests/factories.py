"""Records for tests: valid ones, with the fields a test cares about given by name."""

from typing import Any

from analysis.records import (
    Cell,
    Counters,
    Engine,
    HostState,
    Label,
    Machine,
    Run,
    Sample,
    ServerLife,
)

AT = "2026-01-01T00:00:00+00:00"


def make_cell(**changes: Any) -> Cell:
    fields = {
        "machine": "test-2c",
        "engine": "0.5.0-dev 0c1e570",
        "backend": "CPU",
        "pair": "smollm2-ngram",
        "spec_type": "ngram-simple",
        "n_max": 4,
        "depth": 256,
        "regime": "continuation",
        "local_tokens": 192,
        "n_predict": 8,
    }
    return Cell(**(fields | changes))


def make_sample(**changes: Any) -> Sample:
    """Eight emitted tokens: one from the fill, then steps that accepted 2 of 4, 0 of 4 and 2 of 3."""
    fields = {
        "index": 0,
        "cell": make_cell().id,
        "prompt_id": "argparse-00",
        "prompt_sha256": "0" * 64,
        "server": "drafted-0",
        "leg": "drafted",
        "seed": 1,
        "started": AT,
        "cache_n": 64,
        "prompt_n": 192,
        "prompt_ms": 90.0,
        "ttft_ms": 95.0,
        "predicted_n": 8,
        "predicted_ms": 60.0,
        "draft_n": 11,
        "draft_n_accepted": 4,
        "drafted": (4, 4, 3),
        "accepted": (2, 0, 2),
        "step_ms": (20.0, 19.0, 21.0),
        "tokens": tuple(range(8)),
        "text": "return value\n",
        "stop": "limit",
        "label": Label(kind="code", share=1.0, why="parses to its last statement"),
    }
    return Sample(**(fields | changes))


def make_life(**changes: Any) -> ServerLife:
    counters = Counters(drafts=3, draft_tokens=11, accepted_tokens=4, accepted_per_pos=(2, 2))
    fields = {
        "id": "drafted-0",
        "pair": "smollm2-ngram",
        "argv": ("llama-server", "--port", "0"),
        "started": AT,
        "ended": AT,
        "warmups": 1,
        "stream": counters,
        "metrics": counters,
        "host_before": make_host(),
        "host_after": make_host(),
    }
    return ServerLife(**(fields | changes))


def make_host(**changes: Any) -> HostState:
    return HostState(**({"at": AT, "load1": 0.1, "swap_in": 0, "swap_out": 0, "major_faults": 0} | changes))


def make_run(**changes: Any) -> Run:
    fields = {
        "id": "smollm2-ngram-test",
        "title": "a run for tests",
        "created": AT,
        "machine": Machine(name="test-2c", cpu="Test CPU", cores=2, memory=2**30, os="Linux"),
        "engine": Engine(source="bundled", version="0.5.0-dev", build=1, commit="0c1e570", backend="CPU"),
        "cells": (make_cell(),),
    }
    return Run(**(fields | changes))
