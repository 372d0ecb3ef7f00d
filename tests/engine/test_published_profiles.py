"""Every published row's flags on the synthetic pair: this build takes them all, and serves some of them for real."""

from dataclasses import replace
from itertools import pairwise

import pytest

from analysis.convert.pairs import list_profiles
from analysis.launch import Server, server_argv
from analysis.measure.serving import serving_as_published

pytestmark = pytest.mark.engine


def config_of(profile, target, drafter):
    served = serving_as_published(profile)
    return served.config(target, drafter if served.pair.spec_type.startswith("draft-") else None)


@pytest.mark.parametrize("profile", list_profiles(), ids=lambda profile: profile.name)
def test_this_build_has_every_flag_of_a_published_row(engine, tmp_path, dsv4_target, dsv4_drafter, profile):
    config = config_of(profile.name, dsv4_target, dsv4_drafter)
    argv = server_argv(engine.server, config, 1234, tmp_path / "key", engine.options)
    said = dict(pairwise(argv))
    assert said["--ctx-size"] == str(config.context)
    assert (said["--cache-type-k"], said["--cache-type-v"]) == (profile.kv_k, profile.kv_v)
    assert said["--flash-attn"] == profile.flash_attn
    assert ("--spec-draft-model" in argv) == (config.spec_type != "none")
    if profile.n_max and config.spec_type != "none":
        assert said["--spec-draft-n-max"] == str(profile.n_max)


@pytest.mark.parametrize("name", ["card-b-short-n4", "card-b-kv-q80"])
def test_a_published_row_is_served_on_the_synthetic_pair(engine, dsv4_target, dsv4_drafter, name):
    """With its own flags, but the context, which is cut to what a test may take."""
    config = replace(config_of(name, dsv4_target, dsv4_drafter), context=2048)
    with Server(engine, config) as server:
        found = server.client.complete([40, 41, 42], n_predict=24, seed=1)
    assert len(found.tokens) == 24
    assert max(found.drafted) == min(config.n_max, 5) or config.p_min
