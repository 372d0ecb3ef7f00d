"""A Dask scheduler and its workers: reached by address or started here, and asked one by one."""

import logging
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError
from contextlib import ExitStack, contextmanager
from time import monotonic, sleep
from typing import Any

import dask
from distributed import Client, Future, KilledWorker, LocalCluster

from analysis.launch import registry
from analysis.measure.bench import Job, Seat, WorkerReplaced, seat_of
from analysis.records import Problem

LOCAL = "local"
"""The scheduler that is started here, with workers of this machine."""

ENGINE = "engine"
"""The resource of which a worker that measures declares one."""

CONNECT_S, SEAT_S = 10.0, 10.0
"""How long to wait for a scheduler, and at the beginning for a worker that declares an engine."""

ANSWER_S = 10.0
"""How long to wait for an answer that is there already: its worker may die before it is fetched."""

# A lock whose holder died is free after the timeout. The default of half a minute is for clusters with slow networks.
QUICK_LOCKS = {
    "distributed.scheduler.locks.lease-timeout": "5s",
    "distributed.scheduler.locks.lease-validation-interval": "1s",
}


@contextmanager
def connected(scheduler: str, workers: int) -> Iterator[Client]:
    """Yield a client of the scheduler at an address, or of one that is started here with so many workers.

    Raises:
        Problem: none answers there.
    """
    with ExitStack() as stack:
        if scheduler == LOCAL:
            stack.enter_context(dask.config.set(QUICK_LOCKS))
            stack.callback(registry.end_orphans)
            cluster = LocalCluster(
                n_workers=workers,
                threads_per_worker=1,
                resources={ENGINE: 1},
                dashboard_address="127.0.0.1:0",  # by default it listens to the network
                silence_logs=logging.ERROR,
            )
            scheduler = stack.enter_context(cluster).scheduler_address
        try:
            client = Client(scheduler, timeout=CONNECT_S, set_as_default=False)
        except (OSError, ValueError, TypeError) as error:
            raise Problem(
                f"no Dask scheduler answers at {scheduler}: {str(error) or type(error).__name__}",
                expected="the address that `dask scheduler` prints, as in tcp://HOST:8786",
                remedy="check address and network, and that both ends have the same version of distributed",
            ) from None
        yield stack.enter_context(client)


def engines_of(client: Client) -> set[str]:
    """Return the addresses of the workers that declare an engine."""
    workers = client.scheduler_info()["workers"]
    return {address for address, worker in workers.items() if worker.get("resources", {}).get(ENGINE)}


def first_seats(client: Client, job: Job) -> dict[str, Seat]:
    """Return the workers that are there at the beginning, by address, the first in its order first.

    Raises:
        Problem: there is none, or one is not fit.
    """
    deadline = monotonic() + SEAT_S
    while not (found := engines_of(client)):
        if monotonic() > deadline:
            others = len(client.scheduler_info()["workers"])
            raise Problem(
                f"none of the {others} workers of this scheduler declares the resource `{ENGINE}`",
                expected="one `engine` a worker",
                remedy=f'start them with: dask worker ADDRESS --nthreads 1 --resources "{ENGINE}=1"',
            )
        sleep(0.2)
    asked = {address: submit(client, address, seat_of, job) for address in sorted(found)}
    seats: dict[str, Seat] = {}
    for address, future in asked.items():
        while not future.done() and address in engines_of(client):
            sleep(0.1)  # it may have to fetch the pair's files first
        if future.done() and (seat := answer_of(address, future)):
            seats[address] = seat
    if not seats:
        raise Problem("every worker of this scheduler ended at once", remedy="see what `dask worker` printed there")
    return seats


def submit(client: Client, address: str, function: Callable[..., Any], *arguments: Any) -> Future:
    """Ask one worker, and no other, for something that is done anew every time."""
    return client.submit(function, *arguments, workers=[address], resources={ENGINE: 1}, pure=False)


def answer_of(address: str, future: Future) -> Any:
    """Return what a worker answered, which is fetched from it now; None if it has gone.

    Raises:
        Problem: what it asks to be told, or that it could not run what it was asked.
    """
    try:
        return future.result(timeout=ANSWER_S)
    except Problem as problem:
        raise Problem(f"worker {address}: {problem}") from None
    except (WorkerReplaced, KilledWorker, CancelledError, TimeoutError):
        return None
    except Exception as error:
        raise Problem(
            f"worker {address} cannot run the measurement: {type(error).__name__}: {error}",
            expected="the same versions of specbook and Python in its environment",
            remedy="start it with the `dask` of that environment",
        ) from None
