"""The distribution of tasks to the workers of an export. Workers are threads of this process or of a cluster.

A task is the request for a time window. This module also counts the progress of a run, and decides which failures end
the run at once.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING

from svcctl.errors import IncompleteResult, InternalError, Locked, ServiceError, SvcctlError, Unavailable, UsageError
from svcctl.exports.windows import Window
from svcctl.exports.workers.cluster import Connect, cluster, fetch_there
from svcctl.exports.workers.fetch import Fetch, Fetched, Progress, Stopped, Task, fetch
from svcctl.exports.workers.pace import Pace
from svcctl.exports.workers.queue import Joined, Queue
from svcctl.exports.workers.spool import Unstored
from svcctl.io.time_limit import without_signals

if TYPE_CHECKING:
    from svcctl.api.client import Client
    from svcctl.storage import Storage

WINDOWS_PER_WORKER = 2
"""The number of requests that each worker has at a time: the request in progress, and the next request."""
ENDING_SECONDS = 2.0
"""The maximum number of seconds that a failing run waits for requests in progress."""
IN_A_ROW = 5
"""A run ends after this number of successive failures, because the next windows would probably fail too."""


Take = Callable[[Fetched, int], None]
"""A function that is called with the result of a request, and with the number of windows in the result."""
Outcome = tuple[Sequence[Task], Fetched | SvcctlError]
"""The tasks of a request, and the result or the error of the request."""


@dataclass
class RunProgress:
    """The progress of a run. `done` and `total` are numbers of windows. `clock` returns a monotonic time in seconds."""

    progress: Progress = field(default_factory=Progress)
    clock: Callable[[], float] = time.monotonic
    done: int = 0
    total: int = 0
    _before: int | None = None
    """The number of windows that earlier runs have finished. It is None before the first call of `take`."""

    def __post_init__(self) -> None:
        self._started = self.clock()

    @property
    def seconds(self) -> float:
        return self.clock() - self._started

    def take(self, done: int, total: int) -> None:
        if self._before is None:
            self._before = done
        self.done, self.total = done, total

    @property
    def fetched(self) -> int:
        """The number of windows that this run has fetched."""
        return self.done - (self._before or 0)


class Failures:
    """The failed windows of a run. If `stops` is true, the first failure ends the run."""

    def __init__(self, *, stops: bool) -> None:
        self._stops = stops
        self._row: list[SvcctlError] = []
        self.gaps: dict[Window, SvcctlError] = {}

    def add(self, window: Window, error: SvcctlError) -> None:
        """Add a failed window. Raises the error if it ends the run.

        An error ends the run in three cases: `stops` is set, all windows would fail with this error, or the last
        IN_A_ROW windows have failed.
        """
        if concerns_all(error):
            raise error from None
        if self._stops:
            raise error.saying(f"window {window}: {error.message}") from None
        self.gaps[window] = error
        self._row.append(error)
        if len(self._row) == IN_A_ROW:
            if isinstance(error, Unavailable) and not all(isinstance(failure, Unavailable) for failure in self._row):
                error = IncompleteResult(error.message).advised_by(error)
            row = f"{IN_A_ROW} windows in a row failed, the last one {window}"
            raise error.saying(f"{row}: {error.message}") from None

    def end_row(self) -> None:
        """Reset the count of successive failures. Call this method when a window was fetched."""
        self._row.clear()


def concerns_all(error: BaseException | None) -> bool:
    """Return whether all windows would fail with this error.

    Examples are a refusal by the service, a full disk, and a file that another process has locked.
    """
    if isinstance(error, InternalError):
        return False
    return isinstance(error, (Unstored, UsageError, ServiceError, Locked))


@dataclass(frozen=True, slots=True)
class Crew:
    """Workers that are ready to fetch windows: `count` threads of `executor`, which call `fetch`.

    Set `stopping` to end the workers in this process.
    """

    fetch: Fetch
    executor: Executor
    count: int
    stopping: threading.Event

    def fetching(self, tasks: Sequence[Task], take: Take, joined: Joined | None = None) -> Generator[Outcome]:
        """Fetch the windows of tasks. Yields the outcome of each request.

        `take` is called with each result before the outcome is yielded. If `take` raises an SvcctlError, the outcome is
        this error. If the iterator is closed early, results that arrive soon after the close are also passed to `take`.
        `joined` makes one task from the tasks of neighbouring windows. If `joined` is None, each request fetches one
        window.
        """
        waiting = Queue(tasks, self.count, joined)
        ended: SimpleQueue[tuple[Sequence[Task], Future[Fetched]]] = SimpleQueue()
        handing = threading.Lock()
        working, finished = 0, 0

        def hand_out(before: Future[Fetched] | None = None) -> None:
            nonlocal working
            if before is not None and not before.cancelled() and concerns_all(before.exception()):
                return  # the run is about to end
            with handing:
                request = [] if self.stopping.is_set() else waiting.next()
                if not request:
                    return
                working += 1
                future = self.executor.submit(self.fetch, waiting.joined(request))
            # The first callback puts the result in the queue, before the second callback gives the worker a new task.
            future.add_done_callback(lambda future: ended.put((request, future)))
            future.add_done_callback(hand_out)

        for _ in range(WINDOWS_PER_WORKER * self.count):
            hand_out()
        try:
            while finished < len(tasks):
                with handing:
                    if self.stopping.is_set() and not working:
                        raise Stopped
                request, future = ended.get()
                with handing:
                    working -= 1
                outcome: Fetched | SvcctlError
                try:
                    outcome = future.result()
                    take(outcome, len(request))
                except SvcctlError as error:
                    outcome = error
                with handing:
                    repeats = waiting.learn(request, outcome)
                if repeats:
                    for _ in request:
                        hand_out()
                else:
                    finished += len(request)
                    yield request, outcome
        finally:
            if finished < len(tasks):
                self.stopping.set()
                with handing:
                    requests = working
                _take_results(ended, requests, take)


def _take_results(ended: SimpleQueue[tuple[Sequence[Task], Future[Fetched]]], requests: int, take: Take) -> None:
    """Wait for the results of open requests while a run ends, and call `take` with each result.

    The wait ends after ENDING_SECONDS.
    """
    deadline = time.monotonic() + ENDING_SECONDS
    for _ in range(requests):
        try:
            request, future = ended.get(timeout=max(0.0, deadline - time.monotonic()))
            take(future.result(), len(request))
        except Empty:
            return
        except Exception:  # the run already raises its first error
            continue


@dataclass(frozen=True)
class Workers:
    """The options for the workers of a run.

    `connect` makes the client of local workers. All workers together send at most `per_second` requests per second. If
    `scheduler` is an address, the workers are in the cluster of this scheduler. Each process of the cluster then makes
    its own client with `connect_there`, and opens `target` itself.
    """

    connect: Callable[[], Client]
    connect_there: Connect
    target: str
    count: int | None = None
    per_second: float | None = None
    scheduler: str | None = None

    @contextmanager
    def working(self, storage: Storage, progress: Progress) -> Iterator[Crew]:
        """Start the workers, and end them after the block.

        Local workers write the rows to `storage`, and add the numbers of rows and bytes to `progress`.
        """
        stopping = threading.Event()
        if self.scheduler is None:
            fetch_here = partial(
                fetch,
                client=self.connect(),
                storage=storage,
                pace=Pace(self.per_second),
                progress=progress,
                stopping=stopping,
            )
            count = self.count or 4
            pool = ThreadPoolExecutor(count, "window", without_signals)
            try:
                yield Crew(fetch_here, pool, count, stopping)
            finally:
                stopping.set()
                # A failed run ends sooner if it does not wait for the workers.
                pool.shutdown(wait=False, cancel_futures=True)
            return
        with cluster(self.scheduler) as (executor, threads, processes):
            share = self.per_second and self.per_second / processes
            fetch_away = partial(fetch_there, target=self.target, connect=self.connect_there, per_second=share)
            yield Crew(fetch_away, executor, self.count or threads, stopping)
