"""What is held while a log is read: the life of a server, and the requests that its slots work on."""

from dataclasses import dataclass, field

from analysis.ingest.model import Setup

CLOCK_SLACK = 1.0
"""Seconds by which a log's clock may go back: threads write their lines in turns."""

MOST_STEPS = 1_000_000
"""Steps of a request that are held."""


Slot = tuple[int | None, int | None]
"""A slot and the task that it works on."""


def seconds(clock: bytes) -> float:
    """Return the seconds since a server's start that a log shows as minutes.seconds.milliseconds.microseconds."""
    minutes, rest = divmod(int(clock.replace(b".", b"")), 10**8)
    return 60 * minutes + rest / 1e6


@dataclass(slots=True)
class Request:
    """What is known so far of the request that a slot works on."""

    line: int
    slot: int | None = None
    task: int | None = None
    texts: dict[str, bytes] = field(default_factory=dict)
    draft_line: int = 0
    drafted_steps: list[int] = field(default_factory=list)
    accepted_steps: list[int] = field(default_factory=list)
    restored: int = 0
    replay: bool = False
    tail_only: bool = True

    def add_step(self, accepted: int, drafted: int, tail: bytes | None) -> None:
        """Add a line that shows one verification step.

        A step can be shown twice, by a line that ends there and by one that goes on with the new length, which comes
        after it and not for the last step. What follows a restored checkpoint repeats the accepted tokens and is no
        step of its own.
        """
        if tail == b", new n_":
            if not self.tail_only:
                return
        elif self.tail_only:
            self.tail_only = False
            self.drafted_steps.clear()
            self.accepted_steps.clear()
        if tail == b" (restore":
            self.restored += 1
            self.replay = True
        elif self.replay:
            self.replay = False
            return
        if len(self.drafted_steps) < MOST_STEPS:
            self.drafted_steps.append(drafted)
            self.accepted_steps.append(accepted)


@dataclass(slots=True)
class Server:
    """A life of a server, as its log shows it.

    `stopped` says which request a slot has ended without a report of it: the report may follow.
    """

    origin: str
    number: int = 1
    clock: bytes = b""
    mixed: int = 0
    whole: bool = False
    build: int | None = None
    commit: str = ""
    spec_types: list[str] = field(default_factory=list)
    limits: dict[str, float] = field(default_factory=dict)
    checkpoints: bool = False
    requests: dict[Slot, Request] = field(default_factory=dict)
    stopped: dict[int | None, Slot] = field(default_factory=dict)
    last_slot: Slot = (None, None)
    worked: bool = False
    name: str = field(init=False)

    def __post_init__(self) -> None:
        """Name what tells this life apart within its file."""
        self.name = f"{self.origin} {self.number}".strip()

    def tick(self, clock: bytes) -> None:
        """Take the clock of a line, and count it if it is from before the last one."""
        before, self.clock = self.clock, clock
        if self.worked and before and not (len(clock) == len(before) and clock >= before):
            self.mixed += seconds(clock) < seconds(before) - CLOCK_SLACK

    def setup(self) -> Setup:
        """Return what the log said of the server."""
        whole = {name: int(self.limits[name]) for name in ("n_max", "n_min") if name in self.limits}
        return Setup(
            server=self.name,
            build=self.build,
            commit=self.commit,
            spec_types=tuple(self.spec_types),
            p_min=self.limits.get("p_min"),
            checkpoints=self.checkpoints,
            whole=self.whole,
            mixed=self.mixed,
            n_max=whole.get("n_max"),
            n_min=whole.get("n_min"),
        )
