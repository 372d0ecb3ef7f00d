"""The command line for a server, as the bundled build understands it."""

from pathlib import Path

import pytest

from analysis.launch import ServerConfig, server_argv
from analysis.launch.engine import parse_options
from analysis.records import Problem

# What the bundled build's --help lists, as far as it matters here.
OPTIONS = parse_options("""
--model FNAME
--host HOST
--port PORT
--api-key-file FNAME
--metrics
--slots, --no-slots
--ctx-size N
--batch-size N
--ubatch-size N
--threads N
--threads-batch N
--parallel N
--cache-type-k TYPE
--cache-type-v TYPE
--flash-attn [on|off|auto]
--gpu-layers N
--spec-type none,draft-dspark,ngram-simple
--spec-draft-model FNAME
--spec-draft-ngl N
--spec-draft-n-max N
--spec-draft-n-min N
--spec-draft-p-min P
--spec-ngram-simple-size-m N
--spec-ngram-mod-n-max N
--spec-ngram-mod-n-min N
--slot-save-path PATH
--fit [on|off]
--cache-ram N
--context-shift, --no-context-shift
--offline
--ui, --webui, --no-ui, --no-webui
""")
STEADY = ["--fit", "off", "--cache-ram", "0", "--no-context-shift", "--offline", "--no-ui"]


def argv(options=OPTIONS, **settings) -> list[str]:
    config = ServerConfig(**({"model": Path("/models/target.gguf")} | settings))
    return server_argv(Path("/bin/llama-server"), config, 8080, Path("/private/key"), options)


def test_a_raw_server():
    assert argv(threads=2) == [
        "/bin/llama-server",
        *("--model", "/models/target.gguf"),
        *("--host", "127.0.0.1"),
        *("--port", "8080"),
        *("--api-key-file", "/private/key"),
        "--metrics",
        "--slots",
        *("--ctx-size", "4096"),
        *("--batch-size", "2048"),
        *("--ubatch-size", "512"),
        *("--threads", "2"),
        *("--threads-batch", "2"),
        *("--parallel", "1"),
        *("--cache-type-k", "f16"),
        *("--cache-type-v", "f16"),
        *("--flash-attn", "auto"),
        *STEADY,
    ]


def test_a_server_with_a_drafter():
    words = argv(
        drafter=Path("/models/drafter.gguf"),
        spec_type="draft-dspark",
        n_max=5,
        n_min=1,
        p_min=0.5,
        gpu_layers=99,
        drafter_gpu_layers=-2,
        slot_save_path=Path("/saved"),
        extra_args=("--prio", "1"),
    )
    assert words[words.index("--flash-attn") :] == [
        *("--flash-attn", "auto"),
        *("--gpu-layers", "99"),
        *("--spec-type", "draft-dspark"),
        *("--spec-draft-model", "/models/drafter.gguf"),
        *("--spec-draft-ngl", "all"),
        *("--spec-draft-n-max", "5"),
        *("--spec-draft-n-min", "1"),
        *("--spec-draft-p-min", "0.5"),
        *("--slot-save-path", "/saved"),
        *STEADY,
        *("--prio", "1"),
    ]


@pytest.mark.parametrize(
    ("spec_type", "flag"),
    [("ngram-simple", "--spec-ngram-simple-size-m"), ("ngram-mod", "--spec-ngram-mod-n-max")],
)
def test_draft_free_methods_take_n_max_by_a_name_of_their_own(spec_type, flag):
    words = argv(spec_type=spec_type, n_max=12)
    assert words[words.index(flag) + 1] == "12"


def test_lookup_that_could_never_draft_is_refused():
    """ngram-simple proposes at least as many tokens as it looks up."""
    with pytest.raises(Problem, match="n_max 8 and n-grams of 12 drafts nothing"):
        argv(spec_type="ngram-simple", n_max=8)
    assert argv(spec_type="ngram-simple", n_max=8, extra_args=("--spec-ngram-simple-size-n", "3"))


def test_every_slot_gets_the_whole_context():
    words = argv(context=1000, parallel=3)
    assert words[words.index("--ctx-size") + 1] == "3000"


def test_a_name_that_begins_with_a_dash_stays_a_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words = argv(model=Path("--help.gguf"))
    assert words[words.index("--model") + 1] == str(tmp_path / "--help.gguf")


def test_what_a_build_does_not_know_is_left_out_where_that_is_safe():
    words = argv(options=OPTIONS - {"--fit", "--no-ui"})
    assert "--fit" not in words
    assert words[-1] == "--no-webui"


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"spec_type": "draft-simple", "drafter": Path("d.gguf")}, "n_max of at least 1"),
        ({"spec_type": "none", "n_max": 4}, "nothing would draft"),
        ({"spec_type": "none", "drafter": Path("d.gguf")}, "nothing would draft"),
        ({"spec_type": "ngram-simple", "n_max": 12, "n_min": 2}, "has no n_min"),
        ({"spec_type": "ngram-simple", "n_max": 12, "p_min": 0.5}, "has no p_min"),
        ({"model": None}, "without a model"),
    ],
)
def test_a_configuration_that_contradicts_itself_is_refused(settings, complaint):
    with pytest.raises(Problem, match=complaint):
        argv(**settings)


def test_a_build_too_old_for_the_measurement_is_refused():
    with pytest.raises(Problem, match=r"has no option --spec-type; expected a llama-server of"):
        argv(options=OPTIONS - {"--spec-type"}, spec_type="ngram-simple", n_max=12)
