"""Several requests at once, each on a slot of its own, and all slots busy for as long as it counts.

Prompts are asked in groups of as many as there are requests at once: the first group of a cell holds its first prompts,
the next group the next ones. A prompt's slot is its place in the group.

Before a group is asked, each slot evaluates its own context, one slot after another. The requests that count then find
it in the cache, all but its last token, and start to decode together: else the first ones would wait, in the middle of
a step, while the contexts of the others are evaluated.

A slot whose request is done asks it again, until the last request that counts is done; such *companions* are discarded.
So every recorded step was taken beside as many other requests as the cell says, whoever finishes first. A prompt
that is recorded already, because a run goes on where it was cut off, is a companion from the beginning, and so are the
first prompts of the cell where its last group would leave slots idle. No prompt is recorded twice.

What that says of speed:

- The *decode rate* of a sample is that of its request: its tokens over the time its own steps took. A step's time is
  that of one evaluation, in which the server drafts for all slots and verifies the drafts of all of them. Some drafted
  steps take much longer than most, and few raw ones do. Why was not isolated; a request that begins or ends beside
  others gives its slot fewer rows than they have. Such steps belong to serving requests of this length and stay in.
- The *throughput* is what the server emits a second while all slots decode such requests: the requests at once times
  the pooled decode rate, for each second of the server is a second of that many requests. Filling the cache is in
  neither.
- The ratio against raw is the paired ratio of decode rates, with as many raw requests at once.
"""

from collections.abc import Callable, Collection
from concurrent.futures import ThreadPoolExecutor, wait
from threading import Event, Lock

from analysis.launch import Completion


def group_of(first: int, at_once: int, prompts: int) -> list[int]:
    """Return the numbers of the prompts that are asked together, slot by slot.

    Args:
        first: the first prompt of the group.
        at_once: requests at once.
        prompts: the prompts of the cell; beyond the last, the first ones keep it company.
    """
    return [(first + slot) % prompts for slot in range(at_once)]


def ask_together(
    ask: Callable[[int], Completion], slots: int, counting: Collection[int]
) -> tuple[dict[int, Completion], list[Completion]]:
    """Keep slots busy until the first request of each one that counts is done; return those, and all others.

    Args:
        ask: makes the request of a slot and waits for its answer; called from a thread for each slot.
        slots: how many.
        counting: the slots whose first answer is wanted.

    Raises:
        Problem: a request failed; none of the group counts then.
    """
    waiting, enough, lock = set(counting), Event(), Lock()

    def keep_busy(slot: int) -> list[Completion]:
        answers: list[Completion] = []
        try:
            while not answers or not enough.is_set():
                answers.append(ask(slot))
                with lock:
                    waiting.discard(slot)
                    if not waiting:
                        enough.set()
        except BaseException:
            enough.set()
            raise
        return answers

    with ThreadPoolExecutor(max_workers=slots) as pool:
        try:
            busy = [pool.submit(keep_busy, slot) for slot in range(slots)]
            wait(busy)
        finally:
            enough.set()  # also at Ctrl-C: a companion would go on for ever
        answers = [future.result() for future in busy]
    wanted = {slot: answers[slot][0] for slot in counting}
    return wanted, [a for slot, found in enumerate(answers) for a in (found[1:] if slot in wanted else found)]
