"""Who measures what: the samples of a grid, dealt to workers in blocks. Knows nothing of processes or networks.

A block is one prompt at one depth and in one regime on every leg: what a ratio pairs stays on one worker. Machines on
which the grid has the same cells share it; machines on which it has others (another processor, another backend) measure
all of it for themselves, because a cell's numbers are those of one kind of machine.

A worker that is lost returns what is left of its block. Its finished samples stand, so that another worker then
measures the other leg; it does so in the same cells, that is on a machine of the same kind.
"""

from collections import deque
from collections.abc import Callable, Sequence
from itertools import groupby

from analysis.measure.grid import Task

Kind = frozenset[str]
"""Machines of one kind: the ids of the cells that the grid has on them."""


class Deal:
    """The samples that are still to be measured, and the hands they are in."""

    def __init__(self, is_done: Callable[[Task], bool]) -> None:
        self._is_done = is_done
        self._waiting: dict[Kind, deque[tuple[Task, ...]]] = {}
        self._kinds: dict[str, Kind] = {}
        self._hands: dict[str, deque[Task]] = {}

    def join(self, worker: str, planned: Sequence[Task]) -> None:
        """Let a worker take part; `planned` is the whole grid on its machine, in the order of measuring."""
        kind = frozenset(task.cell.id for task in planned)
        if kind not in self._waiting:
            self._waiting[kind] = deque(self._blocks(planned))
        self._kinds[worker] = kind
        self._hands[worker] = deque()

    def next(self, worker: str) -> Task | None:
        """Return what a worker measures next: the rest of its block, else the first of a new one, else nothing."""
        hand, waiting = self._hands[worker], self._waiting[self._kinds[worker]]
        if not hand and waiting:
            hand.extend(waiting.popleft())
        return hand[0] if hand else None

    def measured(self, worker: str) -> None:
        """Note that the sample which `next` gave to a worker is recorded."""
        self._hands[worker].popleft()

    def leave(self, worker: str) -> None:
        """Let a worker go, and give what is left of its block to whoever asks next."""
        rest = tuple(self._hands.pop(worker, ()))
        kind = self._kinds.pop(worker, None)
        if rest and kind is not None:
            self._waiting[kind].appendleft(rest)

    @property
    def missing(self) -> int:
        """Return how many samples are still to be measured, those in hand among them."""
        waiting = sum(len(block) for blocks in self._waiting.values() for block in blocks)
        return waiting + sum(len(hand) for hand in self._hands.values())

    def _blocks(self, planned: Sequence[Task]) -> list[tuple[Task, ...]]:
        blocks = groupby(planned, key=lambda task: (task.cell.depth, task.cell.regime, task.prompt_number))
        rest = (tuple(task for task in block if not self._is_done(task)) for _, block in blocks)
        return [block for block in rest if block]
