"""The blocks of a large log searched by another process, while this one reads what was found in those before."""

import os
import signal
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import BrokenExecutor, Future, ProcessPoolExecutor
from itertools import chain, islice
from multiprocessing import get_context

from analysis.ingest.blocks import Block
from analysis.ingest.endings import Ending

ALONE = 32
"""Blocks of a file that are searched by the process that reads them: a smaller file is read before another starts."""

_MOST = 3
_WAITING = 4
"""Processes at most, and blocks that wait for each: what is held stays bounded."""

Search = Callable[[bytes], Iterable[Ending]]
Searched = tuple[Block, str, Iterable[Ending]]


def ahead(blocks: Iterator[tuple[Block, str]], search: Search) -> Iterator[Searched]:
    """Yield blocks with their encoding and what a search finds in each, in order.

    The result does not depend on who searches: where no process can be started, or one is killed, this one goes on.

    Args:
        blocks: whole lines, as `blocks.blocks` yields them.
        search: finds the endings of requests in a block; a function that other processes can import.
    """
    for block, encoding in islice(blocks, ALONE):
        yield block, encoding, search(block.data)
    following = next(blocks, None)
    if following is None:
        return
    processes = min(_MOST, len(os.sched_getaffinity(0)) - 1)
    yield from _searched(chain([following], blocks), search, processes)


def _searched(blocks: Iterable[tuple[Block, str]], search: Search, processes: int) -> Iterator[Searched]:
    pool = _pool(processes)
    waiting: deque[tuple[Block, str, Future[list[Ending]] | None]] = deque()
    try:
        for block, encoding in blocks:
            waiting.append((block, encoding, _asked(pool, search, block)))
            if len(waiting) > _WAITING * processes:
                yield _answered(search, *waiting.popleft())
        while waiting:
            yield _answered(search, *waiting.popleft())
    finally:
        if pool is not None:
            pool.shutdown(cancel_futures=True)


def _pool(processes: int) -> ProcessPoolExecutor | None:
    try:
        # A fork would take threads' locks with it; Ctrl-C is for the process that reads.
        context = get_context("spawn")
        ignored = (signal.SIGINT, signal.SIG_IGN)
        return ProcessPoolExecutor(processes, context, signal.signal, ignored) if processes > 0 else None
    except (OSError, ImportError, NotImplementedError):
        return None  # a system without shared semaphores


def _asked(pool: ProcessPoolExecutor | None, search: Search, block: Block) -> Future[list[Ending]] | None:
    try:
        return pool.submit(_listed, search, block.data) if pool is not None else None
    except BrokenExecutor:
        return None


def _answered(search: Search, block: Block, encoding: str, asked: Future[list[Ending]] | None) -> Searched:
    try:
        return block, encoding, search(block.data) if asked is None else asked.result()
    except BrokenExecutor:
        return block, encoding, search(block.data)


def _listed(search: Search, data: bytes) -> list[Ending]:
    return list(search(data))
