"""Caches and buffers as estimated from headers, beside what the engine says it allocated."""

import re

import pytest

from analysis.convert.gguf import read_gguf
from analysis.convert.memory import Serving, estimate_memory
from analysis.launch import Server, ServerConfig

pytestmark = pytest.mark.engine

MIB = 1 << 20


def allocated(engine, **settings) -> tuple[float, float]:
    """Return the MiB of caches and of computation that a server names while it loads, over all models."""
    with Server(engine, ServerConfig(extra_args=("--verbose",), **settings)) as server:
        text = server.log.read_text(errors="replace")
    cache = sum(map(float, re.findall(r"(?:KV|state) buffer size = +([\d.]+) MiB", text)))
    # A context is planned more than once while it loads; what it was last planned with stays.
    parts = re.split(r"constructing llama_context", text)[1:]
    compute = [re.findall(r"compute buffer size = +([\d.]+) MiB", part) for part in parts]
    return cache, sum(float(sizes[-1]) for sizes in compute if sizes)


@pytest.mark.parametrize("context", [1024, 8192])
def test_a_plain_model(engine, local_target, context):
    cache, compute = allocated(engine, model=local_target, context=context)
    found = estimate_memory(read_gguf(local_target), Serving(context=context))
    assert found.cache / MIB == pytest.approx(cache, abs=0.1)
    assert found.buffers / MIB == pytest.approx(compute, rel=0.05)


@pytest.mark.parametrize(("context", "parallel"), [(1024, 1), (8192, 1), (2048, 2)])
def test_the_synthetic_pair(engine, dsv4_target, dsv4_drafter, context, parallel):
    """The engine names sizes to a hundredth of a MiB, of eight caches; buffers are estimated from above.

    At short contexts the rows for the drafter's input, which the engine does not name, are most of the difference.
    """
    cache, compute = allocated(
        engine,
        model=dsv4_target,
        drafter=dsv4_drafter,
        spec_type="draft-dspark",
        n_max=5,
        context=context,
        parallel=parallel,
    )
    serving = Serving(context=context, parallel=parallel, rollback=5)
    target = estimate_memory(read_gguf(dsv4_target), serving)
    drafter = estimate_memory(read_gguf(dsv4_drafter), serving, "drafter")
    assert (target.cache + drafter.cache) / MIB == pytest.approx(cache, abs=0.05)
    assert compute < (target.buffers + drafter.buffers) / MIB < 2.2 * compute
