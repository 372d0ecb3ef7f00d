"""Finding, starting, watching and stopping llama-server; talking to it; what the host is doing."""
