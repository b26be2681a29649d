"""Workers in a Dask cluster, instead of threads of this process.

A worker gets a task and a function that makes a client. The function reads the profile of the worker's machine, so the
cluster never sees the credentials of the user. All machines must reach the target: s3, hdfs, or a shared folder.
"""

from __future__ import annotations

import importlib
import logging
import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from contextlib import contextmanager
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from svcctl.errors import SvcctlError, Unavailable
from svcctl.exports.workers.fetch import Fetched, Progress, Task, fetch
from svcctl.exports.workers.pace import Pace
from svcctl.io import extras
from svcctl.storage.targets import open_target

if TYPE_CHECKING:
    from svcctl.api.client import Client

CONNECT_SECONDS = 10
"""The most seconds until the scheduler answers."""

Connect = Callable[[], "Client"]
"""Makes a client that retries nothing. The function can be pickled and hashed, and holds no secret."""


@contextmanager
def cluster(address: str) -> Iterator[tuple[Executor, int, int]]:
    """The workers of a Dask cluster as an executor, with their numbers of threads and of processes.

    Unavailable when no scheduler or no worker answers.
    """
    extras.need("dask", "--scheduler")
    logging.getLogger("distributed").setLevel(logging.CRITICAL)  # svcctl reports these errors itself
    distributed: Any = importlib.import_module("distributed")  # it has no types
    try:
        client = distributed.Client(address, timeout=CONNECT_SECONDS, set_as_default=False)
    except (OSError, ValueError) as error:
        reason = str(error).partition("\n")[0]
        raise Unavailable(f"no answer from the scheduler {address}: {reason}") from None
    with client:
        threads = client.nthreads()
        if not threads:
            raise Unavailable(f"the scheduler {address} has no workers", hint=f"start some: dask worker {address}")
        # With pure=True, a later run would get the task of an ended run for the same window.
        yield _Explaining(client.get_executor(pure=False), address), sum(threads.values()), len(threads)


class _Explaining(Executor):
    """An executor that raises failures of the cluster as svcctl's errors."""

    def __init__(self, executor: Executor, address: str) -> None:
        self._executor = executor
        self._address = address

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        explained: Future[Any] = Future()

        def take(future: Future[Any]) -> None:
            if future.cancelled():
                explained.set_exception(Unavailable(f"the scheduler {self._address} gave up the window"))
            elif (error := future.exception()) is None:
                explained.set_result(future.result())
            elif isinstance(error, SvcctlError):
                explained.set_exception(error)
            else:
                reason = " ".join(str(error).split()) or type(error).__name__
                explained.set_exception(Unavailable(f"a worker of {self._address} failed: {reason}"))

        self._executor.submit(fn, *args, **kwargs).add_done_callback(take)
        return explained


def fetch_there(task: Task, target: str, connect: Connect, per_second: float | None) -> Fetched:
    """Fetch a task in the process of a worker. `per_second` is this process's share of the requests.

    The part is taken over from any other writer, which belongs to an ended run or to a lost worker.
    """
    storage, _ = open_target(target, os.environ, take=True)
    with _making:
        client, pace = _kept(connect, per_second)
    return fetch(task, client, storage, pace, Progress(), _Released())


class _Released(threading.Event):
    """Set when the scheduler has released the task of this thread: the run has ended, or another worker has the task.

    Without this event, a worker would complete a task that no run waits for.
    """

    def __init__(self) -> None:
        super().__init__()
        distributed: Any = importlib.import_module("distributed")
        worker = distributed.get_worker()
        self._key = worker.get_current_task()
        self._tasks = worker.state.tasks

    def is_set(self) -> bool:
        task = self._tasks.get(self._key)
        return task is None or task.state == "cancelled"

    def wait(self, timeout: float | None = None) -> bool:
        super().wait(timeout)
        return self.is_set()


_making = threading.Lock()


@lru_cache(maxsize=8)
def _kept(connect: Connect, per_second: float | None) -> tuple[Client, Pace]:
    return connect(), Pace(per_second)
