import pytest

from analysis.launch import FoundEngine, Server, ServerConfig, resolve_engine


@pytest.fixture(scope="session")
def engine() -> FoundEngine:
    """The llama-server that the environment's variables name, or the bundled one."""
    return resolve_engine()


@pytest.fixture(scope="module")
def raw_server(engine, local_target):
    """A server without speculation."""
    with Server(engine, ServerConfig(model=local_target, context=1024)) as server:
        yield server


@pytest.fixture(scope="module")
def ngram_server(engine, local_target):
    """A server that drafts up to eight tokens from repeated n-grams of three."""
    config = ServerConfig(
        model=local_target,
        spec_type="ngram-simple",
        n_max=8,
        context=1024,
        extra_args=("--spec-ngram-simple-size-n", "3"),
    )
    with Server(engine, config) as server:
        yield server
