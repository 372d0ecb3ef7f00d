"""Finding, starting, watching and stopping llama-server; talking to it; what the host is doing."""

from analysis.launch.attached import Attached, describe, is_local
from analysis.launch.client import Client, Timeouts
from analysis.launch.completion import Completion
from analysis.launch.config import ServerConfig, server_argv
from analysis.launch.doctor import Report, examine
from analysis.launch.engine import FoundEngine, read_key, resolve_engine, tool
from analysis.launch.errors import ServerDied, ServerFailed, TokensLost
from analysis.launch.finding import Finding
from analysis.launch.host import read_host_state, read_machine
from analysis.launch.server import AnyServer, AttachedServer, Memory, Server, attach
from analysis.launch.steps import Mark, Steps, derive_steps

__all__ = [
    "AnyServer",
    "Attached",
    "AttachedServer",
    "Client",
    "Completion",
    "Finding",
    "FoundEngine",
    "Mark",
    "Memory",
    "Report",
    "Server",
    "ServerConfig",
    "ServerDied",
    "ServerFailed",
    "Steps",
    "Timeouts",
    "TokensLost",
    "attach",
    "derive_steps",
    "describe",
    "examine",
    "is_local",
    "read_host_state",
    "read_key",
    "read_machine",
    "resolve_engine",
    "server_argv",
    "tool",
]
