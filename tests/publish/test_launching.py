"""Chapter 02: what its page shows of a server's command line."""

from pathlib import Path

from analysis.launch.config import ServerConfig, server_argv
from analysis.publish.chapters.launching import shown_command
from analysis.records.places import cache_dir

NAMES = (
    "model host port api-key-file metrics slots ctx-size batch-size ubatch-size threads threads-batch parallel "
    "cache-type-k cache-type-v flash-attn gpu-layers"
)
OPTIONS = frozenset(f"--{name}" for name in NAMES.split())


def command(port: int, key: str) -> str:
    config = ServerConfig(model=cache_dir() / "models" / "target.gguf", gpu_layers=-2)
    return shown_command(server_argv(Path("/opt/build/llama-server"), config, port, cache_dir() / key, OPTIONS))


def test_a_command_line_is_shown_one_option_a_line_without_places_of_this_machine() -> None:
    assert command(8080, "a.key").splitlines()[:4] == [
        "llama-server \\",
        "    --model $CACHE/models/target.gguf \\",
        "    --host 127.0.0.1 \\",
        "    --port $PORT \\",
    ]


def test_two_servers_that_differ_in_port_and_key_are_shown_alike() -> None:
    assert command(8080, "a.key") == command(51397, "b.key")
    assert "--api-key-file $KEY_FILE" in command(8080, "a.key")


def test_a_server_that_is_started_in_another_way_is_shown_otherwise() -> None:
    assert command(8080, "a.key") != shown_command(["llama-server", "--port", "8080"])
