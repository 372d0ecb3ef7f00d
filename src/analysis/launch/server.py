"""A llama-server of our own from start to stop, or somebody else's; to a measurement both look alike."""

import itertools
import os
import re
import secrets
import subprocess
import time
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

from analysis.launch import process as processes
from analysis.launch import registry
from analysis.launch.client import Client, Timeouts
from analysis.launch.config import ServerConfig, server_argv
from analysis.launch.engine import FoundEngine
from analysis.launch.errors import ServerDied, ServerFailed
from analysis.records import Problem
from analysis.records.places import redact

_CLASH = re.compile(r"couldn't bind|address already in use", re.IGNORECASE)
_COMPLAINT = re.compile(r"^(?:[\d.]+ E\s+|error: *)(?P<said>.+)$", re.MULTILINE)
_PORT_ATTEMPTS = 5
_LOGS_KEPT = 20


class Memory(NamedTuple):
    """Resident memory of a server in bytes: after loading, and the highest so far. None where nobody knows.

    It holds what lies in the machine's own memory; weights on a device are not in it.
    """

    loaded: int | None
    peak: int | None


class Server:
    """A llama-server of our own, as a context manager: ready inside the `with` block, gone after it.

    It listens on the loopback address only, with a key made for it alone.

    Args:
        found: the engine to start.
        config: how it is to run.
        port: the port; by default any free one.
        timeouts: of the requests that `client` makes.
        start_timeout_s: how long loading may take.
        stop_timeout_s: how long it may take to stop before it is killed.

    Attributes:
        argv: the command line, once started.
        log: the file with its output, in the user's cache; the last 20 are kept.
    """

    def __init__(
        self,
        found: FoundEngine,
        config: ServerConfig,
        *,
        port: int | None = None,
        timeouts: Timeouts | None = None,
        start_timeout_s: float = 600.0,
        stop_timeout_s: float = 10.0,
    ) -> None:
        if found.server is None:
            raise Problem("a server that somebody else runs cannot be started", expected="a local build")
        self.argv: tuple[str, ...] = ()
        self.config = config
        self._found = found
        self._engine_path = found.server
        self._wanted_port = port
        self._timeouts = timeouts
        self._start_timeout_s = start_timeout_s
        self._stop_timeout_s = stop_timeout_s
        self._key = secrets.token_urlsafe(32)
        self._note = registry.folder() / f"{datetime.now(UTC):%Y%m%dT%H%M%S}-{secrets.token_hex(4)}.json"
        self.log = self._note.with_suffix(".log")
        self._process: subprocess.Popen[bytes] | None = None
        self._client: Client | None = None
        self._url = ""
        self._memory = Memory(None, None)

    def __enter__(self) -> Self:
        """Start the server and wait until it is ready."""
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Stop the server."""
        self.stop()

    @property
    def url(self) -> str:
        """Return where it listens."""
        return self._url

    @property
    def pid(self) -> int | None:
        """Return its process id while it runs."""
        return self._process.pid if self._process else None

    @property
    def client(self) -> Client:
        """Return the connection to it. A request that fails because the process died raises ServerDied.

        Raises:
            Problem: it is not running.
        """
        if self._client is None:
            raise Problem("the server is not running", expected="`with Server(...) as server:`")
        return self._client

    def memory(self) -> Memory:
        """Return its resident memory; the last that was known once it has ended."""
        if self._process is not None and self._memory.loaded is not None:
            _, peak = processes.resident_memory(self._process.pid)
            self._memory = Memory(self._memory.loaded, max(peak or 0, self._memory.peak or 0) or None)
        return self._memory

    def start(self) -> None:
        """Start the server and wait until it is ready. Orphans of killed runs are ended first.

        Raises:
            ServerDied: it ended while loading; the message holds its first complaint.
            Problem: a model file is no GGUF, the port is taken, or it was not ready in time.
        """
        if self._process is not None:
            raise Problem("the server is running already")
        for path in (self.config.model, self.config.drafter):
            if path is not None:
                check_magic(path)
        registry.end_orphans()
        _prune_logs(self.log.parent)
        if self._wanted_port is not None:
            processes.check_port(self._wanted_port)
        for attempt in itertools.count(1):
            try:
                self._start_once(self._wanted_port or processes.free_port())
                return
            except ServerDied as died:
                self.stop()
                clash = any(_CLASH.search(line) for line in died.log_lines)
                if not clash or self._wanted_port is not None or attempt == _PORT_ATTEMPTS:
                    raise
            except BaseException:
                self.stop()
                raise

    def check(self) -> None:
        """Return if the process is alive.

        Raises:
            ServerDied: it is not.
        """
        if self._process is None:
            return
        try:
            status = self._process.wait(0.3)  # a broken connection is seen before the exit status
        except subprocess.TimeoutExpired:
            return
        raise self._died(status, "while it was being used")

    def stop(self) -> None:
        """Stop the server if it runs: ask, then kill. Its key is destroyed, its log kept."""
        self.memory()
        try:
            if self._client is not None:
                self._client.close()
            if self._process is not None:
                processes.end(self._process, self._stop_timeout_s)
        finally:
            self._client = None
            self._process = None
            registry.forget(self._note)
            self._clean_log()

    def last_lines(self, count: int = 5) -> tuple[str, ...]:
        """Return the last lines of the log, without keys, addresses and names of this machine."""
        return tuple(redact(line) for line in self._read_log().splitlines() if line.strip())[-count:]

    def _start_once(self, port: int) -> None:
        key_file = self._note.with_suffix(".key")
        _write_private(key_file, self._key + "\n")
        argv = server_argv(self._engine_path, self.config, port, key_file, self._found.options)
        self.argv = tuple(argv)
        self._url = f"http://127.0.0.1:{port}"
        self._process = processes.spawn(argv, self.log)
        registry.write_note(self._note, self._process.pid, self._engine_path)
        self._wait_until_ready(self._process)
        registry.write_note(self._note, self._process.pid, registry.program_of(self._process.pid, self._engine_path))
        key_file.unlink()  # it has been read
        self._memory = Memory(*processes.resident_memory(self._process.pid))
        self._client = Client(
            self._url, self._key, self._timeouts, when_failed=self.check, longest_draft=self.config.n_max
        )

    def _wait_until_ready(self, process: subprocess.Popen[bytes]) -> None:
        deadline = time.monotonic() + self._start_timeout_s
        with Client(self._url, self._key, Timeouts(connect_s=1, read_s=1)) as client:
            while time.monotonic() < deadline:
                status = process.poll()
                if status is not None:
                    raise self._died(status, "while it was starting")
                try:
                    client.health()
                    client.props()  # answers to our key alone: whoever listens there is ours
                    return
                except ServerFailed:
                    time.sleep(0.05)
        raise Problem(
            f"llama-server was not ready after {self._start_timeout_s:g} s; its last words: {self._last_words()}",
            remedy=f"its log is {self.log}",
        )

    def _died(self, status: int, when: str) -> ServerDied:
        complaint = _COMPLAINT.search(self._read_log())
        said = redact(complaint["said"]) if complaint else self._last_words()
        return ServerDied(
            f"llama-server ended {when} ({processes.describe_exit(status)}): {said}",
            exit_status=status,
            log_lines=self.last_lines(),
            remedy=f"its log is {self.log}",
        )

    def _last_words(self) -> str:
        return " | ".join(self.last_lines(2)) or "it printed nothing"

    def _read_log(self) -> str:
        try:
            return self.log.read_text(encoding="utf-8", errors="replace").replace(self._key, "$KEY")
        except OSError:
            return ""

    def _clean_log(self) -> None:
        if self.log.exists() and self._key.encode() in self.log.read_bytes():
            self.log.write_text(self._read_log(), encoding="utf-8")


class AttachedServer:
    """A llama-server that somebody else runs, as a context manager. It is talked to and otherwise left alone."""

    argv: tuple[str, ...] = ()
    pid = None

    def __init__(self, url: str, api_key: str = "", timeouts: Timeouts | None = None) -> None:
        self.url = url.rstrip("/")
        self.client = Client(self.url, api_key, timeouts)

    def __enter__(self) -> Self:
        """Check that it answers."""
        self.client.health()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Close the connection."""
        self.client.close()

    def memory(self) -> Memory:
        """Return that its memory is not known."""
        return Memory(None, None)

    def check(self) -> None:
        """Return: its process is not ours to watch."""


AnyServer = Server | AttachedServer


def attach(url: str, api_key: str = "", timeouts: Timeouts | None = None) -> AttachedServer:
    """Return a server that somebody else runs, to be used like one of our own."""
    return AttachedServer(url, api_key, timeouts)


def check_magic(path: Path) -> None:
    """Refuse a model file that cannot be read or does not begin like one.

    Raises:
        Problem: there is no such file, or it is no GGUF.
    """
    try:
        with path.open("rb") as file:
            magic = file.read(4)
    except OSError as error:
        raise Problem(f"{path} cannot be read: {error.strerror}", expected="a GGUF model file") from None
    if magic != b"GGUF":
        raise Problem(
            f"{path} is no GGUF file: it begins with {magic!r}",
            expected="the four bytes GGUF",
            remedy="download or convert it again",
        )


def _write_private(path: Path, text: str) -> None:
    path.unlink(missing_ok=True)
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "w", encoding="ascii") as out:
        out.write(text)


def _prune_logs(folder: Path) -> None:
    for log in sorted(folder.glob("*.log"))[:-_LOGS_KEPT]:
        log.unlink(missing_ok=True)
