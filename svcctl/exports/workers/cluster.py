"""Workers in a Dask cluster. These workers replace the threads of this process.

A worker gets a task, which describes the time window to fetch. It also gets a function that makes a client. The
function reads the user's connection settings on the worker's machine, so the credentials are never sent to the cluster.
All machines must be able to write to the target, so the target is on S3, on HDFS, or in a shared folder.
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
"""The maximum number of seconds to wait for the answer of the scheduler."""

Connect = Callable[[], "Client"]
"""A function that makes a client of the service. The client must not retry requests.

The function can be pickled and hashed, and contains no secret.
"""


@contextmanager
def cluster(address: str) -> Iterator[tuple[Executor, int, int]]:
    """Connect to the workers of a Dask cluster.

    Yields an executor for the cluster, the number of all threads, and the number of processes. Raises Unavailable if
    the scheduler does not answer, or has no workers.
    """
    extras.need("dask", "--scheduler")
    logging.getLogger("distributed").setLevel(logging.CRITICAL)  # svcctl reports these errors itself
    distributed: Any = importlib.import_module("distributed")  # the package has no types
    try:
        client = distributed.Client(address, timeout=CONNECT_SECONDS, set_as_default=False)
    except (OSError, ValueError) as error:
        reason = str(error).partition("\n")[0]
        raise Unavailable(f"no answer from the scheduler {address}: {reason}") from None
    with client:
        threads = client.nthreads()
        if not threads:
            raise Unavailable(f"the scheduler {address} has no workers", hint=f"start some: dask worker {address}")
        # With pure=True, a later run would get the old result of an earlier run for the same window.
        yield _Explaining(client.get_executor(pure=False), address), sum(threads.values()), len(threads)


class _Explaining(Executor):
    """An executor that runs functions in a cluster, and turns failures of the cluster into errors of svcctl."""

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
    """Fetch the time window of a task in a process of the cluster.

    `per_second` is the maximum number of requests per second from this process. If another process still has the file
    of the window locked, this process takes over the file. The other process may be unreachable, or may belong to
    a run that has ended.
    """
    storage, _ = open_target(target, os.environ, take=True)
    with _making:
        client, pace = _kept(connect, per_second)
    return fetch(task, client, storage, pace, Progress(), _Released())


class _Released(threading.Event):
    """An event that is set when the scheduler has released the task of this thread.

    The scheduler releases a task if the run has ended, or if another worker has the task. The thread of a released task
    must stop its work.
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
