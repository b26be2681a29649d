"""How windows are handed out to the workers of a run, threads of this process or of a cluster; how far the run is, and
which failures end it at once.
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
"""Windows handed out for each worker: while it fetches one, the next one waits."""
ENDING_SECONDS = 2.0
"""Seconds that a failing run waits for the workers that are fetching a window."""
IN_A_ROW = 5
"""So many windows that fail one after the other end a run: the next ones would most likely fail too."""


Take = Callable[[Fetched, int], None]
"""Takes what was fetched, and of how many windows."""
Outcome = tuple[Sequence[Task], Fetched | SvcctlError]
"""The tasks of one request, and what came of it."""


@dataclass
class RunProgress:
    """The progress of a run. `clock` is monotonic, in seconds."""

    progress: Progress = field(default_factory=Progress)
    clock: Callable[[], float] = time.monotonic
    done: int = 0
    total: int = 0
    _before: int | None = None
    """The number of windows that were there before the run."""

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
    """The windows of a run that failed. The first one ends a run that `stops`."""

    def __init__(self, *, stops: bool) -> None:
        self._stops = stops
        self._row: list[SvcctlError] = []
        self.gaps: dict[Window, SvcctlError] = {}

    def add(self, window: Window, error: SvcctlError) -> None:
        """Note a window that failed; raises an error that ends the run."""
        if concerns_all(error):
            raise error from None
        if self._stops:
            raise error.saying(f"window {window}: {error.message}") from None
        self.gaps[window] = error
        self._row.append(error)
        if len(self._row) == IN_A_ROW:
            if isinstance(error, Unavailable) and not all(isinstance(failure, Unavailable) for failure in self._row):
                error = IncompleteResult(error.message).advised_by(error)
            row = f"{IN_A_ROW} windows in a row failed, the last, {window}"
            raise error.saying(f"{row}: {error.message}") from None

    def end_row(self) -> None:
        """Note that a window was fetched."""
        self._row.clear()


def concerns_all(error: BaseException | None) -> bool:
    """Whether every window would meet this error: a refusal by the service or the storage, a full disk, a lock."""
    if isinstance(error, InternalError):
        return False
    return isinstance(error, (Unstored, UsageError, ServiceError, Locked))


@dataclass(frozen=True, slots=True)
class Crew:
    """Workers that are ready: those of `executor` call `fetch`; `stopping` tells those of this process to end."""

    fetch: Fetch
    executor: Executor
    count: int
    stopping: threading.Event

    def fetching(self, tasks: Sequence[Task], take: Take, joined: Joined | None = None) -> Generator[Outcome]:
        """Fetch windows; yields what came of each request.

        Everything that was fetched is given to `take` first, also when the iterator is closed early; an error that it
        raises is that of the window. `joined` is that of Queue.
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
            # The result of a worker is queued before the worker gets the next window.
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
    """Take the windows that workers complete while the run ends, so that the next run need not fetch them again."""
    deadline = time.monotonic() + ENDING_SECONDS
    for _ in range(requests):
        try:
            request, future = ended.get(timeout=max(0.0, deadline - time.monotonic()))
            take(future.result(), len(request))
        except Empty:
            return
        except Exception:  # the error that ends the run has been raised already
            continue


@dataclass(frozen=True)
class Workers:
    """The workers that fetch the windows; `connect` makes their client, and they share `per_second` requests a second.

    With a `scheduler` they are its workers, each with a client that `connect_there` makes; `target` is then the one
    that was asked for, as each machine has to open it.
    """

    connect: Callable[[], Client]
    connect_there: Connect
    target: str
    count: int | None = None
    per_second: float | None = None
    scheduler: str | None = None

    @contextmanager
    def working(self, storage: Storage, progress: Progress) -> Iterator[Crew]:
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
                # A worker that waits for the service would hold up the end of a run that failed.
                pool.shutdown(wait=False, cancel_futures=True)
            return
        with cluster(self.scheduler) as (executor, threads, processes):
            share = self.per_second and self.per_second / processes
            fetch_away = partial(fetch_there, target=self.target, connect=self.connect_there, per_second=share)
            yield Crew(fetch_away, executor, self.count or threads, stopping)
