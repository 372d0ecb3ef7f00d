"""What a server that somebody else runs says of itself, and what it does not say."""

import ipaddress
import re
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from analysis.launch.client import Client
from analysis.launch.errors import ServerFailed
from analysis.records import Problem

_SEPARATOR = re.compile(r"[/\\]")
_NO_SERVER = "the address of a llama-server of llama.cpp, without a path behind the port"


@dataclass(frozen=True)
class Attached:
    """A running server by its own account. None, or an empty text, where its version does not say.

    `model` is the file's name and `alias` the model's, without folders, `context` what one slot holds in tokens,
    `speculative` whether its slots can draft, `kinds` how they drafted last. `vocabulary` and `parameters` are the
    model's, as counted when it was loaded, so they do not follow from the file's name. `silent` names what it does not
    say.
    """

    model: str
    alias: str
    build: str
    context: int | None
    slots: int | None
    speculative: bool | None
    kinds: str
    vocabulary: int | None
    parameters: int | None
    silent: tuple[str, ...]


def describe(client: Client) -> Attached:
    """Return what a server says in `/props`, `/slots` and `/v1/models`.

    Raises:
        Problem: it is no llama-server, or is one that does not say what it is.
        ServerFailed: it cannot be reached, or wants a key.
    """
    props = _properties(client)
    slots = _asked(client.slots) or []
    meta = _asked(client.model_facts) or {}
    settings = props.get("default_generation_settings")
    context = _number(settings.get("n_ctx")) if isinstance(settings, dict) else None
    speculative = {bool(slot["speculative"]) for slot in slots if isinstance(slot, dict) and "speculative" in slot}
    found = {
        "model": _SEPARATOR.split(str(props.get("model_path") or ""))[-1],
        "context": context or _slot_context(slots),
        "slots": _number(props.get("total_slots")) or len(slots) or None,
        "speculative": any(speculative) if speculative else None,
        "vocabulary": _number(meta.get("n_vocab")),
        "parameters": _number(meta.get("n_params")),
    }
    return Attached(
        # Without an alias of its own, a server gives the path of its file.
        alias=_SEPARATOR.split(str(props.get("model_alias") or ""))[-1],
        build=str(props.get("build_info") or ""),
        kinds=_kinds(slots),
        silent=tuple(name for name, value in found.items() if value in (None, "")),
        **found,  # type: ignore[arg-type]  # mypy checks ** against every field's type
    )


def is_local(url: str) -> bool:
    """Return whether an address is this machine's own: only then do its processor and load say something."""
    host = urlsplit(url).hostname or ""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _properties(client: Client) -> dict[str, Any]:
    try:
        client.health()
        props = client.props()
    except ServerFailed as failed:
        # A refused key and a model that still loads are a llama-server's; a page or a missing path are another's.
        if re.search(r"answered (?:404|405|501)|did not answer with|did not say that", str(failed)):
            raise Problem(f"no llama-server answers there: {failed}", expected=_NO_SERVER) from None
        raise
    if not props.get("build_info"):
        raise Problem("the server's /props lack build_info: it is no llama-server", expected=_NO_SERVER)
    return props


def _asked(question: Any) -> Any:
    """Return an answer, or None where the server does not offer it: /slots can be switched off."""
    try:
        return question()
    except ServerFailed:
        return None


def _kinds(slots: list[Any]) -> str:
    for slot in slots:
        params = slot.get("params") if isinstance(slot, dict) else None
        if isinstance(params, dict) and (kinds := params.get("speculative.types")):
            return str(kinds)
    return ""


def _slot_context(slots: list[Any]) -> int | None:
    contexts = [_number(slot.get("n_ctx")) for slot in slots if isinstance(slot, dict)]
    return min((context for context in contexts if context), default=None)


def _number(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None
