"""Windows on other machines: a Dask cluster's workers instead of threads of this process.

A worker gets a Task and a function that makes a client. That function resolves the profile where it runs, so a cluster
never sees the credentials of whoever starts an export. The target must be one that all machines reach: s3, hdfs, or a
folder that they share.
"""

from __future__ import annotations

import importlib
import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from svcctl import extras
from svcctl.errors import Unavailable
from svcctl.exports.fetch import Fetched, Progress, Task, fetch
from svcctl.exports.pace import Pace
from svcctl.storage.targets import open_target

if TYPE_CHECKING:
    from svcctl.api.client import Client

CONNECT_SECONDS = 10
"""How long the scheduler may take to answer."""

Connect = Callable[[], "Client"]
"""Makes a client that retries nothing; it can be pickled, and holds no secret."""


@contextmanager
def cluster(address: str) -> Iterator[tuple[Executor, int]]:
    """The workers of a Dask cluster as an executor, and the number of their threads. Unavailable when none answers."""
    extras.need("dask", "--scheduler")
    distributed: Any = importlib.import_module("distributed")  # it has no types
    try:
        client = distributed.Client(address, timeout=CONNECT_SECONDS, set_as_default=False)
    except (OSError, ValueError) as error:
        raise Unavailable(f"no answer from the scheduler {address}: {error}") from None
    with client:
        threads = sum(client.nthreads().values())
        if not threads:
            raise Unavailable(f"the scheduler {address} has no workers", hint=f"start some: dask worker {address}")
        yield client.get_executor(), threads


def fetch_there(task: Task, target: str, connect: Connect, per_second: float | None) -> Fetched:
    """Fetch a window in the process of a worker; `per_second` is this worker's own share of the requests."""
    storage, _ = open_target(target, os.environ)
    client, pace = _kept(connect, per_second)
    return fetch(task, client, storage, pace, Progress(), threading.Event())


@lru_cache(maxsize=8)
def _kept(connect: Connect, per_second: float | None) -> tuple[Client, Pace]:
    return connect(), Pace(per_second)
